/// A state machine that decides which attempts of a hedged operation begin, and which one wins.
///
/// One attempt is begun at a time: what makes another one due meanwhile is remembered until that has begun.
struct HedgeStateMachine: Hashable, Sendable {
    /// How an attempt has ended.
    enum Ending: CaseIterable, Sendable {
        case success, failure
        /// It was cancelled by itself.
        case cancellation
    }

    enum Action: Hashable, Sendable {
        /// End the delay, if there is one, and begin the attempt with this number: make it, begin a delay unless it is the last
        /// one, run it, and then report ``HedgeStateMachine/began()`` or ``HedgeStateMachine/beginFailed()``.
        case begin(Int, isLast: Bool)
        /// End the delay, if there is one.
        case endDelay
        /// The same, and cancel all attempts but the winner.
        case cancelOthers
    }

    private enum Stage: Hashable {
        /// Further attempts may begin.
        case open
        /// No further attempt begins. Those that run go on.
        case closed
        /// An attempt has won, or could not be made.
        case decided
    }

    private let maximumAttempts: Int
    private var stage = Stage.open
    /// The number of the attempt that was begun last.
    private(set) var last = 0
    private var isBeginning = false
    /// How many attempts more are due when the one that is being begun has begun.
    private var dueCount = 0
    /// The number of the first attempt that succeeded.
    private(set) var winner: Int?

    /// - Parameter maximumAttempts: How many attempts there are at most, at least 1.
    init(maximumAttempts: Int) {
        self.maximumAttempts = maximumAttempts
    }

    /// Whether what runs is not needed any more.
    var isDecided: Bool { stage == .decided }

    /// The operation has started.
    mutating func started() -> Action? { nextIsDue() }

    /// The attempt that was being begun runs.
    mutating func began() -> Action? {
        isBeginning = false
        switch stage {
        case .open:
            guard dueCount > 0 else { return nil }
            dueCount -= 1
            return nextIsDue()
        // A delay may have been begun since.
        case .closed: return .endDelay
        case .decided: return .cancelOthers
        }
    }

    /// The attempt that was being begun cannot run.
    mutating func beginFailed() -> Action? {
        isBeginning = false
        if stage == .decided { return .endDelay }
        stage = .decided
        return .cancelOthers
    }

    /// The delay after an attempt has ended.
    mutating func delayEnded(after number: Int) -> Action? {
        // Another attempt may have begun since, because one has failed.
        number == last ? nextIsDue() : nil
    }

    /// An attempt has ended.
    mutating func attemptEnded(_ number: Int, with ending: Ending) -> Action? {
        switch ending {
        case .success:
            guard stage != .decided else { return nil }
            stage = .decided
            winner = number
            return .cancelOthers
        case .failure:
            return nextIsDue()
        case .cancellation:
            guard stage == .open else { return nil }
            stage = .closed
            return .endDelay
        }
    }

    private mutating func nextIsDue() -> Action? {
        guard stage == .open, last < maximumAttempts else { return nil }
        if isBeginning {
            dueCount += 1
            return nil
        }
        isBeginning = true
        last += 1
        return .begin(last, isLast: last == maximumAttempts)
    }
}
