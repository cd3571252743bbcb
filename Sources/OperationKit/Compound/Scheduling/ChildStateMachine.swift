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
/// | ``ReadinessStateMachine`` | which children can start, and in which order; it has the ``ChildTable``, the ``ReadyQueue`` and the ``WorkerPlaces`` |
/// | ``ExternalDependencies`` | what children wait for that is no child |
/// | ``FailureCollection`` | how children failed |
/// | ``ProgressLedger`` | how much of the work is done |
struct ChildStateMachine {
    var readiness: ReadinessStateMachine
    var externals = ExternalDependencies()
    var failures: FailureCollection
    var ledger = ProgressLedger()
    /// Whether the progress of the composite is observed.
    var isProgressObserved = false
    /// The fraction that was reported last.
    var reportedFraction = 0.0
    /// The composite that children belong to.
    weak var composite: AsyncOperation?
    /// Makes the error of the composite from its name, if the children must not run.
    var refusal: (@Sendable (String) -> any Error)?
    /// What the composite does itself.
    var handlers: CompositeHandlers?
    /// The composite, kept alive while it runs.
    private(set) var running: AsyncOperation?
    /// What the composite was made to depend on; `nil` if that is nothing, or it has started.
    private var dependencies: CompositeDependencies?
    /// The private queue, once it was needed.
    var queue: CompositeQueue?
    /// Whether the composite has a body that has not ended, and keeps it from ending as a child does.
    var hasRunningBody = false
    /// Those that the queue was handed, and that keep their places for a moment though they are not ready.
    var unreadyChildren: [ChildReference] = []
    /// The slots of children whose dependencies have not been read.
    var unregistered: [Int] = []
    /// The threads that are cancelling the children.
    var cancellingThreads: Set<ObjectIdentifier> = []
    /// The settings that the private queue is given.
    var settings: CoalescingWriter<QueueSettings>
    /// What waits until the private queue has its new settings: with the old limit it would start one child too many.
    var held = HeldBack()

    init(limit: Int, failurePolicy: FailurePolicy, countsCancellations: Bool = false) {
        readiness = ReadinessStateMachine(limit: limit, keepsOrder: countsCancellations)
        failures = FailureCollection(policy: failurePolicy, countsCancellations: countsCancellations)
        settings = CoalescingWriter(readiness.queueSettings)
    }

    var operations: [Operation] { readiness.table.operations }

    /// Whether a child is there, and its addition is complete.
    func isCommitted(_ child: ChildReference) -> Bool {
        // It may have ended meanwhile.
        readiness.table.isPresent(child) && readiness.table.records[child.slot].phase != .adding
    }

    /// The place of a child in the order of the additions.
    func ordinal(of child: ChildReference) -> Int { readiness.table.records[child.slot].ordinal }
}

// MARK: - Effects

extension ChildStateMachine {
    /// What has to be done after an event, without the lock. Most events have no effect but the next child, so the rare
    /// effects are behind one reference, which is `nil` then.
    struct Effects {
        /// The child that the worker that caused the event starts next.
        var next: ChildReference?
        /// A child that the private queue has to start.
        var queued: ChildReference?
        /// The priority of the worker that has to be sent; `nil` if there is none to send.
        var worker: Operation.QueuePriority?
        /// Whether all children have to be cancelled, because one has failed.
        var cancelsChildren = false
        /// The settings to give the private queue. ``ChildStateMachine/settingsApplied(_:)`` follows.
        var settings: QueueSettings?
        var others: Reference<Others>?
    }

    /// What another thread does as soon as it has given the private queue its settings.
    struct HeldBack {
        /// Workers that leave the queue.
        var leavingWorkers: [ChildWorker] = []
        /// Children that the queue starts.
        var queued: [ChildReference] = []

        var isEmpty: Bool { leavingWorkers.isEmpty && queued.isEmpty }
    }

    /// The rare effects of an event.
    struct Others {
        /// The progress to report. Nothing else follows then, before it has been reported.
        var progress: ProgressReport?
        var externals: ExternalDependencies.Changes?
        var requests: ChildRequests?
        /// Why children were not added.
        var rejection: Rejection?
        /// The composite, once all its children have ended.
        var finished: Completion?
        /// Only to be released.
        var discarded: [any Sendable] = []
    }

    /// How far the composite has come.
    struct ProgressReport {
        let composite: AsyncOperation
        let fraction: Double
        /// The end of a child that is reported with it. ``ChildStateMachine/progressReported(_:)`` follows.
        let end: ChildEnd?
    }

    /// What is asked of children.
    struct ChildRequests {
        /// Children to cancel.
        var cancel: [Operation]
        /// The thread that cancels all children. ``ChildStateMachine/childrenCancelled(by:)`` follows.
        var cancellingThread: ObjectIdentifier?
        /// Children to observe the progress of.
        var reportProgress: [Operation] = []
    }

    /// Why children are not added, or not run.
    enum Rejection {
        /// All children have ended.
        case finished(Operation)
        case duplicate(Operation)
        /// Children would wait for each other.
        case cycle([(operation: Operation, index: Int)])
    }

    /// The end of all children.
    struct Completion {
        /// Kept alive until it has been notified.
        let composite: AsyncOperation
        let handlers: CompositeHandlers?
        let failures: ChildFailures
    }
}

// MARK: - Deriving the effects

extension ChildStateMachine {
    /// What follows from the state as it is, and from the event itself. Each event ends with it.
    ///
    /// The effects are put together in one expression: a variable would be copied.
    ///
    /// `mayHandOver` says whether the next child may be handed to the private queue without a worker, and `endedOnQueue` whether a
    /// child has ended that the private queue had started.
    mutating func effects(
        next: ChildReference? = nil, queued: ChildReference? = nil, cancelsChildren: Bool = false,
        mayHandOver: Bool = true, endedOnQueue: Bool = false, rejection: Rejection? = nil
    ) -> Effects {
        // It would overtake what waits for the settings.
        let maySend = !settings.isWriting
        let handedOver = maySend && mayHandOver ? readiness.handNextToQueue() : nil
        let requestsWorker = maySend && readiness.requestWorkerIfNeeded()
        if endedOnQueue, readiness.places.isWorkerRequested, !readiness.isNextSynchronous {
            readiness.places.isKeptByQueue = true
        }
        let isFinished = readiness.stage == .running && readiness.table.remaining == 0 && !hasRunningBody
        let finished = isFinished ? finish() : nil
        let externals = externals.takeChanges(isStarted: readiness.isStarted)
        let discarded = failures.discarded.isEmpty ? [] : exchange(&failures.discarded, with: [])
        let hasOthers = finished != nil || externals != nil || rejection != nil || !discarded.isEmpty
        let newSettings = settings.changed(to: readiness.queueSettings)
        let isHeld = settings.isWriting
        if isHeld, let queued = queued ?? handedOver { held.queued.append(queued) }
        return Effects(
            next: next, queued: isHeld ? nil : queued ?? handedOver,
            worker: requestsWorker ? readiness.places.workerPriority : nil, cancelsChildren: cancelsChildren,
            settings: newSettings,
            others: hasOthers
                ? Reference(
                    Others(externals: externals, rejection: rejection, finished: finished, discarded: discarded)) : nil)
    }

    /// All children have ended. Happens once.
    private mutating func finish() -> Completion? {
        guard let running = running.take() else { return nil }
        externals.removeAll()
        readiness.finished()
        return Completion(
            composite: running, handlers: handlers, failures: failures.take(ofChildren: readiness.table.added))
    }
}

// MARK: - The composite

extension ChildStateMachine {
    /// - Returns: What belonged to the composite before, to be released after unlocking.
    mutating func attached(
        to composite: AsyncOperation, _ handlers: CompositeHandlers
    ) -> (CompositeHandlers?, CompositeDependencies?) {
        self.composite = composite
        return (exchange(&self.handlers, with: handlers), dependencies.take())
    }

    /// What `composite` depends on, if the children are its own. Recording begins, if it is wanted, before they start.
    mutating func dependencies(of composite: AsyncOperation, recording: Bool) -> CompositeDependencies? {
        guard self.composite === composite else { return nil }
        if recording, readiness.stage == .idle, dependencies == nil {
            dependencies = CompositeDependencies(of: composite)
        }
        return dependencies
    }

    /// The composite starts. The dependencies of all children are read again; those of children that are added
    /// meanwhile were read before the addition.
    ///
    /// - Returns: The composite, what it depended on, to be released after unlocking, the slots of the children to
    ///   register, and whether these are about to be cancelled and only have to end.
    mutating func prepared() -> (
        composite: AsyncOperation?, dependencies: CompositeDependencies?, slots: Range<Int>, isCancelled: Bool
    ) {
        running = composite
        unregistered = []
        if readiness.table.hasDependencies { externals.removeAll() }
        readiness.prepared()
        return (running, dependencies.take(), readiness.table.records.indices, readiness.cancelsNewChildren)
    }
}

/// Describes the children of a composite in its own words.
protocol ChildDescriber: AnyObject, Sendable {
    /// Called for descriptions, on any thread.
    func describe(_ snapshot: inout ChildSnapshot)
}

/// What a composite does itself, around its children. The closures refer to the composite unowned.
struct CompositeHandlers {
    /// Called on the thread that starts the composite. It prepares the children, and then calls ``ChildScheduler/run()``.
    let start: @Sendable () -> Void
    /// Called once with the failures that count, on the thread on which the last child finished.
    let finished: @Sendable (_ failures: ChildFailures, _ list: inout Trampoline) -> Void
    /// Whether the description of the progress counts the children. Not where users count them differently, as steps
    /// and jobs.
    var countsChildren = false
    /// Held by the composite. Not weak, because a struct with a weak reference costs each child a sixteenth more.
    unowned var describer: (any ChildDescriber)?
}
