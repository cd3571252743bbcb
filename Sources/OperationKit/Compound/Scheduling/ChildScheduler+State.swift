import Foundation

extension ChildScheduler {
    typealias Next = (slot: Int, operation: Operation)

    enum Stage { case idle, preparing, running, over }

    struct Child {
        let operation: Operation
        /// Its share in the progress.
        let weight: Int64
        /// Until its addition is complete it is not begun.
        var isBeingAdded: Bool
        /// Whether its end has been counted in the progress, to which it has nothing to add from then on.
        var isEnding = false
        /// Whether it has to let go of dependencies when it has ended.
        var mayHaveDependencies = true
    }

    /// What a child says of itself when the schedule gets to know it. These may be overridden, so they are asked for
    /// without the lock.
    struct Arrival {
        /// Negative as long as it has none.
        var slot: Int
        let operation: Operation
        let priority: Operation.QueuePriority
        /// Those of its dependencies that have not finished.
        let unfinished: [Operation]
        /// Whether these do not matter, because of the state that the child has already.
        let isReleased: Bool
        let mayHaveDependencies: Bool

        var next: Next { (slot, operation) }

        /// - Parameter isCancelled: Whether the child is about to be cancelled, and only has to end.
        init(_ next: Next, isCancelled: Bool = false) {
            (slot, operation) = next
            priority = operation.queuePriority
            let dependencies = operation.dependencies
            unfinished = isCancelled ? [] : dependencies.filter { !$0.isFinished }
            isReleased = !unfinished.isEmpty && operation.ignoresDependencies
            // A class that is not known may depend on something by now, and reach for it after its end.
            mayHaveDependencies = !dependencies.isEmpty || !(operation is AsyncOperation)
        }
    }

    /// An operation that is no child, but for which children wait. It may become a child later.
    final class Outside {
        let slot: Int
        /// `nil` once it has ended, has become a child, or is not waited for any more.
        var operation: Operation?
        var watch: FinishObserver?
        /// How many children wait for it.
        var waiting = 0
        /// How many children have ended without having waited for its end.
        var abandoned = 0

        init(slot: Int, operation: Operation) {
            self.slot = slot
            self.operation = operation
        }
    }

    /// All that the scheduler knows, as one value: the schedule, and which operations its slots stand for.
    struct State {
        var schedule: ChildSchedule
        var children: [Child?] = []
        /// The slots of children that are no `AsyncOperation`s, which know their own.
        private var slots: [ObjectIdentifier: Int] = [:]
        private var outside: [ObjectIdentifier: Outside] = [:]
        /// Those outside for which a child waits, by its slot.
        private var awaited: [Int: [Outside]] = [:]
        private(set) var unwatched: [Operation] = []
        /// Of operations that are not outside any more. A watch and what it watches hold each other until it is ended.
        private(set) var unneeded: [FinishObserver] = []
        /// To be released after unlocking: this may be the last reference.
        private(set) var released: [Operation] = []
        private var areConnected = false
        /// Children whose dependencies have not been looked at.
        var unconnected: [Int] = []
        var ledger = ProgressLedger()
        /// Whether the composite has to be told about its progress.
        var isProgressWanted = false
        var stage = Stage.idle
        var failures: [SuboperationError] = []
        /// The threads that are cancelling the children.
        var cancelling: Set<ObjectIdentifier> = []
        /// Whose children these are.
        weak var composite: AsyncOperation?
        var handlers: CompositeHandlers?
        /// The composite, kept alive while it runs.
        var running: AsyncOperation?
        /// What the composite depends on and does not know what it is part of.
        var foreignDependencies: Set<ObjectIdentifier> = []
        /// What the private queue was told last, or is about to be told.
        var appliedLimit: Int

        init(schedule: ChildSchedule) {
            self.schedule = schedule
            appliedLimit = schedule.limitInForce
        }
    }
}

// Who is there.
extension ChildScheduler.State {
    typealias Next = ChildScheduler.Next

    var operations: [Operation] { children.compactMap { $0?.operation } }

    func present(in slots: Range<Int>) -> [Next] {
        slots.compactMap { slot in children[slot].map { (slot, $0.operation) } }
    }

    func isPresent(_ next: Next) -> Bool {
        children[next.slot]?.operation === next.operation
    }

    /// Whether a child is there, and not just being added.
    func isSettled(_ next: Next) -> Bool {
        // It may have ended meanwhile.
        guard let child = children[next.slot] else { return false }
        return child.operation === next.operation && !child.isBeingAdded
    }

    /// The slot of a child.
    func slot(of operation: Operation) -> Int? {
        if let operation = operation as? AsyncOperation {
            guard let slot = operation.slot, slot < children.count, isPresent((slot, operation)) else { return nil }
            return slot
        }
        return slots.isEmpty ? nil : slots[ObjectIdentifier(operation)]
    }

    /// The children have all ended: what the compound has to know, once.
    mutating func end(sortsFailures: Bool) -> ChildScheduler.Consequences.End? {
        // Whoever calls this has seen that it is not over.
        guard let running else { return nil }
        stage = .over
        self.running = nil
        let total = schedule.added
        let sorted = sortsFailures ? failures.sorted { $0.index < $1.index } : failures
        failures = []
        for known in outside.values { leaveOutside(known) }
        schedule.finished()
        return .init(
            of: running, handlers,
            failures: sorted.map {
                SuboperationError(name: $0.name, index: $0.index, error: $0.error, siblingCount: total)
            })
    }
}

// Children come and go.
extension ChildScheduler.State {
    /// Children of a composite that has not begun.
    mutating func insert(_ operations: some Collection<Operation>, weight: Int64 = 1) {
        if children.isEmpty {
            children.reserveCapacity(operations.count)
            schedule.records.reserveCapacity(operations.count)
        }
        for operation in operations { unconnected.append(insert(operation, weight: weight, isBeingAdded: false)) }
    }

    mutating func insert(_ operation: Operation, weight: Int64, isBeingAdded: Bool) -> Int {
        let weight = ProgressLedger.weight(weight)
        ledger.added(weight)
        let slot: Int
        if !outside.isEmpty, let known = outside[ObjectIdentifier(operation)] {
            slot = known.slot
            leaveOutside(known)
            schedule.adopted(slot)
        } else {
            slot = schedule.addedChild()
        }
        while children.count <= slot { children.append(nil) }
        children[slot] = .init(operation: operation, weight: weight, isBeingAdded: isBeingAdded)
        if let operation = operation as? AsyncOperation {
            operation.slot = slot
        } else {
            slots[ObjectIdentifier(operation)] = slot
        }
        return slot
    }

    /// The schedule gets to know a child.
    mutating func known(_ child: ChildScheduler.Arrival) {
        children[child.slot]?.mayHaveDependencies = child.mayHaveDependencies
        if child.isReleased { schedule.released(child.slot) }
        schedule.known(child.slot, priority: child.priority)
    }

    /// Takes back children that were added last, before anything else has happened.
    mutating func remove(_ arrivals: [ChildScheduler.Arrival]) {
        for child in arrivals { disconnect(child.slot, from: child.unfinished) }
        for child in arrivals.reversed() {
            // Those that are present have a weight.
            ledger.added(-(forget(child.slot)?.weight ?? 0))
            let waiting = schedule.dependentCount(of: child.slot)
            schedule.removed(child.slot)
            if waiting > 0 { becomeOutside(child.operation, slot: child.slot, waiting: waiting) }
        }
        // An operation around this one would be held by it.
        unwatched.removeAll { outside[ObjectIdentifier($0)] == nil }
    }

    /// A child has ended.
    mutating func forget(_ slot: Int) -> ChildScheduler.Child? {
        // Whoever calls this has seen that it is present.
        guard let child = children[slot] else { return nil }
        children[slot] = nil
        if !slots.isEmpty { slots[ObjectIdentifier(child.operation)] = nil }
        return child
    }
}

// Who waits for whom.
extension ChildScheduler.State {
    private typealias Outside = ChildScheduler.Outside

    /// Tells the schedule what a child depends on: other children, and operations outside.
    mutating func connect(_ slot: Int, to dependencies: [Operation]) {
        areConnected = areConnected || !dependencies.isEmpty
        for dependency in dependencies {
            if let child = self.slot(of: dependency) {
                schedule.depends(slot, on: child)
            } else {
                let known =
                    outside[ObjectIdentifier(dependency)] ?? addOutside(dependency, slot: schedule.addedOutside())
                schedule.depends(slot, on: known.slot)
                known.waiting += 1
                awaited[slot, default: []].append(known)
            }
        }
    }

    private mutating func disconnect(_ slot: Int, from dependencies: [Operation]) {
        awaited[slot] = nil
        for dependency in dependencies {
            if let child = self.slot(of: dependency) {
                schedule.dependsNoMore(slot, on: child)
            } else if let known = outside[ObjectIdentifier(dependency)] {
                schedule.dependsNoMore(slot, on: known.slot)
                known.waiting -= 1
                endIfUnneeded(known)
            }
        }
    }

    /// A child has ended, perhaps without having waited for what it depends on.
    mutating func stopWaiting(_ slot: Int) {
        guard !awaited.isEmpty, let known = awaited.removeValue(forKey: slot) else { return }
        for known in known where known.operation != nil {
            known.waiting -= 1
            known.abandoned += 1
            endIfUnneeded(known)
            // Half of what is looked at is removed, so this costs O(1) for each child that has ended.
            if known.operation != nil, known.abandoned > known.waiting {
                known.abandoned = 0
                schedule.forgetEndedDependents(of: known.slot)
            }
        }
    }

    /// Children depend on nothing, as long as nothing has begun.
    mutating func forgetDependencies() {
        unconnected = []
        if !areConnected { return }
        areConnected = false
        schedule.forgetDependencies()
        for known in outside.values { leaveOutside(known) }
        awaited = [:]
        released += unwatched
        unwatched = []
    }

    mutating func takeUnconnected() -> [Next] {
        if unconnected.isEmpty { return [] }
        defer { unconnected = [] }
        return unconnected.compactMap { slot in children[slot].map { (slot, $0.operation) } }
    }

    @discardableResult
    private mutating func addOutside(_ operation: Operation, slot: Int) -> Outside {
        let new = Outside(slot: slot, operation: operation)
        outside[ObjectIdentifier(operation)] = new
        unwatched.append(operation)
        return new
    }

    /// A child that was taken back is waited for.
    private mutating func becomeOutside(_ operation: Operation, slot: Int, waiting: Int) {
        let new = addOutside(operation, slot: slot)
        new.waiting = waiting
        for dependent in schedule.records[slot].dependents { awaited[dependent, default: []].append(new) }
    }

    /// What is to be done for operations outside after unlocking. Nothing is watched before the children may begin, nor
    /// when they have ended.
    mutating func takeOutsideChanges() -> ChildScheduler.Consequences.OutsideChanges? {
        if unwatched.isEmpty, unneeded.isEmpty, released.isEmpty { return nil }
        let isPending = stage == .idle || stage == .preparing
        if isPending, unneeded.isEmpty, released.isEmpty { return nil }
        defer {
            if !isPending { unwatched = [] }
            unneeded = []
            released = []
        }
        return .init(toWatch: stage == .running ? unwatched : [], unneeded: unneeded, released: released)
    }

    /// An operation is not outside any more.
    private mutating func leaveOutside(_ known: Outside) {
        guard let operation = known.operation.take() else { return }
        outside[ObjectIdentifier(operation)] = nil
        released.append(operation)
        if let watch = known.watch.take() { unneeded.append(watch) }
    }

    /// No child may be waiting any more for an operation outside.
    private mutating func endIfUnneeded(_ known: Outside) {
        if known.waiting > 0 { return }
        leaveOutside(known)
        schedule.outsideEnded(known.slot)
    }

    /// An operation outside is watched now.
    ///
    /// - Returns: Whether it has to be: children still wait for it, and nothing else watches it.
    mutating func watched(_ operation: Operation, by watch: FinishObserver) -> Bool {
        // It may have been a child for a moment, and have been watched anew since.
        guard let known = outside[ObjectIdentifier(operation)], known.watch == nil else { return false }
        known.watch = watch
        return true
    }

    /// An operation has ended. If it is outside, it is not waited for any more.
    mutating func outsideEnded(_ operation: Operation) {
        guard let known = outside[ObjectIdentifier(operation)] else { return }
        leaveOutside(known)
        schedule.outsideEnded(known.slot)
    }

    mutating func circle(through slots: some Sequence<Int>) -> [(operation: Operation, index: Int)]? {
        if !areConnected { return nil }
        return schedule.cycle(through: slots)?.compactMap { slot in
            children[slot].map { ($0.operation, schedule.ordinal(of: slot)) }
        }
    }
}
