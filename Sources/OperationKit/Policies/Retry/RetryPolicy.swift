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

/// An error that knows how long to wait before another attempt: that of a service with a `Retry-After`, for example.
public protocol RetryAfterProviding: Error {
    /// The delay before the next attempt, in place of that of the policy for retries, which still limits the number of
    /// attempts and the total time. `nil` leaves the delay to the policy.
    ///
    /// Read once for each attempt that failed, on any thread other than those of the pool of Swift's tasks.
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
public enum RetryError: Error {
    /// The policy of a retry, repetition or hedge makes no sense. `problem` says what is wrong with it. No attempt was made. Code 1.
    case invalidPolicy(operation: String, problem: String)
    /// The shared budget does not allow another attempt. `error` is that of the last one. Code 2.
    case budgetExhausted(operation: String, attempts: Int, error: any Error)
    /// The operation that was made for an attempt had been started, or was that of an earlier attempt. Code 3.
    case operationReused(operation: String, attempt: Int)
}

extension RetryError: LocalizedError, CustomNSError, NestingError {
    var code: Int {
        switch self {
        case .invalidPolicy: 1
        case .budgetExhausted: 2
        case .operationReused: 3
        }
    }

    func text(depth: Int) -> String {
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

    var inside: (name: String, error: any Error)? {
        if case .budgetExhausted(let operation, _, let error) = self { (operation, error) } else { nil }
    }

    // Only a failure exhausts a budget. So nested budgets are not followed to their ends, once more at each level.
    var decidingError: (any Error)? { inside.flatMap { $0.error is RetryError ? nil : $0.error } }
}
