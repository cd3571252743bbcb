/// A state machine that decides after each attempt of an operation whether another one follows, and when.
///
/// It decides by numbers and times. What only code of the user's can say, whether an error is worth another attempt, is
/// asked before, without a lock, and the budget after it.
struct RetrySchedule: Sendable {
    enum Decision: Equatable, Sendable {
        /// Begin the next attempt after this delay.
        case retry(after: Duration)
        /// There were as many attempts as allowed.
        case attemptsExhausted
        /// The next attempt would begin too late.
        case timeExhausted
    }

    private let maximumAttempts: Int
    private let maximumTotalTime: Duration?
    private var delays: JitteredDelays
    /// The number of the current attempt, from 1 on.
    private(set) var attempt = 1

    /// - Parameters:
    ///   - policy: A valid policy.
    ///   - index: Which one it is of those that share the policy, and shall not have the same delays.
    ///   - seed: The seed, where the policy has none.
    init(_ policy: RetryPolicy, index: Int = 0, seed: UInt64 = .random(in: .min ... .max)) {
        maximumAttempts = policy.maximumAttempts
        maximumTotalTime = policy.maximumTotalTime
        delays = JitteredDelays(
            policy.backoff, policy.jitter, seed: (policy.seed ?? seed) &+ UInt64(bitPattern: Int64(index)))
    }

    /// Whether another attempt is allowed by number. Without it, no code of the user's needs to be asked.
    var isLastAttempt: Bool { attempt >= maximumAttempts }

    /// The current attempt failed, with an error that is worth another one.
    ///
    /// - Parameters:
    ///   - requestedDelay: The delay that the error asks for.
    ///   - elapsed: The time since the first attempt began.
    /// - Returns: What follows. After a retry, ``attempt`` is the number of the next one.
    mutating func attemptFailed(requestedDelay: Duration? = nil, elapsed: Duration) -> Decision {
        if isLastAttempt { return .attemptsExhausted }
        let delay = requestedDelay?.clamped ?? delays.next(beforeRetry: attempt)
        if let maximumTotalTime, elapsed.adding(delay) > maximumTotalTime { return .timeExhausted }
        attempt += 1
        return .retry(after: delay)
    }
}
