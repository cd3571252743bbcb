extension RetryPolicy {
    /// Makes attempts until one succeeds, or the policy allows no further one.
    ///
    /// - Parameters:
    ///   - name: What is tried, for errors. Called for these only.
    ///   - index: Varies the jitter among callers that share a seeded policy.
    ///   - clock: What the time is measured with.
    ///   - body: The body of a composite, if it is that which makes the attempts.
    ///   - wait: Lets the delay before a retry pass, after the attempt with this number has failed with this error.
    ///   - attempt: Makes an attempt. What it throws ends the loop; a failure that it returns may be retried.
    /// - Returns: The output of the first attempt that succeeds.
    /// - Throws: The error of the last attempt. ``RetryError`` if the policy makes no sense, or its budget is exhausted.
    func retrying<Output: Sendable>(
        named name: () -> String, index: Int = 0, clock: any Clock<Duration>, in body: CompositeBody? = nil,
        wait: (_ attempt: Int, _ error: any Error, _ delay: Duration) async throws -> Void,
        attempt: (_ number: Int) async throws -> Result<Output, any Error>
    ) async throws -> Output {
        if let problem { throw RetryError.invalidPolicy(operation: name(), problem: problem) }
        var delays = JitteredDelays(
            backoff, jitter, seed: (seed ?? .random(in: .min ... .max)) &+ UInt64(bitPattern: Int64(index)))
        let time = TimeSource(clock)
        budget?.callBegan()
        var number = 1
        while true {
            let error: any Error
            switch try await attempt(number) {
            case .success(let output): return output
            case .failure(let failure): error = failure
            }
            guard number < maximumAttempts, !Task.isCancelled, !error.isCancellation, !error.isLasting,
                let answer = await ask(about: error, of: number, in: body), answer.isWorthRetry, !Task.isCancelled
            else { throw error }
            let delay = answer.requestedDelay?.clamped ?? delays.next(beforeRetry: number)
            if let maximumTotalTime, time.now().adding(delay) > maximumTotalTime { throw error }
            func askBudget(begins: Bool) throws {
                guard budget?.admitsRetry(begins: begins) == false else { return }
                throw RetryError.budgetExhausted(operation: name(), attempts: number, error: error)
            }
            try askBudget(begins: false)
            try await wait(number, error, delay)
            try askBudget(begins: true)
            number += 1
        }
    }

    /// Asks the policy about an error, and then the error for its delay, on a thread that they may block.
    ///
    /// - Returns: `nil` if the task was cancelled meanwhile.
    private func ask(
        about error: any Error, of attempt: Int, in body: CompositeBody?
    ) async -> (isWorthRetry: Bool, requestedDelay: Duration?)? {
        let question: @Sendable () -> (Bool, Duration?) = {
            let isWorthRetry = shouldRetry(error, attempt)
            return (isWorthRetry, isWorthRetry ? error.requestedDelay : nil)
        }
        return if let body { try? await body.call(question) } else { try? await runUserClosure(question) }
    }

    /// Calls an `async` function of the user until it succeeds, in the current task.
    func perform<Output: Sendable>(
        named name: @Sendable () -> String, index: Int = 0, clock: any Clock<Duration>,
        wait: ((_ attempt: Int, _ error: any Error, _ delay: Duration) async throws -> Void)? = nil,
        requesting request: (@Sendable () async throws -> FinishHandle<Void>?)? = nil,
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        try await retrying(named: name, index: index, clock: clock) { number, error, delay in
            if let wait { try await wait(number, error, delay) } else { try await clock.pause(for: delay) }
        } attempt: { _ in
            await Result {
                let finish = try await request?()
                let result = await Result { try await attempt(named: name, clock, body) }
                finish?.callAsFunction(result.error)
                return try result.get()
            }
        }
    }

    /// Makes one call, which is cancelled when it takes longer than the policy allows.
    private func attempt<Output: Sendable>(
        named name: @Sendable () -> String, _ clock: any Clock<Duration>,
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        guard let attemptTimeout else { return try await body() }
        let task = Task { try await body() }
        let hasExpired = Locked(false)
        let deadline = clock.timer.arm(for: hasExpired, after: attemptTimeout) {
            ($0 as? Locked<Bool>)?.withLock { $0 = true }
            task.cancel()
        }
        let result = await withCancellationDelivered {
            task.cancel()
        } during: {
            await task.result
        }
        deadline.disarm()
        if case .failure(let error) = result, error.isCancellation, hasExpired.withLock(\.self), !Task.isCancelled {
            throw OperationTimeoutError(operation: name(), timeout: attemptTimeout)
        }
        return try result.get()
    }
}

extension Error {
    /// Whether another attempt would have the same error: what it requires is held until all of them have ended.
    fileprivate var isLasting: Bool {
        if case .heldByComposite? = self as? ResourceError { true } else { false }
    }
}

extension Clock where Duration == Swift.Duration {
    /// Suspends until some time has passed. Leaves nothing behind, other than a cancelled sleep of a clock of the system.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    func pause(for duration: Duration) async throws {
        try Task.checkCancellation()
        guard duration > .zero else { return }
        let pause = startPause(for: duration)
        defer { pause.cancel() }
        try await pause.waitForFinish()
    }

    /// Returns an operation that ends when some time has passed from now on.
    func startPause(for duration: Duration) -> DelayOperation {
        let pause = DelayOperation(for: duration)
        pause.clock = self
        pause.hideFromObservers()
        pause.start()
        return pause
    }
}

/// One attempt of a ``RetryOperation``.
public struct RetryAttempt: Sendable {
    /// Its number, from 1 on.
    public let number: Int
    /// When it began: the time since the first attempt did.
    public let start: Duration
    /// How long it took; `nil` as long as it has not ended.
    public internal(set) var duration: Duration?
    /// The error that it ended with; `nil` for success, and as long as it has not ended.
    public internal(set) var error: (any Error)?
}
