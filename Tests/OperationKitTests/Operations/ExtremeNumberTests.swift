import OperationKitTestSupport

@Suite("Numbers at the edge", .hangGuard) struct ExtremeNumberTests {
    /// Runs an operation that may wait for as long as it likes, describes it, and cancels it.
    private static func live(_ operation: AsyncOperation) async {
        operation.start()
        _ = operation.debugDescription
        operation.cancel()
        try? await operation.finished()
        _ = operation.error?.localizedDescription
    }

    private static let durations: [Duration] = [
        .seconds(Int64.max) * 15, .seconds(Int64.max), .nanoseconds(Int64.max), .nanoseconds(1), .zero,
        .nanoseconds(-1),
        .seconds(Int64.min), .seconds(Int64.min) * 15, Duration(attoseconds: .max),
    ]

    @Test("A duration may have any value", arguments: durations) func duration(_ duration: Duration) async throws {
        await Self.live(DelayOperation(for: duration))
        let limited = ScriptedOperation.stoppable()
        limited.timeout = duration
        await Self.live(limited)
        #expect(try await TaskOperation { 1 }.started().finished(within: max(duration, .seconds(60))))
        #expect(try await !AsyncOperation().finished(within: min(duration, .zero)))
        let queue = OperationQueue()
        queue.addOperation(BlockOperation {}, after: duration).cancel()
        try await queue.allOperationsFinished()
        _ = try? await queue.run(TaskOperation { 1 }, timeout: duration)
        _ = OperationTimeoutError(operation: "a", timeout: duration).localizedDescription
        _ = CircuitOpenError(operation: "a", circuit: "b", retryAfter: duration).localizedDescription
        _ = OperationDiagnostics.operations(executingLongerThan: duration)

        let resource = ExclusiveAccess("resource")
        let holder = EventLog().held("holder", resource)
        holder.start()
        let waiting = ScriptedOperation()
        waiting.require(resource, within: duration)
        await Self.live(waiting)
        holder.finish()

        var policy = RetryPolicy(maximumAttempts: .max, backoff: .exponential(duration, maximum: duration))
        policy.attemptTimeout = duration
        policy.maximumTotalTime = duration
        await Self.live(TaskOperation(retry: policy) { throw TestError.first })
        await Self.live(RetryOperation<Void, Int>(policy) { _ in TaskOperation { throw TestError.first } })
        guard duration > .zero else { return }
        await Self.live(RepeatOperation<Void, Int>(every: duration, maximumCount: .max) { _ in TaskOperation { 1 } })
        let repeated = RepeatOperation<Void, Int>(every: duration, maximumCount: .max, until: { _ in true }) { _ in
            TaskOperation { 1 }
        }
        #expect(try await repeated.started().value == 1)
        await Self.live(HedgedOperation<Void, Int>(after: duration, maximumAttempts: .max) { _ in TaskOperation { 1 } })
        let guarded = ScriptedOperation()
        guarded.require(RateLimit("rate", .max, per: duration))
        guarded.require(
            CircuitBreaker("breaker", minimumCalls: .max, window: duration, openDuration: duration, halfOpenCalls: .max)
        )
        await Self.live(guarded)
    }

    @Test("Any number of children is taken", arguments: [Int.max, 1]) func number(_ number: Int) async throws {
        let queue = OperationQueue()
        #expect(try await queue.map([1, 2], limit: number) { $0 } == [1, 2])
        await #expect(throws: OperationQueueError.self) { try await queue.map([1], limit: -number) { $0 } }
        let child = ScriptedOperation()
        child.require(ConcurrencyLimit("limit", number, maximumWaiting: number))
        try await queue.run(CompoundOperation(operations: [child], maxConcurrentOperationCount: number))
        for index in [number, -number] {
            let error = SuboperationError(
                name: "a", index: index, error: TestError.first, siblingCount: index, blockedCount: index)
            let whole = CompoundOperationError.suboperationFailure(name: "b", errors: [error, error])
            _ = (error.localizedDescription, whole.localizedDescription, whole.nsError.userInfo)
        }
        let observed = ScriptedOperation()
        let events = observed.events(bufferingNewest: number)
        observed.start()
        for await _ in events {}
    }
}

extension AsyncOperation {
    fileprivate func started() -> Self {
        start()
        return self
    }
}
