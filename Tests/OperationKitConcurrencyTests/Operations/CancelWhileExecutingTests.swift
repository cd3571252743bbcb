import OperationKitTestSupport

/// A cancellation of running work is a request.
@Suite("Cancelling while executing", .hangGuard) struct CancelWhileExecutingTests {
    @Test(
        "Cancelled work goes on; the outcome that it gives stands, and the reason takes the place of a `CancellationError`"
    )
    func workDecidesOutcome() async {
        let (failed, stopped) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        for operation in [failed, stopped] {
            operation.start()
            operation.cancel(withError: TestError.reason)
            #expect(operation.isCancelled && operation.isExecuting && !operation.isFinished && operation.error == nil)
        }
        failed.finish(withError: TestError.first)
        stopped.finish(withError: CancellationError())
        #expect(text(failed.error) == "first")
        #expect(text(stopped.error) == "reason")
    }

    @Test("`didCancel()` is called once, on the thread that cancels") func callsDidCancelOnce() async {
        let log = EventLog()
        let canceller = Shared<Thread?>(nil)
        let operation = ScriptedOperation(
            main: { _ in },
            didCancel: {
                log.add("didCancel, on its thread \(Thread.current === canceller.value)")
                $0.cancel(withError: TestError.second)
            })
        await onThread { operation.start() }
        await onThread {
            canceller.value = Thread.current
            operation.cancel()
            operation.cancel()
            operation.cancel(withError: TestError.reason)
        }
        operation.finish(withError: CancellationError())
        #expect(log.events == ["didCancel, on its thread true"])
        // A thread holds what it runs.
        canceller.value = nil
        #expect(text(operation.error) == "cancelled")
    }

    @Test(
        "`didCancel()` of an operation that is cancelled in `main()` is called after `main()`",
        arguments: Start.allCases)
    func cancelledInMain(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation(
            main: {
                $0.cancel()
                log.add("main, cancelled \($0.isCancelled)")
            },
            didCancel: {
                log.add("didCancel")
                $0.finish(withError: CancellationError())
            })
        await start(operation)
        #expect(log.events == ["main, cancelled true", "didCancel"])
        #expect(operation.error is CancellationError)
    }

    @Test("Where another thread cancels during `main()`, `didCancel()` is called after it, on its thread")
    func cancelledDuringMain() async {
        let log = EventLog()
        let (begun, cancelled) = (Gate(), Gate())
        let thread = Shared<Thread?>(nil)
        let operation = ScriptedOperation(
            main: { _ in
                thread.value = Thread.current
                begun.open()
                cancelled.pass()
                log.add("main ends")
            },
            didCancel: {
                log.add("didCancel on the thread of main \(Thread.current === thread.value)")
                $0.finish(withError: CancellationError())
            })
        async let ended: Void = Start.byHand(operation)
        await begun.opened()
        await onThread {
            operation.cancel()
            log.add("cancelled \(operation.isCancelled)")
        }
        cancelled.open()
        await ended
        #expect(log.events == ["cancelled true", "main ends", "didCancel on the thread of main true"])
        // A thread holds what it runs.
        thread.value = nil
    }

    @Test(
        "`didCancel()` is not called when `main()` finishes the operation after the cancellation, or before it",
        arguments: [true, false])
    func finishInMain(isCancelledBefore: Bool) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) {
            if isCancelledBefore { $0.cancel() }
            $0.finish()
            $0.cancel()
        }
        await onThread { operation.start() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(operation.isCancelled == isCancelledBefore)
    }

    @Test("A cancelled operation holds its place on a serial queue until its work ends")
    func holdsPlaceOnSerialQueue() async throws {
        let log = EventLog()
        let begun = Gate()
        let queue = OperationQueue.serial(name: "serial")
        let first = ScriptedOperation(main: { _ in begun.open() })
        let second = ScriptedOperation(main: {
            log.add("second")
            $0.finish()
        })
        queue.addOperation(first)
        queue.addOperation(second)
        await begun.opened()
        first.cancel()
        // The second would be free to start now, if the first counted as finished.
        #expect(first.isExecuting)
        log.add("first ends")
        first.finish(withError: CancellationError())
        try await second.finished()
        #expect(log.events == ["first ends", "second"])
        #expect(first.error is CancellationError)
    }
}
