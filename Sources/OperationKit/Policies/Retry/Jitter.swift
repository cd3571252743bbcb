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
    /// grow by themselves, so of the backoff only the initial delay and the maximum count.
    case decorrelated
}

/// The random delays of one operation, one after the other.
struct JitteredDelays: Sendable {
    private let backoff: Backoff
    private let jitter: Jitter
    private let initial: Duration
    private var random: JitterGenerator
    private var last: Duration

    init(_ backoff: Backoff, _ jitter: Jitter, seed: UInt64) {
        self.backoff = backoff
        self.jitter = jitter
        random = JitterGenerator(seed: seed)
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
            return delay.multiplied(by: random.nextFraction())
        case .equal:
            return delay.multiplied(by: 0.5 + random.nextFraction() / 2)
        case .decorrelated:
            let spread = last.multiplied(by: 3) - initial
            let delay = initial.adding(spread.multiplied(by: random.nextFraction()))
            last = min(delay, backoff.maximum ?? .longest).clamped
            return last
        }
    }
}

/// SplitMix64. That of the system cannot be seeded, and a schedule with a seed must be the same in all versions.
struct JitterGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// At least 0 and less than 1, all 53 bits of it.
    mutating func nextFraction() -> Double {
        Double(next() >> 11) * 0x1p-53
    }
}
