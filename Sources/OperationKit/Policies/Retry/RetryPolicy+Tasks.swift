import Dispatch

/// Retries of `async` functions, in the current task. ``RetryOperation`` makes an operation for each attempt.
extension RetryPolicy {
    /// Calls a function until it succeeds, or the policy allows no further call.
    ///
    /// Cancelling the task ends a pause between two calls, and no further call is made. What a call that was cancelled returns or
    /// throws is the result.
    ///
    /// - Parameters:
    ///   - name: What is tried, for errors. Called for these only.
    ///   - index: Which one it is of those that share a policy, so that with a seed their delays are not all the same.
    ///   - clock: What the time is measured with.
    ///   - willRetry: Called before a pause, with the number of the call that has failed, its error, and the pause.
    ///   - body: The function.
    /// - Returns: What the first call returns that does not throw.
    /// - Throws: The error of the last call. ``RetryError`` if the policy makes no sense, or its budget is exhausted.
    func perform<Output: Sendable>(
        named name: @Sendable () -> String, index: Int = 0, clock: any Clock<Duration>,
        willRetry: (_ attempt: Int, _ error: any Error, _ delay: Duration) -> Void = { _, _, _ in },
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        if let problem { throw RetryError.invalidPolicy(operation: name(), problem: problem) }
        var schedule = RetrySchedule(self, index: index)
        let time = TimeSource(clock)
        budget?.callBegan()
        while true {
            let failure: any Error
            do {
                return try await attempt(named: name, clock, body)
            } catch {
                failure = error
            }
            let attempt = schedule.attempt
            guard let delay = await pause(after: failure, in: &schedule, time) else { throw failure }
            if let budget, !budget.allowsRetry {
                throw RetryError.budgetExhausted(operation: name(), attempts: attempt, error: failure)
            }
            willRetry(attempt, failure, delay)
            try await clock.pause(for: delay)
            if let budget, !budget.takeRetry() {
                throw RetryError.budgetExhausted(operation: name(), attempts: attempt, error: failure)
            }
        }
    }

    /// - Returns: How long to wait before the next call; `nil` if there is none, and the error stands.
    private func pause(
        after error: any Error, in schedule: inout RetrySchedule, _ time: TimeSource
    ) async -> Duration? {
        if Task.isCancelled || error.isCancellation || schedule.isLastAttempt { return nil }
        let (isWorthRetry, requestedDelay) = await ask(about: error, of: schedule.attempt)
        // What was asked may have cancelled the task.
        guard isWorthRetry, !Task.isCancelled,
            case .retry(let delay) = schedule.attemptFailed(requestedDelay: requestedDelay, elapsed: time.now())
        else { return nil }
        return delay
    }

    /// Asks the policy about an error, and then the error for its delay, on a thread that code of the user's may block.
    private func ask(about error: any Error, of attempt: Int) async -> (isWorthRetry: Bool, requestedDelay: Duration?) {
        await withCheckedContinuation { continuation in
            DispatchQueue.makeDedicated().performAsync {
                let isWorthRetry = shouldRetry(error, attempt)
                continuation.resume(returning: (isWorthRetry, isWorthRetry ? error.requestedDelay : nil))
            }
        }
    }

    /// Makes one call, which is cancelled when it takes longer than the policy allows.
    private func attempt<Output: Sendable>(
        named name: () -> String, _ clock: any Clock<Duration>, _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        guard let attemptTimeout else { return try await body() }
        let task = Task { try await body() }
        let expiry = Expiry { task.cancel() }
        let deadline = clock.timer.arm(for: expiry, after: attemptTimeout) { $0.come() }
        let result = await withCancellationDelivered {
            task.cancel()
        } during: {
            await task.result
        }
        deadline.disarm()
        if case .failure(let error) = result, error.isCancellation, expiry.hasCome, !Task.isCancelled {
            throw OperationTimeoutError(operation: name(), timeout: attemptTimeout)
        }
        return try result.get()
    }
}

/// The end of the time of an attempt.
private final class Expiry: Sendable {
    private let isOver = Locked(false)
    private let action: @Sendable () -> Void

    init(_ action: @escaping @Sendable () -> Void) {
        self.action = action
    }

    var hasCome: Bool { isOver.withLock(\.self) }

    func come() {
        isOver.withLock { $0 = true }
        action()
    }
}

extension Clock where Duration == Swift.Duration {
    /// Suspends until some time has passed. Leaves nothing behind, other than a cancelled sleep of a clock of the system.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    func pause(for duration: Duration) async throws {
        try Task.checkCancellation()
        guard duration > .zero else { return }
        let delay = DelayOperation(for: duration)
        delay.clock = self
        delay.hideFromObservers()
        delay.start()
        defer { delay.cancel() }
        try await delay.waitForFinish()
    }
}
