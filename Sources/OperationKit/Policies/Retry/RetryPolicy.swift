public import Foundation

/// When to try again what failed, how often, and after which delays.
///
/// ```swift
/// var policy = RetryPolicy(maximumAttempts: 5, backoff: .exponential(.milliseconds(100), maximum: .seconds(5)))
/// policy.attemptTimeout = .seconds(10)
/// policy.shouldRetry = { error, _ in !(error is DecodingError) }
/// ```
///
/// A cancellation, for which `isCancellation` is true, is never retried.
public struct RetryPolicy: Sendable {
    /// The maximum number of attempts, with the first one. At least 1.
    public var maximumAttempts: Int
    /// The delays before retries. An error that is a ``RetryAfterProviding`` can ask for another one.
    public var backoff: Backoff
    /// How the delays are spread at random.
    public var jitter: Jitter
    /// The beginning of the random numbers. With the same seed the delays are the same in each run, and on all platforms but for
    /// the last digits of exponential ones.
    /// Without one they differ from operation to operation.
    public var seed: UInt64?
    /// How long an attempt may take, if its own ``AsyncOperation/timeout`` is not shorter. An attempt that takes longer is cancelled. If
    /// it ends as cancelled, it has failed with an ``OperationTimeoutError``, and is retried, unless ``shouldRetry`` refuses that.
    ///
    /// The time begins with the `main()` of the attempt, as that of every ``AsyncOperation/timeout``, or with the call of the closure:
    /// waiting for resources is not limited by it. A compound, a map or gathered operations end with
    /// ``CompoundOperationError/cancelled(name:errors:reason:)``, whose reason is the ``OperationTimeoutError``.
    public var attemptTimeout: Duration?
    /// The time in which retries begin, from the call of the closure for the first attempt on; without operations for the attempts,
    /// from the request of the resources for it on. No delay begins that would pass it. An attempt that has begun is not stopped by it.
    public var maximumTotalTime: Duration?
    /// What keeps the retries of many operations below a fraction of their calls. It is asked before a delay, and a retry is taken
    /// from it after that, when it begins.
    public var budget: RetryBudget?
    /// Says whether an error is worth another attempt, which is number `attempt + 1`. The default retries all errors.
    ///
    /// Called once for each attempt that failed, was not cancelled and is not the last one, on any thread, and without a lock.
    /// Not called for ``ResourceError/heldByComposite(operation:resource:composite:)``, which no further attempt could change.
    /// It may block its thread, which is none of the pool of Swift's tasks. It may cancel the operation, which then ends with the
    /// error.
    public var shouldRetry: @Sendable (_ error: any Error, _ attempt: Int) -> Bool

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The maximum number of attempts, with the first one.
    ///   - backoff: The delays before retries.
    ///   - jitter: How the delays are spread at random.
    ///   - shouldRetry: Says whether an error is worth another attempt.
    public init(
        maximumAttempts: Int = 3, backoff: Backoff = .exponential(.seconds(1), maximum: .seconds(60)),
        jitter: Jitter = .full,
        shouldRetry: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> Bool = { _, _ in true }
    ) {
        self.maximumAttempts = maximumAttempts
        self.backoff = backoff
        self.jitter = jitter
        self.shouldRetry = shouldRetry
    }

    /// What is wrong with the policy, as the middle of a sentence.
    var problem: String? {
        if maximumAttempts < 1 { return "its maximumAttempts is \(maximumAttempts)" }
        if let attemptTimeout, attemptTimeout <= .zero { return "its attemptTimeout is \(attemptTimeout)" }
        if let maximumTotalTime, maximumTotalTime <= .zero { return "its maximumTotalTime is \(maximumTotalTime)" }
        return backoff.problem
    }
}

/// An error that knows how long to wait before another attempt: that of a service with a `Retry-After`, for example.
public protocol RetryAfterProviding: Error {
    /// The delay before the next attempt, in place of that of the policy for retries, which still limits the number of
    /// attempts and the total time. `nil` leaves the delay to the policy.
    ///
    /// Read once for each attempt that failed and would be retried, on any thread other than those of the pool of Swift's tasks.
    var retryAfter: Duration? { get }
}

extension Error {
    /// The delay that the error asks for, or the longest one that errors inside it ask for.
    var requestedDelay: Duration? {
        let mostErrors = 1_000
        var open: [any Error] = [self]
        var longest: Duration?
        for _ in 0..<mostErrors {
            guard let error = open.popLast() else { break }
            if let delay = (error as? any RetryAfterProviding)?.retryAfter {
                longest = max(longest ?? delay, delay)
            } else {
                open += (error as? any NestingError)?.errorsInside(atMost: mostErrors).map(\.error) ?? []
            }
        }
        return longest
    }
}

/// Why an operation was not attempted, or not once more, although its policy would allow it.
///
/// An operation whose attempts have all failed ends with the error of the last one, and not with this.
public enum RetryError: LocalizedError, CustomNSError, CancellableError, NestingError {
    /// The policy of a retry or a ``MapOperation``, or an option of a repetition or hedge, makes no sense. `problem` says what is wrong
    /// with it. No attempt was made. Code 1.
    case invalidPolicy(operation: String, problem: String)
    /// The shared budget does not allow another attempt. `error` is that of the last one. Code 2.
    case budgetExhausted(operation: String, attempts: Int, error: any Error)
    /// The operation that was made for an attempt had been started, or was that of an earlier attempt. Code 3.
    case operationReused(operation: String, attempt: Int)

    package var numericCode: Int {
        switch self {
        case .invalidPolicy: 1
        case .budgetExhausted: 2
        case .operationReused: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .invalidPolicy(let operation, let problem):
            "The operation “\(operation)” did not run, because of its policy: \(problem)."
        case .budgetExhausted(let operation, let attempts, let error):
            "The operation “\(operation)” was not tried again after \(attempts == 1 ? "1 attempt" : "\(attempts) attempts"), because the retry budget is exhausted. The last one"
                + error.explanation(depth: depth)
        case .operationReused(let operation, let attempt):
            "Call \(attempt) of the closure of “\(operation)” returned an operation that was used before. Create a new one each time."
        }
    }

    var inside: NamedError? {
        if case .budgetExhausted(let operation, _, let error) = self { (operation, error) } else { nil }
    }

    // Only a failure exhausts a budget. So nested budgets are not followed to their ends, once more at each level.
    var decidingError: (any Error)? { inside.flatMap { $0.error is RetryError ? nil : $0.error } }
}

extension RetryPolicy {
    /// Lets the delay before a retry pass, after the attempt with this number has failed with this error.
    typealias Wait = (_ attempt: Int, _ error: any Error, _ delay: Duration) async throws -> Void

    /// Makes attempts until one succeeds, or the policy allows no further one.
    ///
    /// - Parameters:
    ///   - name: What is tried, for errors. Called for these only.
    ///   - index: Varies the jitter among callers that share a seeded policy.
    ///   - clock: What the time is measured with.
    ///   - children: Those of a composite, if it is its body that makes the attempts.
    ///   - wait: Lets a delay pass.
    ///   - attempt: Makes an attempt. What it throws ends the loop; a failure that it returns may be retried.
    /// - Returns: The output of the first attempt that succeeds.
    /// - Throws: The error of the last attempt. ``RetryError`` if the policy makes no sense, or its budget is exhausted.
    func retrying<Output: Sendable>(
        named name: () -> String, index: Int = 0, clock: any Clock<Duration>, in children: ChildScheduler? = nil,
        wait: Wait,
        attempt: (_ number: Int) async throws -> Result<Output, any Error>
    ) async throws -> Output {
        if let problem { throw RetryError.invalidPolicy(operation: name(), problem: problem) }
        var delays = JitteredDelays(
            backoff, jitter, seed: (seed ?? .random(in: .min ... .max)) &+ UInt64(bitPattern: Int64(index)))
        let time = TimeSource(clock)
        budget?.callBegan()
        var number = 1
        while true {
            let result = try await attempt(number)
            guard let error = result.error else { return try result.get() }
            guard number < maximumAttempts, !Task.isCancelled, !error.isCancellation, !error.isLasting,
                let answer = await ask(about: error, of: number, in: children), answer.isWorthRetry, !Task.isCancelled
            else { throw error }
            let delay = answer.requestedDelay?.clamped ?? delays.next(beforeRetry: number)
            if let maximumTotalTime, time.now().adding(delay) > maximumTotalTime { throw error }
            func askBudget(begins: Bool) throws {
                guard budget?.allowsRetry(begins: begins) == false else { return }
                throw RetryError.budgetExhausted(operation: name(), attempts: number, error: error)
            }
            try askBudget(begins: false)
            try await wait(number, error, delay)
            // An observer of the retry may have cancelled it.
            try Task.checkCancellation()
            try askBudget(begins: true)
            number += 1
        }
    }

    /// Asks the policy about an error, and then the error for its delay, on a thread that they may block.
    ///
    /// - Returns: `nil` if the task was cancelled meanwhile.
    private func ask(
        about error: any Error, of attempt: Int, in children: ChildScheduler?
    ) async -> (isWorthRetry: Bool, requestedDelay: Duration?)? {
        let question: @Sendable () -> (Bool, Duration?) = {
            let isWorthRetry = shouldRetry(error, attempt)
            return (isWorthRetry, isWorthRetry ? error.requestedDelay : nil)
        }
        return if let children { try? await children.call(question) } else { try? await runUserClosure(question) }
    }

    /// Calls an `async` function of the user until it succeeds, in the current task.
    func perform<Output: Sendable>(
        named name: @Sendable () -> String, index: Int = 0, clock: any Clock<Duration>,
        wait: Wait? = nil,
        requesting request: (@Sendable () async throws -> FinishHandle<Void>?)? = nil,
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        let wait = wait ?? { _, _, delay in try await clock.pause(for: delay) }
        return try await retrying(named: name, index: index, clock: clock, wait: wait) { _ in
            await Result {
                let finish = try await request?()
                let result = await Result {
                    // A cancellation may have come while the attempt waited for its turn.
                    try Task.checkCancellation()
                    return try await attempt(named: name, clock, body)
                }
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
        // The thread of the timer may be the last to release the closure, which must not hold what the task returns.
        let task = Reference(Task { try await body() })
        let deadline = clock.timer.arm(for: task, after: attemptTimeout) { [weak task] _ in task?.value.cancel() }
        let result = await withCancellationDelivered(to: task.value.cancel) {
            await task.value.result
        }
        withExtendedLifetime(task) {}
        if !deadline.disarm(), case .failure(let error) = result, error.isCancellation, !Task.isCancelled {
            throw OperationTimeoutError(operation: name(), timeout: attemptTimeout)
        }
        return try result.get()
    }
}

extension Error {
    /// Whether another attempt would have the same error: what it requires is held until all of them have ended.
    var isLasting: Bool {
        if case .heldByComposite? = self as? ResourceError { true } else { false }
    }
}

extension Clock where Duration == Swift.Duration {
    /// Suspends until some time has passed. Leaves nothing behind, other than a cancelled sleep of a clock of the system.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    func pause(for duration: Duration, began: () -> Void = {}) async throws {
        try Task.checkCancellation()
        guard duration > .zero else { return began() }
        let pause = startPause(for: duration)
        began()
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
    public let duration: Duration?
    /// The error that it ended with; `nil` for success, and as long as it has not ended.
    public let error: (any Error)?
}
