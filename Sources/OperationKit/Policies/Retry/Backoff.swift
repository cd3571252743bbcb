import Foundation

/// How long to wait before each retry: always the same time, or longer each time.
///
/// ```swift
/// let backoff = Backoff.exponential(.milliseconds(200), maximum: .seconds(10))
/// assert(backoff.delay(beforeRetry: 1) == .milliseconds(200))
/// assert(backoff.delay(beforeRetry: 2) == .milliseconds(400))
/// assert(backoff.delay(beforeRetry: 50) == .seconds(10))
/// ```
///
/// A ``Jitter`` shortens or spreads these delays, so that clients that failed together do not come back together.
public struct Backoff: Sendable, Hashable {
    private enum Growth: Hashable {
        /// By this for each retry.
        case linear(Duration)
        /// To this multiple with each retry.
        case exponential(Double)
    }

    let initial: Duration
    let maximum: Duration?
    private let growth: Growth

    /// No delay: each retry begins immediately.
    public static let none = constant(.zero)

    /// The same delay before each retry.
    ///
    /// - Parameter delay: The delay.
    /// - Returns: The backoff.
    public static func constant(_ delay: Duration) -> Backoff {
        Backoff(initial: delay, maximum: nil, growth: .linear(.zero))
    }

    /// A delay that grows by the same time with each retry.
    ///
    /// - Parameters:
    ///   - initial: The delay before the first retry.
    ///   - increment: By how much it grows. The default is the initial delay.
    ///   - maximum: No delay is longer. A policy whose maximum is below the initial delay is invalid.
    /// - Returns: The backoff.
    public static func linear(
        _ initial: Duration, increment: Duration? = nil, maximum: Duration? = nil
    ) -> Backoff {
        Backoff(initial: initial, maximum: maximum, growth: .linear(increment ?? initial))
    }

    /// A delay that grows to a multiple with each retry.
    ///
    /// Without a maximum it grows without bounds; what is too long for a `Duration` is cut, and does not trap.
    ///
    /// - Parameters:
    ///   - initial: The delay before the first retry.
    ///   - factor: The multiple, at least 1.
    ///   - maximum: No delay is longer. A policy whose maximum is below the initial delay is invalid.
    /// - Returns: The backoff.
    public static func exponential(
        _ initial: Duration, factor: Double = 2, maximum: Duration? = nil
    ) -> Backoff {
        Backoff(initial: initial, maximum: maximum, growth: .exponential(factor))
    }

    /// Returns the delay before a retry, without jitter.
    ///
    /// It is never negative, and what is too long for a `Duration` is cut.
    ///
    /// - Parameter number: The number of the retry: 1 for the second attempt.
    /// - Returns: The delay.
    public func delay(beforeRetry number: Int) -> Duration {
        let steps = max(number, 1) - 1
        let delay =
            switch growth {
            case .linear(let increment): initial.adding(increment.multiplied(by: Double(steps)))
            case .exponential(let factor): initial.multiplied(by: pow(factor, Double(steps)))
            }
        return min(delay, maximum ?? .longest).clamped
    }

    /// What is wrong with the backoff, as the middle of a sentence.
    var problem: String? {
        if initial < .zero { return "its backoff begins with a delay of \(initial)" }
        if let maximum, maximum < initial { return "its backoff begins with \(initial), and its maximum is \(maximum)" }
        return switch growth {
        case .linear(let increment) where increment < .zero: "its backoff grows by \(increment)"
        case .exponential(let factor) where !(factor >= 1 && factor.isFinite):
            "its backoff grows by a factor of \(factor)"
        default: nil
        }
    }
}

/// How the delays of a ``Backoff`` are spread at random.
///
/// Many clients of a service fail at the same moment, when it does. Without jitter they all come back at the same moment,
/// too, again and again.
public enum Jitter: Sendable, Hashable, CaseIterable {
    /// The delay as it is.
    case none
    /// Any time up to the delay. It spreads best, and is the default of a ``RetryPolicy``.
    case full
    /// The half of the delay, and any time up to the other half.
    case equal
    /// Any time from the initial delay up to three times the last one, and at most the maximum of the backoff. The delays
    /// grow by themselves, though not from zero, so of the backoff only the initial delay and the maximum count.
    case decorrelated
}

/// The random delays of one operation, one after the other.
struct JitteredDelays {
    private let backoff: Backoff
    private let jitter: Jitter
    private let initial: Duration
    private var last: Duration
    private var randomState: UInt64

    init(_ backoff: Backoff, _ jitter: Jitter, seed: UInt64) {
        self.backoff = backoff
        self.jitter = jitter
        randomState = seed
        initial = backoff.initial.clamped
        last = initial
    }

    /// Returns the delay before a retry; retries come in the order of their numbers.
    mutating func next(beforeRetry number: Int) -> Duration {
        let delay = backoff.delay(beforeRetry: number)
        switch jitter {
        case .none:
            return delay
        case .full:
            return delay.multiplied(by: nextFraction())
        case .equal:
            return delay.multiplied(by: 0.5 + nextFraction() / 2)
        case .decorrelated:
            let spread = last.multiplied(by: 3) - initial
            let delay = initial.adding(spread.multiplied(by: nextFraction()))
            last = min(delay, backoff.maximum ?? .longest).clamped
            return last
        }
    }

    /// A random number, at least 0 and less than 1, by SplitMix64: the generator of the system cannot be seeded, and delays with a
    /// seed must be the same in all versions.
    private mutating func nextFraction() -> Double {
        randomState &+= 0x9E37_79B9_7F4A_7C15
        var mixed = randomState
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        return Double(mixed >> 11) * 0x1p-53
    }
}
