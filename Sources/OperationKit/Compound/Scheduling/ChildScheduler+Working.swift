import Foundation

// Beginning children.
extension ChildScheduler {
    /// What became of a child that a worker began.
    private enum Begun {
        case ended((any Error)?)
        /// It will report its end.
        case goesOn
        /// The queue has to begin it.
        case isQueued
    }

    /// What a worker does: it begins one ready child after the other, until none is left or it is somebody else's turn.
    func work() {
        var (next, due) = withState { state in
            state.schedule.workerCame()
            return (state.next(), consequences(of: &state))
        }
        perform(due)
        var count = 0
        while let child = next {
            count += 1
            next = work(on: child, isLast: count == ChildScheduler.batch)
        }
    }

    /// - Returns: The next child for this worker.
    private func work(on child: Next, isLast: Bool) -> Next? {
        switch begin(child) {
        case .ended(let error):
            return ended(child, error: error) { $0.next(isLast: isLast) }
        case .isQueued:
            return handToQueue(child, isLast: isLast)
        case .goesOn:
            let (next, due) = withState { state in
                // It may have ended meanwhile.
                if state.isPresent(child) { state.schedule.wentOn(child.slot) }
                return (state.next(isLast: isLast), consequences(of: &state))
            }
            perform(due)
            return next
        }
    }

    /// Begins a child on this thread, if it can be. Foundation's own `start()` traps if the operation is not ready, and
    /// a dependency that is added at this moment makes it so. A queue begins an operation without asking it again.
    private func begin(_ child: Next) -> Begun {
        guard let operation = child.operation as? AsyncOperation else {
            let operation = child.operation
            if operation.isFinished { return .ended(operation.endingError) }
            if !operation.isExecuting { return .isQueued }
            watch(child)
            return .goesOn
        }
        if operation.hasToWait, !operation.isCancelled, !operation.countsRemovedDependency { return .isQueued }
        startOnWorker(operation)
        if let outcome = operation.observeFinish(self) { return .ended(outcome.error) }
        return .goesOn
    }

    /// A worker begins many children, so what one of them leaves to the pool is released before the next one.
    private func startOnWorker(_ operation: Operation) {
        #if canImport(ObjectiveC)
        autoreleasepool { operation.start() }
        #else
        operation.start()
        #endif
    }

    /// Hands a child to the queue. The worker leaves if the queue has no place for the child otherwise.
    ///
    /// - Returns: The next child for this worker.
    private func handToQueue(_ child: Next, isLast: Bool) -> Next? {
        var (next, due) = withState { state in
            state.schedule.handedToQueue(child.slot)
            return (state.next(isLast: isLast), consequences(of: &state))
        }
        if due.changesSettings { applySettings() }
        due.changesSettings = false
        // The queue gets the child before the next worker, so that it may begin in its turn.
        enqueue(child)
        perform(due)
        return next
    }

    private func enqueue(_ child: Next) {
        if let operation = child.operation as? AsyncOperation {
            // Another thread may have started it.
            if let outcome = operation.observeFinish(self) { return _ = ended(child, error: outcome.error) }
        } else {
            watch(child)
        }
        queue.addOperation(child.operation)
        child.operation.announceReadiness()
    }

    private func watch(_ child: Next) {
        FinishObserver(child.operation) { self.ended(child, error: child.operation.endingError) }
    }
}

extension ChildScheduler.State {
    /// The next child for a worker that has just arrived. If there is none, the worker leaves.
    fileprivate mutating func next() -> Next? {
        if let slot = schedule.next(), let child = children[slot] { return (slot, child.operation) }
        schedule.workerLeft()
        return nil
    }

    /// The next child for a worker that has begun one. It leaves also when that was its last one, and when children
    /// that the queue begins wait for a place: it goes to the end of the queue then.
    fileprivate mutating func next(isLast: Bool) -> Next? {
        if !isLast, schedule.hasRoomForWorker { return next() }
        schedule.workerLeft()
        return nil
    }
}

// Ends of children.
extension ChildScheduler: FinishObserving {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?) {
        // Whoever is observed has been a child, so it has a slot.
        guard let slot = operation.slot else { return }
        ended((slot, operation), error: error)
    }

    /// A child has ended. Its worker, if it has one at work, says how it takes its next child.
    ///
    /// Progress is reported before another child can begin, so that it finds the progress as it is. As long as nobody
    /// wants to know, there is nothing to report, and the lock is taken once.
    @discardableResult
    func ended(_ child: Next, error: (any Error)?, takeNext: (inout State) -> Next? = { _ in nil }) -> Next? {
        let failure = failure(of: child, error: error)
        let (report, settled) = withState { state -> (ProgressReport?, Settled?) in
            if let report = state.progressEnded(child, hasSucceeded: error == nil) { return (report, nil) }
            return (nil, settle(child, failure, &state, takeNext))
        }
        report.map(self.report)
        let (next, due, hadDependencies) = settled ?? withState { settle(child, failure, &$0, takeNext) }
        if hadDependencies { child.operation.detachFromDependencies() }
        perform(due)
        return next
    }

    private typealias Settled = (next: Next?, due: Consequences, hadDependencies: Bool)

    /// What the end of a child means for the others. With the lock held.
    private func settle(
        _ child: Next, _ failure: SuboperationError?, _ state: inout State, _ takeNext: (inout State) -> Next?
    ) -> Settled {
        var cancelsOthers = false
        // Somebody else may have noticed its end, too.
        let known = state.isPresent(child) ? state.forget(child.slot) : nil
        if known != nil {
            state.schedule.ended(child.slot)
            state.stopWaiting(child.slot)
            if let failure { cancelsOthers = failed(failure, &state) }
        }
        let next = takeNext(&state)
        var due = consequences(of: &state)
        due.cancelsOthers = cancelsOthers
        // Whoever noticed it first has told the others.
        return (next, due, known?.mayHaveDependencies ?? false)
    }

    /// - Returns: Whether the other children have to be cancelled.
    private func failed(_ failure: SuboperationError, _ state: inout State) -> Bool {
        let isCancelling = state.schedule.cancelsNewChildren
        if countsCancellations, isCancelling, failure.error is CancellationError { return false }
        state.failures.append(failure)
        guard failurePolicy == .cancelRemaining, !isCancelling else { return false }
        state.schedule.cancelling()
        return true
    }

    /// What a child that has finished with this error reports, if it is a failure.
    private func failure(of child: Next, error: (any Error)?) -> SuboperationError? {
        guard let error, countsCancellations || isFailure(error) else { return nil }
        let index = withState { $0.schedule.ordinal(of: child.slot) }
        return SuboperationError(name: child.operation.displayName(at: index), index: index, error: error)
    }

    private func isFailure(_ error: any Error) -> Bool {
        if error is CancellationError { return false }
        if case .cancelled(_, let errors, _) = error as? CompoundOperationError, errors.isEmpty { return false }
        return true
    }
}

extension Operation {
    /// Whether the operation cannot be started yet. One that somebody else has started does not have to.
    fileprivate var hasToWait: Bool {
        !isReady && !isExecuting && !isFinished
    }
}

extension AsyncOperation {
    /// Whether the operation is not ready only because Foundation on Linux goes on counting a dependency that was removed
    /// before it had finished.
    fileprivate var countsRemovedDependency: Bool {
        withState { $0.hasRemovedDependency } && unfinishedDependencies.isEmpty
    }
}

/// An operation of the private queue that begins children.
final class ChildWorker: Operation, @unchecked Sendable {
    private let scheduler: ChildScheduler

    init(_ scheduler: ChildScheduler, priority: Operation.QueuePriority) {
        self.scheduler = scheduler
        super.init()
        if priority != .normal { queuePriority = priority }
    }

    /// Does nothing. A child that cancels all operations of its current queue reaches the worker that is on its way, too,
    /// and a worker that does not arrive would be awaited forever.
    override func cancel() {}

    override func main() {
        scheduler.work()
    }
}
