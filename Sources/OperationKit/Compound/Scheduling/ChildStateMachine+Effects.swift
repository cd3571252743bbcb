import Foundation

extension ChildStateMachine {
    /// What has to be done after an event, without the lock. Most events have no effect but the next child, so the rare
    /// effects are behind one reference, which is `nil` then.
    struct Effects {
        /// The child that the worker that caused the event starts next.
        var next: ChildReference?
        /// A child that the private queue has to start.
        var queued: ChildReference?
        /// A child that has ended, and has to release its dependencies.
        var ended: Operation?
        /// Whether a worker has to be sent, and with which priority.
        var requestsWorker = false
        var workerPriority = Operation.QueuePriority.normal
        /// Whether all children have to be cancelled, because one has failed.
        var cancelsChildren = false
        /// The settings to give the private queue. ``ChildStateMachine/settingsApplied(_:)`` follows.
        var settings: QueueSettings?
        var others: Others?
    }

    /// The rare effects of an event.
    final class Others {
        /// The progress to report. Nothing else follows then, before it has been reported.
        let progress: ProgressReport?
        let externals: ExternalDependencies.Changes?
        let requests: ChildRequests?
        /// Why children were not added.
        let rejection: Rejection?
        /// The composite, once all its children have ended.
        let finished: Completion?
        /// Only to be released.
        var discarded: [any Sendable] = []

        init(
            progress: ProgressReport? = nil, externals: ExternalDependencies.Changes? = nil,
            requests: ChildRequests? = nil, rejection: Rejection? = nil, finished: Completion? = nil
        ) {
            self.progress = progress
            self.externals = externals
            self.requests = requests
            self.rejection = rejection
            self.finished = finished
        }
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

    /// Why children are not added.
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
        /// Only to be released.
        let discarded: [any Sendable]
    }
}

extension ChildStateMachine.Effects {
    /// Nothing but a report of the progress: everything else follows after it.
    init(progress: ChildStateMachine.ProgressReport) {
        self.init(others: .init(progress: progress))
    }

    /// The same effects, and what is to be released after unlocking.
    func discarding(_ discarded: [any Sendable]) -> Self {
        if discarded.isEmpty { return self }
        var effects = self
        let others = effects.others ?? .init()
        others.discarded = discarded
        effects.others = others
        return effects
    }

    /// Nothing but requests to children.
    init(requests: ChildStateMachine.ChildRequests) {
        self.init(others: .init(requests: requests))
    }
}

// MARK: - Deriving the effects

extension ChildStateMachine {
    /// What follows from the state as it is, and from the event itself. Each event ends with it.
    ///
    /// The effects are put together in one expression: a variable would be copied.
    mutating func effects(
        next: ChildReference? = nil, queued: ChildReference? = nil, ended: Operation? = nil,
        cancelsChildren: Bool = false, rejection: Rejection? = nil
    ) -> Effects {
        let requestsWorker = schedule.requestWorkerIfNeeded()
        let isFinished = schedule.stage == .running && schedule.table.remaining == 0 && !hasRunningBody
        let finished = isFinished ? finish() : nil
        let externals = externals.takeChanges(isStarted: schedule.isStarted)
        let hasOthers = finished != nil || externals != nil || rejection != nil
        let newSettings = settings.changed(to: schedule.queueSettings)
        // Another thread sets them.
        let isHeld = newSettings == nil && settings.isWriting
        if isHeld, let queued { held.queued.append(queued) }
        return Effects(
            next: next, queued: isHeld ? nil : queued, ended: ended, requestsWorker: requestsWorker,
            workerPriority: requestsWorker ? schedule.places.workerPriority : .normal,
            cancelsChildren: cancelsChildren, settings: newSettings,
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
