#if os(macOS) || os(Linux)
/// What is known of a program that was started, as a value: when it gets which signal, and when all of it is over.
///
/// A program is over when it has exited, and its pipes are at their end. Programs that it has left behind may hold the
/// pipes open, and write to them, for good. So a moment after its exit, when all that it has written itself was taken,
/// the pipes are given up. A program that was asked to end, before its exit or after it, is over only when its group has
/// ended, or a moment after that was killed.
///
/// The program is waited for when it is over, not when it exits. Until then its number, which is that of its group, can't
/// belong to another process, and the group can get signals.
struct ChildProcessState: Sendable {
    enum Action: Equatable, Sendable {
        /// End the group.
        case kill
        /// Give up the pipes.
        case closePipes
        /// Wait for the program, which has exited, and report the end. This releases its number.
        case end
    }

    /// How long to wait for the end of a pipe that other programs hold open.
    static let patience = Duration.milliseconds(100)

    private(set) var openPipes: Int
    private var exit = Exit.none
    private var termination = Termination.none
    private var giveUp: Duration?

    private enum Exit { case none, seen, groupEnded, reported }

    private enum Termination {
        case none
        case requested(killAt: Duration)
        case killed(awaitedUntil: Duration)
    }

    init(openPipes: Int) {
        self.openPipes = openPipes
    }

    /// Whether the group of the program may still get signals.
    var isAlive: Bool { exit == .none || exit == .seen }

    /// Whether other programs of the group hold up the end of this one, which has exited and was asked to end.
    var awaitsGroup: Bool { exit == .seen && isTerminating }

    /// Whether the exit of the program has not been seen.
    var awaitsExit: Bool { exit == .none }

    /// Whether only what the program itself has written is still read: others that hold its pipes open have had their moment.
    func readsOnlyRest(at now: Duration) -> Bool {
        if let giveUp { giveUp <= now } else { false }
    }

    // MARK: - Events

    /// The program and its group were asked to end, or have to be ended, if there is no grace period. Only the first request counts.
    mutating func terminationRequested(gracePeriod: Duration, at now: Duration) -> [Action] {
        guard isAlive, case .none = termination else { return [] }
        // The others have another moment once they have ended.
        giveUp = nil
        guard gracePeriod > .zero else {
            termination = .killed(awaitedUntil: now + Self.patience)
            return [.kill]
        }
        termination = .requested(killAt: now + gracePeriod)
        return []
    }

    /// The program has exited.
    mutating func exited() {
        if exit == .none { exit = .seen }
    }

    /// A pipe is at its end.
    mutating func pipeClosed() {
        openPipes -= 1
    }

    /// No other program of the group runs.
    mutating func groupEnded() {
        if exit == .seen { exit = .groupEnded }
    }

    /// Some time has passed, or something has happened.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - isBusy: Whether something that the program has written was not read, or not taken by its handler.
    /// - Returns: What to do, in this order.
    mutating func advance(to now: Duration, isBusy: Bool) -> [Action] {
        var actions: [Action] = []
        if isAlive, case .requested(let killAt) = termination, killAt <= now {
            termination = .killed(awaitedUntil: now + Self.patience)
            actions.append(.kill)
        }
        if case .killed(let end) = termination, end <= now { groupEnded() }
        guard exit == .groupEnded || exit == .seen && !isTerminating else { return actions }
        let giveUp = giveUp ?? now + Self.patience
        self.giveUp = giveUp
        if openPipes > 0, giveUp <= now, !isBusy {
            openPipes = 0
            actions.append(.closePipes)
        }
        if openPipes == 0, !isBusy {
            exit = .reported
            actions.append(.end)
        }
        return actions
    }

    /// When ``advance(to:isBusy:)`` has to be called at the latest.
    func deadline(isBusy: Bool) -> Duration? {
        switch termination {
        case .requested(let killAt) where isAlive: return killAt
        case .killed(let end) where awaitsGroup: return end
        default: return exit == .reported || isBusy ? nil : giveUp
        }
    }

    private var isTerminating: Bool {
        if case .none = termination { false } else { true }
    }
}
#endif
