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
    /// The beginning of the random numbers. With the same seed the delays are the same, in each run and on all platforms.
    /// Without one they differ from operation to operation.
    public var seed: UInt64?
    /// How long an attempt may take. An attempt that takes longer ends with an ``OperationTimeoutError``, and is retried.
    ///
    /// The time begins with the `main()` of the attempt, as that of every ``AsyncOperation/timeout``, or with the call of the closure:
    /// waiting for resources is not limited by it. A compound, a map or gathered operations end with
    /// ``CompoundOperationError/cancelled(name:errors:reason:)``, whose reason is the ``OperationTimeoutError``.
    public var attemptTimeout: Duration?
    /// The time from the begin of the first attempt in which retries begin. No delay begins that would pass it. An attempt
    /// that has begun is not stopped by it.
    public var maximumTotalTime: Duration?
    /// What keeps the retries of many operations below a fraction of their calls. It is asked before a delay, and a retry is taken
    /// from it after that, when it begins.
    public var budget: RetryBudget?
    /// Says whether an error is worth another attempt, which is number `attempt + 1`. The default retries all errors.
    ///
    /// Called once for each attempt that failed and is not the last one, on any thread, and without a lock.
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
}

extension RetryPolicy {
    /// What is wrong with the policy, as the middle of a sentence.
    var problem: String? {
        if maximumAttempts < 1 { return "its maximumAttempts is \(maximumAttempts)" }
        if let attemptTimeout, attemptTimeout <= .zero { return "its attemptTimeout is \(attemptTimeout)" }
        if let maximumTotalTime, maximumTotalTime <= .zero { return "its maximumTotalTime is \(maximumTotalTime)" }
        return backoff.problem
    }
}
