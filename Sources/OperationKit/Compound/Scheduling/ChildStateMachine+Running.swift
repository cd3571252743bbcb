import Foundation

/// Whether a worker caused an event, and whether it then takes its next child.
enum WorkerStep {
    /// Another thread causes the event.
    case none
    /// The worker goes on to its next child.
    case continues
    /// The worker leaves, so that others get their turn.
    case leaves
}

/// How a child has ended.
struct ChildEnd {
    let child: ChildReference
    /// How it failed, or was cancelled; `nil` if it succeeded.
    let failure: ChildFailure?
    let step: WorkerStep
}

// MARK: - Starting children

extension ChildStateMachine {
    /// A worker has arrived on a thread of the private queue.
    mutating func workerStarted() -> Effects {
        let mayStart = readiness.places.workerStarted()
        // All that the queue was handed may have ended before.
        if readiness.places.queued == 0, readiness.cancellation != .complete { readiness.places.isKeptByQueue = false }
        return effects(next: mayStart ? startNext() : next(for: .leaves))
    }

    /// `start()` of a child returned on its worker, and the child will report its end.
    mutating func detached(_ child: ChildReference, step: WorkerStep) -> Effects {
        // It may have ended meanwhile.
        if readiness.table.isPresent(child) { readiness.detached(child.slot) }
        return effects(next: next(for: step))
    }

    /// A worker has no child, and gives its place on the private queue back.
    ///
    /// A child that goes on without its worker keeps its place among the children, so the limit of the private queue is lowered
    /// before the worker leaves: the queue would start another child in its place. If a thread is about to set it, the worker
    /// leaves after that.
    ///
    /// - Returns: Whether it leaves. If not, ``settingsApplied(_:)`` returns it.
    mutating func workerLeaves(_ worker: ChildWorker) -> Bool {
        guard settings.isWriting, readiness.places.queued > 0 else { return true }
        held.leavingWorkers.append(worker)
        return false
    }

    /// A worker cannot start a child, so the private queue has to. The worker leaves if the queue has no place for the child
    /// otherwise.
    mutating func handedToQueue(_ child: ChildReference, step: WorkerStep) -> Effects {
        readiness.handedToQueue(child.slot)
        return effects(next: next(for: step), queued: child, mayHandOver: false)
    }

    /// A worker cannot start a child, because it was given dependencies that have not finished. It waits for them as others do.
    mutating func putBack(_ registration: ChildRegistration, step: WorkerStep) -> Effects {
        readiness.putBack(registration.slot)
        connect(registration.child, to: registration.unfinished)
        register(registration)
        return effects(next: next(for: step))
    }

    /// A child that the private queue was to be handed has been started by another thread.
    mutating func handedBack(_ child: ChildReference) -> Effects {
        readiness.handedBack(child.slot)
        return effects(mayHandOver: false)
    }

    /// A child that the private queue was handed is not ready, and waits there.
    mutating func waitsOnQueue(_ child: ChildReference, hasToWait: Bool = true) -> Effects {
        unreadyChildren.removeAll { $0.operation === child.operation }
        // It may have ended meanwhile.
        if hasToWait, readiness.table.isPresent(child) { readiness.waitsOnQueue(child.slot) }
        return effects()
    }

    /// The queue was handed a child that is not ready, although all that it depends on has finished.
    ///
    /// - Returns: Whether it keeps its place until ``waitsOnQueue(_:hasToWait:)``: not where others were not ready by then, or while
    ///   the children are suspended.
    mutating func keepsPlaceUnready(_ child: ChildReference) -> Bool {
        if readiness.places.isSuspended || readiness.places.unreadyCount > 0 { return false }
        unreadyChildren.append(child)
        return true
    }

    /// From now on the queue keeps the limit for those.
    private mutating func unreadyChildrenWait() {
        for child in exchange(&unreadyChildren, with: []) where readiness.table.isPresent(child) {
            readiness.waitsOnQueue(child.slot)
        }
    }

    /// The next child for a worker that has started one. It leaves also when children that the queue starts wait for a
    /// place: it goes to the end of the queue then.
    private mutating func next(for step: WorkerStep) -> ChildReference? {
        switch step {
        case .none: return nil
        case .continues where readiness.places.hasRoomForWorker: return startNext()
        case .continues, .leaves:
            readiness.places.workerLeft()
            return nil
        }
    }

    /// The next child for a worker. If there is none, the worker leaves.
    private mutating func startNext() -> ChildReference? {
        if let slot = readiness.startNext(), let child = readiness.table.child(in: slot) { return child }
        readiness.places.workerLeft()
        return nil
    }
}

// MARK: - Ends of children

extension ChildStateMachine {
    /// A child has ended: on its worker, or on any other thread.
    ///
    /// Progress is reported before another child can start, so that it finds the progress as it is. The child keeps its place
    /// until then: ``progressReported(_:)`` follows. As long as the progress is not observed, there is nothing to report, and
    /// the lock is taken once.
    mutating func childEnded(_ end: ChildEnd) -> Effects {
        let child = end.child
        // Another thread may have recorded its end already.
        guard readiness.table.isPresent(child), !readiness.table.isEnding(child.slot) else {
            return effects(next: next(for: end.step))
        }
        ledger.ended(child.slot, weight: Int64(readiness.table.records[child.slot].weight))
        guard let report = progressReport(end: end) else { return progressReported(end) }
        readiness.ending(child.slot)
        return Effects(others: Reference(Others(progress: report)))
    }

    /// The progress that the end of a child has brought was reported, if there was any. Now others may follow.
    mutating func progressReported(_ end: ChildEnd) -> Effects {
        let slot = end.child.slot
        let endedOnQueue = readiness.table.records[slot].phase.place?.isOnQueue == true
        readiness.ended(slot)
        externals.childEnded(slot, in: &readiness)
        var cancelsChildren = false
        if let failure = end.failure {
            cancelsChildren = failures.add(failure, isCancelling: readiness.cancelsNewChildren)
            if cancelsChildren { readiness.cancellationStarted() }
        }
        return effects(
            next: next(for: end.step), cancelsChildren: cancelsChildren, endedOnQueue: endedOnQueue)
    }

    /// The body of the composite has ended.
    mutating func bodyEnded() -> Effects {
        hasRunningBody = false
        return effects()
    }

    /// An external dependency has finished.
    mutating func externalDependencyFinished(_ operation: Operation) -> Effects {
        externals.finished(operation, in: &readiness)
        return effects()
    }

    /// An external dependency is observed.
    mutating func externalDependencyObserved(_ operation: Operation, by observer: FinishObserver) -> Effects {
        externals.observed(operation, by: observer)
        return effects()
    }
}

// MARK: - Progress

extension ChildStateMachine {
    /// The progress of the composite is observed, and so is that of its children.
    ///
    /// - Returns: The children, the first time: all that is inside them is observed since then, too.
    mutating func progressObserved() -> [Operation] {
        exchange(&isProgressObserved, with: true) ? [] : operations
    }

    /// A child reports how far it has come.
    mutating func childProgressed(_ child: Operation, to fraction: Double) -> ProgressReport? {
        guard let slot = readiness.table.slot(of: child), !readiness.table.isEnding(slot) else { return nil }
        ledger.advanced(slot, weight: Int64(readiness.table.records[slot].weight), to: fraction)
        return progressReport()
    }

    /// The amount of work has changed, or some is done that is no child's.
    mutating func workChanged(_ change: (inout ProgressLedger) -> Void) -> Effects {
        change(&ledger)
        return Effects(others: progressReport().map { Reference(Others(progress: $0)) })
    }

    /// A report of the progress, if it is observed and has changed.
    ///
    /// Around composites that are nested deep, what changes at the bottom fades away on its way up. A change that is far
    /// smaller than the unit in which progress is counted is not reported: otherwise each level would report to all those
    /// above it.
    private mutating func progressReport(end: ChildEnd? = nil) -> ProgressReport? {
        guard isProgressObserved, let running else { return nil }
        let fraction = ledger.fraction
        if abs(fraction - reportedFraction) * Double(OperationProgress.fineUnitCount) < 0.01 { return nil }
        reportedFraction = fraction
        return ProgressReport(composite: running, fraction: fraction, end: end)
    }
}

// MARK: - Cancellation and settings

extension ChildStateMachine {
    /// A thread is about to cancel all children, and those that are added from now on.
    ///
    /// Several threads may do so at the same time, each for all children. Only a thread that is cancelling them
    /// already, and comes here again from `didCancel()` of a child, has nothing to do.
    mutating func cancellationStarted(by thread: ObjectIdentifier) -> Effects {
        readiness.cancellationStarted()
        if readiness.cancellation == .complete || !cancellingThreads.insert(thread).inserted { return Effects() }
        return Effects(
            others: Reference(Others(requests: ChildRequests(cancel: operations, cancellingThread: thread))))
    }

    /// The children, at any depth, are about to be cancelled together with others.
    ///
    /// - Returns: The children, the first time: what is inside them is to be stopped as well.
    mutating func startingStopped() -> [Operation] {
        if readiness.cancelsNewChildren { return [] }
        readiness.cancellationStarted()
        return operations
    }

    /// All children are cancelled.
    mutating func childrenCancelled(by thread: ObjectIdentifier) -> Effects {
        cancellingThreads.remove(thread)
        readiness.cancelled()
        return effects()
    }

    /// A child was cancelled, by the composite or by itself. One that waits for its siblings may end before them.
    mutating func childCancelled(_ child: Operation) -> Effects {
        guard !readiness.cancelsNewChildren, let slot = readiness.table.slot(of: child) else { return Effects() }
        readiness.ignoresDependencies(slot)
        return effects()
    }

    mutating func limitChanged(to limit: Int) -> Effects {
        readiness.places.limit = limit
        unreadyChildrenWait()
        return effects()
    }

    mutating func suspensionChanged(to isSuspended: Bool) -> Effects {
        readiness.places.isSuspended = isSuspended
        unreadyChildrenWait()
        return effects()
    }

    /// The private queue was given its settings.
    ///
    /// What was held back comes out in turns, each followed by the same settings, so that what comes meanwhile comes later.
    ///
    /// - Returns: The settings to give it next, as long as there are some, and what to do before.
    mutating func settingsApplied(_ applied: QueueSettings) -> (next: QueueSettings?, held: HeldBack) {
        if applied != settings.latest || held.isEmpty { return (settings.wrote(applied), HeldBack()) }
        return (applied, exchange(&held, with: HeldBack()))
    }
}
