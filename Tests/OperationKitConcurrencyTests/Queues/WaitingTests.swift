import OperationKitTestSupport

@Suite("finished() and value", .hangGuard) struct WaitingTests {
    enum Moment: CaseIterable { case beforeTheStart, duringTheRun, afterTheEnd }

    @Test("A wait ends with the outcome, whenever it starts", arguments: Moment.allCases, [TestError?.none, .first])
    func outcome(moment: Moment, error: TestError?) async {
        let operation = ScriptedOperation.idle()
        func wait() -> Task<Void, any Error> {
            Task {
                defer { #expect(operation.isFinished) }
                try await operation.finished()
            }
        }
        var waiting: Task<Void, any Error>?
        if moment == .beforeTheStart { waiting = wait() }
        operation.start()
        if moment == .duringTheRun { waiting = wait() }
        if waiting != nil { await operation.becomesAwaited() }
        operation.finish(withError: error)
        if moment == .afterTheEnd { waiting = wait() }
        #expect(await text(waiting?.result.failure) == text(error))
    }

    @Test("A thousand waiters are all woken, have the output, and are released")
    func manyWaiters() async throws {
        let (mayEnd, tracker) = (Gate(), LeakTracker())
        let operation = TaskOperation {
            await mayEnd.opened()
            return 42
        }
        let begun = Shared(0)
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<1_000 {
                let token = tracker.token("waiter")
                group.addTask {
                    begun.change { $0 += 1 }
                    if number % 2 == 0 { try await operation.finished() }
                    let output = try await operation.value
                    token.use()
                    return operation.isFinished ? output : 0
                }
            }
            operation.start()
            await eventually("not all began to wait") { begun.value == 1_000 }
            mayEnd.open()
            return try await group.reduce(0, +)
        }
        #expect(sum == 42_000)
        await tracker.expectAllReleased()
    }

    @Test("Cancelling a wait leaves the operation and the other waiters alone")
    func cancelledWait() async throws {
        let operation = ScriptedOperation.idle()
        operation.start()
        let (cancelled, patient) = (Task { try await operation.finished() }, Task { try await operation.finished() })
        await operation.becomesAwaited()
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(operation.isExecuting && !operation.isCancelled && !operation.isFinished)
        operation.finish()
        try await patient.value
    }

    @Test("A task that is cancelled already does not wait, and still gets the outcome of a finished operation")
    func cancelledTask() async throws {
        let (running, finished) = (TaskOperation { 1 }, TaskOperation { 2 })
        await Start.byHand(finished)
        await #expect(throws: CancellationError.self) { try await inCancelledTask { try await running.value } }
        #expect(try await inCancelledTask { try await finished.value } == 2 && !running.isCancelled)
    }
}

@Suite("Waits of limited time", .hangGuard) struct BoundedWaitTests {
    private let clock = ManualClock()

    @Test("A wait for an operation that ends in time says so, and leaves no deadline behind") func inTime() async throws
    {
        let operation = ScriptedOperation.idle()
        operation.start()
        async let isFinished = operation.finished(within: .seconds(5), clock: clock)
        await clock.sleepers()
        operation.finish()
        #expect(try await isFinished)
        await clock.expectNoSleepers()
    }

    @Test("A wait that takes too long ends, and leaves the operation alone") func tooLong() async throws {
        let operation = ScriptedOperation.idle()
        operation.clock = clock
        operation.start()
        async let isFinished = operation.finished(within: .seconds(5))
        await clock.pass(.seconds(5))
        #expect(try await !isFinished)
        #expect(operation.isExecuting && !operation.isCancelled)
        #expect(!operation.isAwaited)
        operation.finish()
    }

    @Test("A wait for a finished operation returns immediately, and throws its error") func finished() async throws {
        let (succeeded, failed) = (ScriptedOperation(), ScriptedOperation { $0.finish(withError: TestError.first) })
        for operation in [succeeded, failed] { operation.start() }
        #expect(try await succeeded.finished(within: .zero, clock: clock))
        await #expect(throws: TestError.first) { try await failed.finished(within: .seconds(1), clock: clock) }
        #expect(clock.deadlines.isEmpty)
    }

    @Test("Cancelling the waiting task ends the wait, and leaves the operation alone") func cancelled() async {
        let operation = ScriptedOperation.idle()
        let clock = clock
        let task = Task { try await operation.finished(within: .seconds(5), clock: clock) }
        await operation.becomesAwaited()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!operation.isAwaited && !operation.isCancelled)
        await clock.expectNoSleepers()
    }

    @Test("A wait of no time returns without waiting", arguments: [0, -1]) func noTime(seconds: Int) async throws {
        #expect(try await !ScriptedOperation.idle().finished(within: .seconds(seconds), clock: clock))
    }
}
