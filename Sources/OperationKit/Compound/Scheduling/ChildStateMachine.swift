import Foundation

/// All that is known of the children of one composite, as a value: which of them can start, what they wait for, how they
/// ended, and what is to be done about it.
///
/// Each event is a method that is named as a fact, and returns its ``Effects``. ``ChildScheduler`` guards the machine
/// with its lock, and performs the effects after unlocking. The machine holds operations, but calls nothing of theirs,
/// except that an `AsyncOperation` stores its slot: what has to be known of an operation comes with the event, as a
/// ``ChildRegistration``.
///
/// | Part | What it knows |
/// |---|---|
/// | ``ReadySchedule`` | which children can start, and in which order; it has the ``ChildTable``, the ``ReadyQueue`` and the ``WorkerPlaces`` |
/// | ``ExternalDependencies`` | what children wait for that is no child |
/// | ``FailureCollection`` | how children failed |
/// | ``ProgressLedger`` | how much of the work is done |
/// | ``ParentReference`` | whose children these are |
struct ChildStateMachine {
    var schedule: ReadySchedule
    var externals = ExternalDependencies()
    var failures: FailureCollection
    var ledger = ProgressLedger()
    /// Whether the progress of the composite is observed.
    var isProgressObserved = false
    /// The fraction that was reported last.
    var reportedFraction = 0.0
    var composite = ParentReference()
    /// Whether the composite has a body that has not ended, and keeps it from ending as a child does.
    var hasRunningBody = false
    /// The slots of children whose dependencies have not been read.
    var unregistered: [Int] = []
    /// The threads that are cancelling the children.
    var cancellingThreads: Set<ObjectIdentifier> = []
    /// The settings that the private queue is given.
    var settings: CoalescingWriter<QueueSettings>
    var held = HeldBySettings()

    /// What must not happen before the private queue has the settings that another thread is about to give it: a lower limit, as a
    /// rule, without which the queue would start one child too many.
    struct HeldBySettings {
        var leavingWorkers: [ChildWorker] = []
        /// Children that the queue is handed then.
        var queued: [ChildReference] = []
    }

    init(limit: Int, failureRules: FailureCollection.Rules) {
        schedule = ReadySchedule(limit: limit, keepsOrder: failureRules.countsCancellations)
        failures = FailureCollection(rules: failureRules)
        settings = CoalescingWriter(schedule.queueSettings)
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
