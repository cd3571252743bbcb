extension Clock where Duration == Swift.Duration {
    /// The timer for deadlines of this clock: always the same one for a `ContinuousClock`, a `SuspendingClock` and a clock that
    /// is a class, while it lasts; another one each time for other clocks.
    var timer: DeadlineTimer {
        if self is ContinuousClock { return SharedTimers.continuous }
        if self is SuspendingClock { return SharedTimers.suspending }
        guard Self.self is AnyClass else { return DeadlineTimer(TimeSource(self)) }
        return SharedTimers.timer(for: self, identity: ObjectIdentifier(self as AnyObject))
    }
}

/// The timers that all deadlines of a clock share.
private enum SharedTimers {
    static let continuous = DeadlineTimer(TimeSource(ContinuousClock()), usesThread: true)
    static let suspending = DeadlineTimer(TimeSource(SuspendingClock()), usesThread: true)

    private struct Entry: Sendable {
        weak var timer: DeadlineTimer?
    }

    /// The timers of clocks that are classes. A timer holds its clock, so no identity is used again while it is in use.
    private static let entries = Locked<[ObjectIdentifier: Entry]>([:])

    static func timer(for clock: some Clock<Duration>, identity: ObjectIdentifier) -> DeadlineTimer {
        if let timer = entries.withLock({ $0[identity]?.timer }) { return timer }
        let created = DeadlineTimer(TimeSource(clock)) { timerWasReleased(identity) }
        return entries.withLock { entries in
            // Another thread may have been faster.
            if let timer = entries[identity]?.timer { return timer }
            entries[identity] = Entry(timer: created)
            return created
        }
    }

    private static func timerWasReleased(_ identity: ObjectIdentifier) {
        // Another timer may have taken the place. If it is released at this moment, then not with the lock held.
        let successor = entries.withLock { entries in
            let successor = entries[identity]?.timer
            if successor == nil { entries[identity] = nil }
            return successor
        }
        withExtendedLifetime(successor) {}
    }
}

/// A clock without its type, whose time is the duration since it was made a source.
struct TimeSource: Sendable {
    /// The time that has passed.
    let now: @Sendable () -> Duration
    /// Suspends until so much time has passed. Throws if the task is cancelled before.
    let sleep: @Sendable (_ deadline: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
