import Foundation

/// All that is known of the children of one composite, as a value: which of them can start, what they wait for, how they
/// ended, and what is to be done about it.
///
/// Each event is a method that is named as a fact, and returns its ``Effects``. ``ChildScheduler`` guards the machine with
/// its lock, and performs the effects after unlocking. The machine holds operations, but calls nothing of theirs, except
/// that an `AsyncOperation` stores its slot: what has to be asked of an operation is in the ``ChildRegistration`` with which
/// an event comes.
///
/// | Part | What it knows |
/// |---|---|
/// | ``ReadySchedule`` | which children can start, and in which order; it has the ``ChildTable``, the ``ReadyQueue`` and the ``WorkerPlaces`` |
/// | ``ExternalDependencies`` | what children wait for that is no child |
/// | ``FailureCollection`` | how children failed |
/// | ``ProgressLedger`` | how much of the work is done |
/// | ``CompositeLink`` | whose children these are |
struct ChildStateMachine {
    var schedule: ReadySchedule
    var externals = ExternalDependencies()
    var failures: FailureCollection
    var ledger = ProgressLedger()
    /// Whether the composite is told of its progress.
    var isProgressObserved = false
    /// How far the composite was when it was told last.
    var reportedFraction = 0.0
    var composite = CompositeLink()
    /// Children that were not asked yet what they wait for.
    var unregistered: [Int] = []
    /// The threads that are cancelling the children.
    var cancellingThreads: Set<ObjectIdentifier> = []
    /// What the private queue is told.
    var settings: LatestValueWriter<QueueSettings>

    init(limit: Int, failureRules: FailureCollection.Rules) {
        schedule = ReadySchedule(limit: limit, keepsOrder: failureRules.countsCancellations)
        failures = FailureCollection(rules: failureRules)
        settings = LatestValueWriter(schedule.queueSettings)
    }

    var operations: [Operation] { schedule.table.operations }

    /// Whether a child is there, and its addition is complete.
    func isCommitted(_ child: ChildReference) -> Bool {
        // It may have ended meanwhile.
        schedule.table.isPresent(child) && schedule.table.records[child.slot].phase != .adding
    }

    /// The place of a child in the order of the additions.
    func ordinal(of child: ChildReference) -> Int { schedule.table.records[child.slot].ordinal }

    /// Empties the machine, so that the operations can be released one by one.
    mutating func removeAll() -> [Operation] { schedule.table.removeAll() }
}

// MARK: - What follows

extension ChildStateMachine {
    /// What follows from the state as it is, and from the event itself. Each event ends with it.
    ///
    /// The effects are put together in one expression: a variable would be copied.
    mutating func effects(
        next: ChildReference? = nil, queued: ChildReference? = nil, ended: Operation? = nil,
        cancelsChildren: Bool = false, rejection: Rejection? = nil
    ) -> Effects {
        let requestsWorker = schedule.requestWorkerIfNeeded()
        let isFinished = schedule.stage == .running && schedule.table.remaining == 0
        let finished = isFinished ? finish() : nil
        let externals = externals.takeChanges(isStarted: schedule.isStarted)
        let hasOthers = finished != nil || externals != nil || rejection != nil
        return Effects(
            next: next, queued: queued, ended: ended, requestsWorker: requestsWorker,
            workerPriority: requestsWorker ? schedule.places.workerPriority : .normal,
            cancelsChildren: cancelsChildren, settings: settings.changed(to: schedule.queueSettings),
            others: hasOthers
                ? Others(externals: externals, rejection: rejection, finished: finished) : nil)
    }

    /// All children have ended. Happens once.
    private mutating func finish() -> Completion? {
        guard let running = composite.finish() else { return nil }
        externals.removeAll()
        schedule.finished()
        let (failures, discarded) = failures.take(ofChildren: schedule.table.added)
        return Completion(
            composite: running, handlers: composite.handlers, failures: failures, discarded: discarded)
    }
}
