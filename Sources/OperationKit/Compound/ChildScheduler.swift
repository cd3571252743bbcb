import Foundation

/// Runs the children of one compound on its private queue.
///
/// ``ChildSchedule`` decides, a lock guards it, and what follows is done after unlocking. Ready children are begun by
/// workers, operations on the private queue each of which calls `start()` on one child after the other. So the queue's
/// own limit and suspension hold, inside a synchronous child the current queue is the private one, and a thousand quick
/// children cost one operation of the queue, not a thousand. A child that is not ready when its turn comes (it waits
/// for something outside, or overrides `isReady`) is put on the queue itself, which watches it and begins it.
///
/// The end of an `AsyncOperation` is reported by itself. A synchronous operation has ended when `start()` returns. Any
/// other one is watched.
final class ChildScheduler: @unchecked Sendable {
    struct Child {
        let operation: Operation
        /// Until its addition is complete it may be taken back, and is not begun.
        var isBeingAdded: Bool
        /// What it depends on, as far as that had not finished: other children, and operations outside.
        var dependencies: [ObjectIdentifier] = []
        /// The worker that keeps the child's place on the queue.
        var worker: ChildWorker?
    }

    private enum Stage { case idle, preparing, running, over }

    /// After how many children a worker goes to the end of the queue, so that others get their turn.
    static let batch = 256

    let queue = OperationQueue()
    let failurePolicy: CompoundOperation.FailurePolicy

    let lock = NSLock()
    var schedule: ChildSchedule
    var children: [Child?] = []
    var slots: [ObjectIdentifier: Int] = [:]
    /// Operations that are no children, and the children that wait for them. They may become children later.
    var awaited: [ObjectIdentifier: Set<Int>] = [:]
    private var stage = Stage.idle
    var failures: [SuboperationError] = []
    /// The compound, kept alive while it runs.
    private var running: CompoundOperation?

    init(limit: Int, failurePolicy: CompoundOperation.FailurePolicy) {
        self.failurePolicy = failurePolicy
        schedule = ChildSchedule(limit: limit)
        queue.maxConcurrentOperationCount = limit
    }

    deinit {
        var operations = children.compactMap { $0?.operation }
        children = []
        DependencyRelease.release(&operations)
    }

    /// Whether the compound has begun, so that children that come have to be made known to the schedule.
    var hasBegun: Bool { stage != .idle }
    var isOver: Bool { stage == .over }
}

// What the compound asks for.
extension ChildScheduler {
    /// Begins the children, and reports to the compound when all of them have ended.
    func run(for compound: CompoundOperation) {
        let (settled, isCancelled) = lock.withLock {
            stage = .preparing
            running = compound
            let settled = children.indices.compactMap { slot -> Next? in
                guard let child = children[slot], !child.isBeingAdded else { return nil }
                return (slot, child.operation)
            }
            return (settled, schedule.cancelsNewChildren)
        }
        for (slot, operation) in settled where operation.isFinished { ended(slot, operation) }
        let waiting = settled.filter { slot, operation in lock.withLock { children[slot]?.operation === operation } }
        if !isCancelled, let cycle = connect(waiting, of: compound) { compound.finish(withError: cycle) }
        let priorities = waiting.map(\.operation.queuePriority)
        let due = lock.withLock {
            for (child, priority) in zip(waiting, priorities) { schedule.known(child.slot, priority: priority) }
            schedule.began()
            stage = .running
            return consequences()
        }
        perform(due)
    }

    /// Tells the schedule who depends on whom. That may have changed since the children were added.
    ///
    /// - Returns: An error, if children wait for each other in a circle, or for the compound.
    private func connect(_ waiting: [Next], of compound: CompoundOperation) -> CompoundOperationError? {
        let name = compound.displayName
        for (slot, operation) in waiting {
            let dependencies = operation.unfinishedDependencies
            if let around = dependencies.first(where: { compound.isInside($0) }) {
                let index = lock.withLock { schedule.ordinal(of: slot) }
                return .dependencyCycle(name: name, path: [operation.displayName(at: index), around.displayName])
            }
            lock.withLock { connect(slot, to: dependencies) }
        }
        guard let circle = lock.withLock({ self.circle(through: waiting.map(\.slot)) }) else { return nil }
        return .dependencyCycle(name: name, path: circle.map { $0.operation.displayName(at: $0.index) })
    }

    /// Cancels all children, and those that are added from now on. When it returns, all of them are cancelled.
    func cancelAll() {
        let operations = lock.withLock {
            schedule.cancelling()
            return children.compactMap { $0?.operation }
        }
        for operation in operations { operation.cancel() }
        let due = lock.withLock {
            schedule.cancelled()
            return consequences()
        }
        applySettings()
        perform(due)
    }

    /// A child was cancelled, by the compound or by itself. One that waits for its siblings may end before them.
    func childWasCancelled(_ child: AsyncOperation) {
        let due = lock.withLock {
            guard !schedule.cancelsNewChildren, let slot = slots[ObjectIdentifier(child)] else { return Consequences() }
            schedule.released(slot)
            return consequences()
        }
        perform(due)
    }

    var limit: Int {
        get { lock.withLock { schedule.limit } }
        set { change { $0.limit = newValue } }
    }

    var isSuspended: Bool {
        get { lock.withLock { schedule.isSuspended } }
        set { change { $0.isSuspended = newValue } }
    }

    private func change(_ body: (inout ChildSchedule) -> Void) {
        let due = lock.withLock {
            body(&schedule)
            return consequences()
        }
        applySettings()
        perform(due)
    }

    /// Gives the private queue the limit and the suspension that are in force, also when several threads change them at
    /// once: whoever writes last has looked afterwards.
    private func applySettings() {
        var applied: (limit: Int, isSuspended: Bool)
        repeat {
            applied = lock.withLock { (schedule.limitInForce, schedule.isSuspendedInForce) }
            queue.maxConcurrentOperationCount = applied.limit
            queue.isSuspended = applied.isSuspended
        } while applied != lock.withLock { (schedule.limitInForce, schedule.isSuspendedInForce) }
    }
}

// What follows from a change, outside the lock.
extension ChildScheduler {
    struct Consequences {
        var workers = 0
        var cancelsOthers = false
        var changesSettings = false
        /// The compound, once all its children have ended, and their failures.
        var over: (compound: CompoundOperation, failures: [SuboperationError])?
    }

    /// What follows from the state as it is. To be called with the lock held, and to be performed without it.
    func consequences() -> Consequences {
        var due = Consequences(workers: schedule.workersToSendFor())
        if stage == .running, schedule.remaining == 0, let running {
            stage = .over
            let total = schedule.added
            let sorted = failures.sorted { $0.index < $1.index }
            due.over = (
                running,
                sorted.map { SuboperationError(name: $0.name, index: $0.index, error: $0.error, siblingCount: total) }
            )
            self.running = nil
            failures = []
        }
        return due
    }

    func perform(_ consequences: Consequences) {
        if consequences.changesSettings { applySettings() }
        for _ in 0..<consequences.workers {
            let worker = ChildWorker(self)
            // The queue's own counts for its first operation only, on Linux.
            if queue.qualityOfService != .default { worker.qualityOfService = queue.qualityOfService }
            queue.addOperation(worker)
        }
        if consequences.cancelsOthers { cancelAll() }
        if let (compound, failures) = consequences.over { compound.childrenFinished(failures: failures) }
    }
}
