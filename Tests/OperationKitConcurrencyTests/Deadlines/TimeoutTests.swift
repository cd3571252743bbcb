import OperationKitTestSupport

@testable import OperationKit

@Suite("Timeouts", .hangGuard) struct TimeoutTests {
    private let clock = ManualClock()
    private let log = EventLog()

    /// An operation with a timeout of five seconds: one that is at work until it is cancelled, unless it is given.
    private func limited<Work: AsyncOperation>(_ operation: Work = ScriptedOperation.stoppable("endless")) -> Work {
        operation.clock = clock
        operation.timeout = .seconds(5)
        return operation
    }

    @Test("Work that takes longer than its timeout is stopped, and the operation fails with an error that says so")
    func expired() async {
        let recorder = EventRecorder()
        let operation = recorder.observe(limited())
        operation.start()
        await clock.pass(.seconds(5))
        await #expect(throws: OperationTimeoutError(operation: "endless", timeout: .seconds(5))) {
            try await operation.finished()
        }
        await recorder.end(of: "endless")
        let events = ["started", "running", "cancelled", "finished: OperationTimeoutError"]
        #expect(recorder.events(of: "endless") == events)
        #expect(operation.isCancelled && operation.error?.isCancellation == false)
    }

    @Test("An operation that ends in time, or is dropped at work, leaves no deadline behind") func endsInTime() async {
        let (operation, leaks) = (limited(), LeakTracker())
        operation.start()
        await clock.sleepers()
        operation.finish()
        await clock.expectNoSleepers()
        clock.advance(by: .seconds(10))
        #expect(operation.error == nil && !operation.isCancelled)
        leaks.track(limited()).start()
        await clock.expectNoSleepers()
        await leaks.expectAllReleased()
    }

    @Test(
        "Work that does not stop goes on, and its outcome stands, success included", arguments: [nil, TestError.first])
    func deafWork(error: TestError?) async {
        let cancelled = Gate()
        let operation = limited(ScriptedOperation(main: { _ in }) { _ in cancelled.open() })
        operation.start()
        await clock.pass(.seconds(5))
        await cancelled.opened()
        #expect(operation.isExecuting)
        #expect(operation.debugDescription.contains("longer than its timeout of 5.0 seconds"))
        operation.finish(withError: error)
        #expect(text(operation.error) == text(error))
    }

    @Test("The time begins with the work, after the gates and what is called before it, however long that takes")
    func afterGates() async {
        let gate = HeldGate()
        let operation = limited()
        operation.addGate(gate)
        operation.addStartHandler(.last) { [clock] _ in clock.advance(by: .seconds(60)) }
        operation.start()
        clock.advance(by: .seconds(60))
        #expect(operation.isExecuting && clock.deadlines.isEmpty)
        gate.open()
        await clock.sleepers()
        #expect(clock.deadlines == [.seconds(125)])
        clock.advance(by: .seconds(5))
        await #expect(throws: OperationTimeoutError.self) { try await operation.finished() }
    }

    @Test("A cancellation before the work leaves no deadline behind") func cancelledBeforeTheWork() {
        let operation = limited()
        operation.cancel()
        operation.start()
        let waiting = limited()
        waiting.addGate(HeldGate())
        waiting.start()
        waiting.cancel()
        #expect(operation.isFinished && waiting.isFinished && clock.deadlines.isEmpty)
    }

    @Test("The time of a compound goes on while it is suspended") func suspended() async {
        let compound = limited(CompoundOperation(operations: [ScriptedOperation("child")]))
        compound.isSuspended = true
        compound.start()
        await clock.pass(.seconds(5))
        await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
    }

    @Test("Compounds, macros, waterfalls, gathered operations and runs have timeouts, too", arguments: 0..<5)
    func composites(kind: Int) async {
        let work = { @Sendable in
            _ = try await cancellation()
        }
        let operation: AsyncOperation =
            switch kind {
            case 0: MacroOperation(TaskOperation { 1 }).then(IOTaskOperation<Int, Void> { _ in try await work() })
            case 1: Waterfall<Void, Void>().thenAwait { try await work() }
            case 2: [TaskOperation { try await work() }].gathered()
            case 3: CompoundOperation(operations: [TaskOperation { try await work() }])
            default: MapOperation<Int, Void> { _ in try await work() }.with(input: [1])
            }
        limited(operation).start()
        await clock.pass(.seconds(5))
        await #expect(throws: (any Error).self) { try await operation.finished() }
        #expect(
            operation.isCancelled && operation.error?.isCancellation == false, "\(String(describing: operation.error))")
    }

    @Test(
        "A timeout of no time ends an operation with the error, without its work", arguments: [0, -1], [false, true])
    func noTime(seconds: Int, isCompound: Bool) async {
        let work = ScriptedOperation.logged(log)
        let operation = isCompound ? CompoundOperation(operations: [work]) : work
        operation.timeout = .seconds(seconds)
        operation.start()
        try? await operation.finished()
        var error = operation.error
        if case .cancelled(_, _, let reason)? = error as? CompoundOperationError { error = reason }
        #expect((error as? OperationTimeoutError)?.timeout == .seconds(seconds))
        #expect(log.count(of: "main") == 0 && operation.isCancelled)
    }

    @Test("A timeout can be read, replaced and removed before the start") func replaced() async {
        let operation = limited()
        #expect(operation.timeout == .seconds(5))
        operation.timeout = .seconds(7)
        operation.start()
        await clock.sleepers()
        #expect(clock.deadlines == [.seconds(7)] && operation.timeout == .seconds(7))
        operation.cancel()
        let unlimited = limited()
        unlimited.timeout = nil
        unlimited.start()
        await clock.expectNoSleepers()
        unlimited.cancel()
        #expect(AsyncOperation().clock is ContinuousClock && AsyncOperation().timeout == nil)
    }

    @Test("An operation that is run on a queue with a timeout throws the error") func queue() async throws {
        let queue = OperationQueue()
        let operation = TaskOperation(name: "slow") { () async throws -> Int in try await cancellation() }
        operation.clock = clock
        async let run: Void = {
            await #expect(throws: OperationTimeoutError(operation: "slow", timeout: .seconds(5))) {
                try await queue.run(operation, timeout: .seconds(5))
            }
        }()
        await clock.pass(.seconds(5))
        await run
        #expect(try await queue.run(TaskOperation { 7 }, timeout: .seconds(60)) == 7)
        try await queue.run(ScriptedOperation(), timeout: .seconds(60))
    }
}
