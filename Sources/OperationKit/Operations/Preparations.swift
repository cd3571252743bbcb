import Dispatch

/// The preparations of one operation that have not been made, and what they are set to. The operation's lock guards them.
final class Preparations {
    /// How long the work may take.
    var timeout: Duration?
    /// Whether the current preparation takes time, and the thread that has begun it is back from it.
    private var isSuspended = false
    /// Whether the current preparation, which takes time, ended before the thread that has begun it was back from it.
    private var hasEndedEarly = false
    /// Whether it is known where the operation goes on after a preparation that takes time.
    private(set) var isQueueKnown = false
    /// What the operation holds of what it requires, from its request on.
    var held: (any HeldResources)?
    /// What the time is measured with; `nil` for the default.
    var clock: ClockReference?
    /// The last one is made first, so that each can be released when it has been made.
    private var remaining: [any Preparation] = []
    /// Where the operation goes on after a preparation that takes time, as far as that is known; `nil` for a global queue.
    private(set) var queue: DispatchQueue?

    /// The preparation that is to be made, or is being made.
    var current: (any Preparation)? { remaining.last }

    /// The preparation that takes time, and has not ended.
    var awaited: (any Preparation)? { isSuspended ? current : nil }

    /// A preparation is added, after those of the same and of earlier stages. The operation has not started.
    func add(_ preparation: some Preparation) {
        let stage = preparation.stage
        let index = remaining.firstIndex { $0.stage <= stage } ?? remaining.endIndex
        remaining.insert(preparation, at: index)
    }

    /// A preparation takes the place of the one of its stage, if there is one. The operation has not started.
    ///
    /// - Returns: The one that was replaced, for the caller to release after unlocking.
    func set(_ preparation: some Preparation) -> (any Preparation)? {
        guard let index = remaining.firstIndex(where: { $0.stage == preparation.stage }) else {
            add(preparation)
            return nil
        }
        return exchange(&remaining[index], with: preparation)
    }

    /// The preparation of a stage that has only one.
    subscript(stage: PreparationStage) -> (any Preparation)? {
        remaining.first { $0.stage == stage }
    }

    /// Whether there is a preparation of a stage.
    func contains(_ stage: PreparationStage) -> Bool {
        remaining.contains { $0.stage == stage }
    }

    /// The current preparation has been made.
    ///
    /// - Returns: The preparation, for the caller to release after unlocking.
    func currentEnded() -> (any Preparation)? {
        hasEndedEarly = false
        isSuspended = false
        let ended = remaining.popLast()
        // Its memory is not needed any more.
        if remaining.isEmpty { remaining = [] }
        return ended
    }

    /// The current preparation, which takes time, has been made. The thread that has begun it is not back from it.
    func currentEndedEarly() {
        hasEndedEarly = true
    }

    /// The thread that has begun the current preparation is back, and the preparation takes time.
    ///
    /// - Returns: Whether it has not ended meanwhile.
    func currentSuspended() -> Bool {
        isSuspended = !hasEndedEarly
        return isSuspended
    }

    // MARK: - Where the operation goes on

    /// The operation is on an operation queue that uses a dispatch queue.
    func found(on dispatchQueue: DispatchQueue) {
        if !isQueueKnown { queue = dispatchQueue }
    }

    /// The operation was started where the operation queue uses a dispatch queue, or none. All operations on it were found.
    func started(on dispatchQueue: DispatchQueue?) {
        isQueueKnown = true
        if queue !== dispatchQueue { queue = nil }
    }

    /// Removes all that have not been made.
    ///
    /// - Returns: The preparations, the current one last, for the caller to release after unlocking.
    func removeAll() -> [any Preparation] {
        exchange(&remaining, with: [])
    }
}

/// A clock that was set. An object, because few operations have one.
final class ClockReference: Sendable {
    let clock: any Clock<Duration>

    init(_ clock: any Clock<Duration>) {
        self.clock = clock
    }
}
