import OperationKitTestSupport

@testable import OperationKit

@Suite("Cancelling while executing", .hangGuard) struct CancelWhileExecutingTests {

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
        "`didCancel()` of an operation that `main()`, or another thread meanwhile, cancels is called after it, on its thread",
        arguments: Start.allCases, [false, true])
    func cancelledDuringMain(start: Start, isOnAnotherThread: Bool) async {
        let log = EventLog()
        let thread = Shared<Thread?>(nil)
        let operation = ScriptedOperation(
            main: { operation in
                thread.value = Thread.current
                if isOnAnotherThread {
                    #expect(answersOnAnotherThread { operation.cancel() })
                } else {
                    operation.cancel()
                }
                log.add("main ends, cancelled \(operation.isCancelled)")
            },
            didCancel: {
                log.add("didCancel on the thread of main \(Thread.current === thread.value)")
                $0.finish(withError: CancellationError())
            })
        await start(operation)
        #expect(log.events == ["main ends, cancelled true", "didCancel on the thread of main true"])
        #expect(operation.error is CancellationError)
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
        let second = ScriptedOperation.named("second", in: log)
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

#if DEBUG
/// An outcome that another thread gives after it has seen `isExecuting`, and before `main()` is called.
@Suite("An end between isExecuting and main()", .hangGuard) struct EndBeforeMainTests {
    /// Starts an operation; another thread finishes it once Foundation has been told that it executes.
    private static func start(_ operation: AsyncOperation, finishingWith error: any Error) {
        var isTold = false
        let observer = Told {
            if isTold { return }
            isTold = true
            #expect(operation.isExecuting)
            #expect(answersOnAnotherThread { operation.finish(withError: error) })
        }
        SchedulingProbe.observed(by: observer) { operation.start() }
    }

    private final class Told: SchedulingProbe.Observer {
        private let action: () -> Void

        init(_ action: @escaping () -> Void) { self.action = action }

        func reached(_ place: SchedulingProbe.Place) {
            if case .told = place { action() }
        }
    }

    @Test("main() of an operation that has ended since it became executing is not called")
    func mainIsNotCalled() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await onThread { Self.start(operation, finishingWith: TestError.first) }
        #expect(log.events == ["asyncCompletionBlock first"])
        #expect(operation.isFinished && !operation.isExecuting)
    }

    @Test("A compound that is finished since it became executing is not prepared, and ends after its children")
    func aCompoundIsNotPrepared() async throws {
        let log = EventLog()
        let children = (0..<3).map { _ in ScriptedOperation.logged(log) }
        let compound = ScriptedCompound(operations: children, prepare: { _ in log.add("prepare") })
        await onThread { Self.start(compound, finishingWith: TestError.first) }
        await #expect(throws: TestError.first) { try await compound.finished() }
        #expect(children.allSatisfy { $0.isFinished && $0.isCancelled })
        #expect(log.count(of: "prepare") == 0 && log.count(of: "main") == 0)
    }

    @Test("A typed operation that has ended since it became executing takes no input")
    func aTypedOperationTakesNoInput() async {
        let log = EventLog()
        let operation = Step<Int, Int> { _, _ in log.add("main") }.with(input: 1)
        await onThread { Self.start(operation, finishingWith: TestError.first) }
        #expect(text(operation.error) == "first" && log.events.isEmpty)
    }
}
#endif
