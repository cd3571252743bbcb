import Foundation

// Beginning children.
extension ChildScheduler {
    private enum Begun { case ended, goesOn, leftToQueue }

    typealias Next = (slot: Int, operation: Operation)

    /// What a worker does: it begins one ready child after the other, until none is left or it is somebody else's turn.
    func work(_ worker: ChildWorker) {
        var next = lock.withLock {
            schedule.workerCame()
            return nextChild()
        }
        var count = 0
        while let (slot, operation) = next {
            count += 1
            let isLast = count == ChildScheduler.batch
            switch begin(operation, slot: slot) {
            case .ended:
                next = ended(slot, operation) { self.nextChild(isLast: isLast) }
            case .goesOn:
                var hasEnded = false
                var isParked = false
                let due = lock.withLock {
                    hasEnded = schedule.startReturned(slot)
                    if hasEnded { return Consequences() }
                    isParked = schedule.parksWorker(on: slot)
                    if isParked { children[slot]?.worker = worker } else { next = nextChild(isLast: isLast) }
                    return consequences()
                }
                perform(due)
                if isParked { return }
                if hasEnded { next = ended(slot, operation) { self.nextChild(isLast: isLast) } }
            case .leftToQueue:
                next = leaveToQueue(operation, slot: slot)
            }
        }
        worker.finish()
    }

    /// The next child for a worker that has just arrived. If there is none, the worker leaves.
    private func nextChild() -> Next? {
        if let slot = schedule.next(), let child = children[slot] { return (slot, child.operation) }
        schedule.workerLeft()
        return nil
    }

    /// The next child for a worker that has begun one. It leaves also when that was its last one, and when children
    /// that the queue begins wait for a place: it goes to the end of the queue then.
    private func nextChild(isLast: Bool) -> Next? {
        if !isLast, schedule.queued == 0 { return nextChild() }
        schedule.workerLeft()
        return nil
    }

    private func begin(_ operation: Operation, slot: Int) -> Begun {
        if let operation = operation as? AsyncOperation {
            guard operation.observeFinish(FinishObserver(object: self, token: slot)) else { return .ended }
            if operation.hasToWait, !operation.isCancelled { return .leftToQueue }
            startOnWorker(operation)
            return .goesOn
        }
        if operation.isFinished { return .ended }
        if operation.hasToWait {
            watch(operation, slot: slot)
            return .leftToQueue
        }
        if !operation.isExecuting { startOnWorker(operation) }
        if operation.isFinished { return .ended }
        watch(operation, slot: slot)
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

    private func leaveToQueue(_ operation: Operation, slot: Int) -> Next? {
        let (next, due) = lock.withLock {
            schedule.leftToQueue(slot)
            return (nextChild(isLast: true), consequences())
        }
        queue.addOperation(operation)
        operation.announceReadiness()
        perform(due)
        return next
    }

    private func watch(_ operation: Operation, slot: Int) {
        FinishWatch(operation) { self.reported(slot, operation) }
    }
}

// Ends of children.
extension ChildScheduler: FinishObserving {
    func operationFinished(_ operation: AsyncOperation, token: Int) {
        reported(token, operation)
    }

    private func reported(_ slot: Int, _ operation: Operation) {
        if lock.withLock({ schedule.reportedEnd(slot) }) { ended(slot, operation) }
    }

    /// A child has ended. Its worker, if it has one at work, says how it takes its next child.
    @discardableResult
    func ended(_ slot: Int, _ operation: Operation, takeNext: () -> Next? = { nil }) -> Next? {
        operation.detachFromDependencies()
        let failure = failure(of: operation, slot: slot)
        let (child, next, due) = lock.withLock {
            let child = children[slot]
            children[slot] = nil
            slots[ObjectIdentifier(operation)] = nil
            for id in child?.dependencies ?? [] { forget(id, slot: slot) }
            let limit = schedule.limitInForce
            schedule.ended(slot)
            var cancelsOthers = false
            if let failure {
                failures.append(failure)
                cancelsOthers = failurePolicy == .cancelRemaining && !schedule.cancelsNewChildren
                if cancelsOthers { schedule.cancelling() }
            }
            let next = takeNext()
            var due = consequences()
            due.cancelsOthers = cancelsOthers
            due.changesSettings = limit != schedule.limitInForce
            return (child, next, due)
        }
        child?.worker?.finish()
        perform(due)
        return next
    }

    /// What a child that has finished reports, if it is a failure.
    private func failure(of operation: Operation, slot: Int) -> SuboperationError? {
        guard let error = failure(of: operation) else { return nil }
        let index = lock.withLock { schedule.ordinal(of: slot) }
        return SuboperationError(name: operation.displayName(at: index), index: index, error: error)
    }

    /// The error of a child that has finished, if it is a failure.
    private func failure(of operation: Operation) -> (any Error)? {
        guard let error = (operation as? AsyncOperation)?.error ?? (operation as? any FailableOperation)?.error else {
            return nil
        }
        if error is CancellationError { return nil }
        if case .cancelled(_, let errors, _) = error as? CompoundOperationError, errors.isEmpty { return nil }
        return error
    }
}

extension Operation {
    /// Whether the operation cannot be started yet. One that somebody else has started does not have to.
    fileprivate var hasToWait: Bool {
        !isReady && !isExecuting && !isFinished
    }
}

/// An operation of the private queue that begins children. It ends when it leaves, or when the child ends whose place
/// it keeps.
final class ChildWorker: AsyncOperation, @unchecked Sendable {
    private let scheduler: ChildScheduler

    init(_ scheduler: ChildScheduler) {
        self.scheduler = scheduler
        super.init()
    }

    override func main() {
        scheduler.work(self)
    }
}
