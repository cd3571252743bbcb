/// A state machine that decides when the runs of a repeated operation begin: at multiples of an interval, counted from the
/// begin of the first one. So they do not drift, however long the runs and the timers take.
struct RepeatSchedule: Sendable {
    private let interval: Duration
    private let maximumCount: Int?
    /// The number of the current run, from 1 on.
    private(set) var run = 1
    /// At which multiple of the interval it was due.
    private var tick = 0

    /// - Parameters:
    ///   - interval: More than zero. Less than a nanosecond counts as one, more than a century as a century.
    ///   - maximumCount: How many runs there are at most.
    init(every interval: Duration, maximumCount: Int?) {
        self.interval = min(max(interval, .nanoseconds(1)), .century)
        self.maximumCount = maximumCount
    }

    /// Whether another run is not allowed by number.
    var isLastRun: Bool { maximumCount.map { run >= $0 } ?? false }

    /// The current run ended, and is not the last one. From here on ``run`` is the number of the next one.
    ///
    /// Ticks that passed during the run are skipped. One at which it ended just now is not.
    ///
    /// - Parameter elapsed: The time since the first run began.
    /// - Returns: The delay before the next run.
    mutating func runEnded(elapsed: Duration) -> Duration {
        // A timer may have come early.
        tick = max(tick + 1, intervals(in: elapsed))
        run += 1
        return max(interval * tick - elapsed, .zero)
    }

    /// How many intervals the time has, rounded up.
    private func intervals(in time: Duration) -> Int {
        guard time > .zero else { return 0 }
        // The quotient may be off by one or two, where the numbers are large.
        var count = Int(min((time / interval).rounded(.up), 0x1p62))
        while count > 0, interval * (count - 1) >= time { count -= 1 }
        while interval * count < time { count += 1 }
        return count
    }
}
