import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// A cancellation of running work is a request.
@Suite("Cancelling while executing", .hangGuard) struct CancelWhileExecutingTests {
    @Test("A cancellation does not mark running work as finished") func isNotFinished() async {
        let operation = ScriptedOperation.idle()
        await onThread {
            operation.start()
            operation.cancel()
        }
        #expect(operation.isCancelled && operation.isExecuting && !operation.isFinished && operation.error == nil)
        operation.finish()
        #expect(operation.isFinished && operation.isCancelled && operation.error == nil)
    }

    @Test("The outcome that cancelled work gives stands, and the reason takes the place of a `CancellationError`")
    func workDecidesOutcome() async {
        let (failed, stopped) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        for operation in [failed, stopped] {
            operation.start()
            operation.cancel(withError: TestError.reason)
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
            didCancel: { _ in log.add("didCancel, on its thread \(Thread.current === canceller.value)") })
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

    @Test("`didCancel()` finds what `main()` stored") func findsWhatMainStored() async {
        final class Storing: AsyncOperation, @unchecked Sendable {
            var task: String?
            let found = Shared<String?>(nil)
            override func main() {
                cancel()
                task = "stored"
            }
            override func didCancel() {
                found.value = task
                finish()
            }
        }
        let operation = Storing()
        await onThread { operation.start() }
        #expect(operation.found.value == "stored")
    }

    @Test("`didCancel()` is not called when `main()` finishes the operation after the cancellation")
    func finishAfterCancelInMain() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) {
            $0.cancel()
            $0.finish()
        }
        await onThread { operation.start() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(operation.isCancelled)
    }

    @Test("A cancellation in `main()` after `finish` has no effect") func cancelAfterFinishInMain() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) {
            $0.finish()
            $0.cancel()
        }
        await onThread { operation.start() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(!operation.isCancelled)
    }

    @Test("A cancellation in `didCancel()` has no effect") func inDidCancel() async {
        let log = EventLog()
        let operation = ScriptedOperation(
            main: { _ in },
            didCancel: {
                log.add("didCancel")
                $0.cancel(withError: TestError.reason)
                $0.finish(withError: CancellationError())
            })
        await onThread {
            operation.start()
            operation.cancel()
        }
        #expect(log.events == ["didCancel"])
        #expect(text(operation.error) == "cancelled")
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

    @Test("Cancelling all operations of a queue reaches the one that executes") func cancelledByQueue() async throws {
        let begun = Gate()
        let queue = OperationQueue()
        let operation = ScriptedOperation(
            main: { _ in begun.open() }, didCancel: { $0.finish(withError: CancellationError()) })
        queue.addOperation(operation)
        await begun.opened()
        queue.cancelAllOperations()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
    }
}
