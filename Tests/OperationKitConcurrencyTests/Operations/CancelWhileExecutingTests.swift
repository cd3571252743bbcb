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
}

#if DEBUG
/// An outcome that another thread gives after it has seen `isExecuting`, and before `main()` is called.
@Suite("An end between isExecuting and main()", .hangGuard) struct EndBeforeMainTests {
    /// Does something once Foundation has been told that an operation executes.
    private final class Told: SchedulingProbe.Observer {
        private var action: (() -> Void)?

        init(_ action: @escaping () -> Void) { self.action = action }

        func reached(_ place: SchedulingProbe.Place) {
            if case .told = place { action.take()?() }
        }
    }

    private static let makers: [@Sendable (EventLog) -> AsyncOperation] = [
        { log in ScriptedOperation { _ in log.add("main") } },
        { log in Step<Int, Int> { _, _ in log.add("main") }.with(input: 1) },
        { log in
            let children = (0..<3).map { _ in ScriptedOperation { _ in log.add("main") } }
            return ScriptedCompound(operations: children, prepare: { _ in log.add("prepare") })
        },
    ]

    @Test(
        "What has ended since it became executing does not begin its work, whether it is a typed one or a compound",
        arguments: makers.indices)
    func workDoesNotBegin(index: Int) async {
        let log = EventLog()
        let operation = Self.makers[index](log)
        await onThread {
            let observer = Told {
                #expect(operation.isExecuting)
                #expect(answersOnAnotherThread { operation.finish(withError: TestError.first) })
            }
            SchedulingProbe.observed(by: observer) { operation.start() }
        }
        await #expect(throws: TestError.first) { try await operation.finished() }
        #expect(log.events.isEmpty && !operation.isExecuting)
    }
}
#endif
