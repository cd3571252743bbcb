import Foundation

/// Runs the children of one compound, or of another composite, on its private queue.
///
/// ``ChildSchedule`` decides, a lock guards it, and what follows is done after unlocking. Ready `AsyncOperation`s are begun
/// by workers, operations of the private queue each of which calls `start()` on one child after the other. So inside a
/// child the current queue is the private one, and a thousand quick children cost one operation of the queue, not a
/// thousand.
///
/// Workers hand all other children to the private queue, which begins them: Foundation's own `start()` traps if the
/// operation is given a dependency at that moment, except where a queue calls it. So do they with an `AsyncOperation` that
/// is not ready when its turn comes, because its class overrides `isReady`.
///
/// The end of an `AsyncOperation` is reported by itself. Others are watched, and so are operations outside for which
/// children wait, each of them once.
final class ChildScheduler: @unchecked Sendable {
    /// After how many children a worker goes to the end of the queue, so that others get their turn.
    static let batch = 256

    let queue = OperationQueue.ofComposite()
    let failurePolicy: FailurePolicy
    /// Whether a child that was cancelled counts as one that failed, as long as the others are not cancelled. Failures
    /// come in the order in which they happened then.
    let countsCancellations: Bool
    /// What descriptions call the children.
    let unit: String

    private let lock = NSLock()
    // Whoever has the lock has the state for itself, so the run-time checks of that would only cost time.
    @exclusivity(unchecked) private var state: State

    init(
        limit: Int, failurePolicy: FailurePolicy, countsCancellations: Bool = false,
        unit: String = "children"
    ) {
        self.failurePolicy = failurePolicy
        self.unit = unit
        self.countsCancellations = countsCancellations
        unsafe state = State(schedule: ChildSchedule(limit: limit, keepsOrder: countsCancellations))
        queue.maxConcurrentOperationCount = limit
    }

    deinit {
        var operations = unsafe state.operations
        unsafe state.children = []
        DependencyRelease.release(&operations)
    }

    /// Reads and changes the state, with the lock held. `body` calls nobody but, for its number, a child.
    func withState<Value>(_ body: (inout State) throws -> Value) rethrows -> Value {
        try lock.withLock { try unsafe body(&state) }
    }
}

// What the compound asks for.
extension ChildScheduler {
    /// Begins the children, and reports to the composite when all of them have ended.
    func run() {
        let (composite, slots, isCancelled) = withState { state in
            state.stage = .preparing
            state.running = state.composite
            // All of them are asked again. Children that come meanwhile are connected as they come.
            state.forgetDependencies()
            return (state.composite, state.children.indices, state.schedule.cancelsNewChildren)
        }
        // It calls this, so it is there.
        guard let composite else { return }
        var cycle: CompoundOperationError?
        for first in stride(from: 0, to: slots.count, by: ChildScheduler.batch) {
            let last = min(first + ChildScheduler.batch, slots.count)
            let found = getToKnow(first..<last, of: composite, isCancelled: isCancelled)
            cycle = cycle ?? found
        }
        if let cycle = cycle ?? circle(of: composite) { composite.finish(withError: cycle) }
        let due = withState { state in
            state.schedule.began()
            state.stage = .running
            return consequences(of: &state)
        }
        perform(due)
    }

    /// Asks the children in some of the slots what they are like, and whom they wait for.
    ///
    /// - Returns: An error, if one of them waits for the compound.
    private func getToKnow(
        _ slots: Range<Int>, of compound: AsyncOperation, isCancelled: Bool
    ) -> CompoundOperationError? {
        var children: [Arrival] = []
        var cycle: CompoundOperationError?
        for child in withState({ $0.present(in: slots) }) {
            if child.operation.isFinished, withState({ $0.isSettled(child) }) {
                ended(child, error: child.operation.endingError)
                continue
            }
            let arrival = Arrival(child, isCancelled: isCancelled)
            children.append(arrival)
            guard let around = arrival.unfinished.first(where: { compound.isInside($0) }) else { continue }
            let index = withState { $0.schedule.ordinal(of: child.slot) }
            cycle = .dependencyCycle(
                name: compound.displayName, path: [child.operation.displayName(at: index), around.displayName])
        }
        withState { state in
            for child in children where state.isPresent(child.next) {
                state.connect(child.slot, to: child.unfinished)
                if state.isSettled(child.next) { state.known(child) }
            }
        }
        return cycle
    }

    /// An error, if children wait for each other in a circle.
    private func circle(of compound: AsyncOperation) -> CompoundOperationError? {
        let circle = withState { $0.circle(through: $0.children.indices) }
        guard let circle else { return nil }
        return .dependencyCycle(
            name: compound.displayName, path: circle.map { $0.operation.displayName(at: $0.index) })
    }

    /// Cancels all children, and those that are added from now on. When it returns, all of them are cancelled.
    ///
    /// Several threads may do so at once, each of them for all children. Only one that is cancelling them already, and
    /// comes here again from a hook of a child's, returns at once.
    func cancelAll() {
        let thread = ObjectIdentifier(Thread.current)
        let operations = withState { state -> [Operation]? in
            state.schedule.cancelling()
            if state.schedule.isCancelled || !state.cancelling.insert(thread).inserted { return nil }
            return state.operations
        }
        guard let operations else { return }
        stopStarting(inside: operations)
        for operation in operations { operation.cancel() }
        change { $0.cancelled() }
        withState { _ = $0.cancelling.remove(thread) }
    }

    /// Keeps children at any depth from beginning, before the first operation is cancelled: one of them may wait for
    /// another one to end, and would begin before its turn to be cancelled comes.
    ///
    /// A group that is stopped already has been asked with all that is inside it, so each is asked once.
    private func stopStarting(inside operations: [Operation]) {
        var open = operations
        while let operation = open.popLast() {
            if let group = (operation as? AsyncOperation)?.ownChildren { open += group.stopStarting() }
        }
    }

    func stopStarting() -> [Operation] {
        withState { state in
            if state.schedule.cancelsNewChildren { return [] }
            state.schedule.cancelling()
            return state.operations
        }
    }

    /// A child was cancelled, by the compound or by itself. One that waits for its siblings may end before them.
    func childWasCancelled(_ child: Operation) {
        let due = withState { state in
            guard !state.schedule.cancelsNewChildren, let slot = state.slot(of: child) else { return Consequences() }
            state.schedule.released(slot)
            return consequences(of: &state)
        }
        perform(due)
    }

    var limit: Int {
        get { withState { $0.schedule.limit } }
        set { change { $0.limit = newValue } }
    }

    var isSuspended: Bool {
        get { withState { $0.schedule.isSuspended } }
        set { change { $0.isSuspended = newValue } }
    }

    private func change(_ body: (inout ChildSchedule) -> Void) {
        var due = withState { state in
            body(&state.schedule)
            return consequences(of: &state)
        }
        due.changesSettings = true
        perform(due)
    }

    /// Gives the private queue the limit and the suspension that are in force, also when several threads change them at
    /// once: whoever writes last has looked afterwards.
    func applySettings() {
        var applied: (limit: Int, isSuspended: Bool)
        repeat {
            applied = withState { ($0.schedule.limitInForce, $0.schedule.isSuspendedInForce) }
            queue.maxConcurrentOperationCount = applied.limit
            queue.isSuspended = applied.isSuspended
        } while applied != withState { ($0.schedule.limitInForce, $0.schedule.isSuspendedInForce) }
    }
}

// What follows from a change, outside the lock.
extension ChildScheduler {
    struct Consequences {
        var sendsForWorker = false
        var workerPriority = Operation.QueuePriority.normal
        var cancelsOthers = false
        var changesSettings = false
        var outside: OutsideChanges?
        /// The compound, once all its children have ended.
        var over: End?

        /// What has changed for operations outside. A class, so that the consequences of most ends of children, which are
        /// none, are passed on for nothing.
        final class OutsideChanges {
            /// Operations for which children wait.
            let toWatch: [Operation]
            /// Of operations that are not outside any more.
            let unneeded: [FinishObserver]
            /// Only to be released.
            let released: [Operation]

            init(toWatch: [Operation], unneeded: [FinishObserver], released: [Operation]) {
                self.toWatch = toWatch
                self.unneeded = unneeded
                self.released = released
            }
        }

        /// A class for the same reason.
        final class End {
            /// Kept alive until it has been told.
            let composite: AsyncOperation
            let handlers: CompositeHandlers?
            let failures: [SuboperationError]

            init(of composite: AsyncOperation, _ handlers: CompositeHandlers?, failures: [SuboperationError]) {
                self.composite = composite
                self.handlers = handlers
                self.failures = failures
            }
        }
    }

    /// What follows from the state as it is. To be called with the lock held, and to be performed without it.
    func consequences(of state: inout State) -> Consequences {
        var due = Consequences(sendsForWorker: state.schedule.sendsForWorker())
        if due.sendsForWorker { due.workerPriority = state.schedule.workerPriority }
        let limit = state.schedule.limitInForce
        due.changesSettings = state.appliedLimit != limit
        state.appliedLimit = limit
        if state.stage == .running, state.schedule.remaining == 0 {
            due.over = state.end(sortsFailures: !countsCancellations)
            // A worker that is on its way has to arrive, or the queue would not be freed.
            due.changesSettings = due.changesSettings || state.schedule.isSuspended || state.schedule.limit == 0
        }
        due.outside = state.takeOutsideChanges()
        return due
    }

    func perform(_ due: Consequences) {
        if due.changesSettings { applySettings() }
        if due.sendsForWorker { queue.addOperation(ChildWorker(self, priority: due.workerPriority)) }
        if let outside = due.outside {
            for operation in outside.toWatch { watchOutside(operation) }
            for watch in outside.unneeded { watch.end() }
        }
        if due.cancelsOthers { cancelAll() }
        if let end = due.over {
            end.handlers?.finished(end.failures)
        }
    }

    /// Notices the end of an operation for which children wait.
    private func watchOutside(_ operation: Operation) {
        let watch = FinishObserver(operation) { self.outsideEnded(operation) }
        if !withState({ $0.watched(operation, by: watch) }) { watch.end() }
    }

    private func outsideEnded(_ operation: Operation) {
        let due = withState { state in
            state.outsideEnded(operation)
            return consequences(of: &state)
        }
        perform(due)
    }
}
