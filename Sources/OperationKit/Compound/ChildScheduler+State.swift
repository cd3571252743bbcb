import Foundation

extension ChildScheduler {
    typealias Next = (slot: Int, operation: Operation)

    enum Stage { case idle, preparing, running, over }

    struct Child {
        let operation: Operation
        /// Its share in the progress.
        let weight: Int64
        /// Until its addition is complete it may be taken back, and is not begun.
        var isBeingAdded: Bool
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
        let mayHaveDependencies: Bool

        var next: Next { (slot, operation) }

        /// - Parameter dependencies: `nil` if they do not matter.
        init(_ next: Next, dependencies: [Operation]?) {
            (slot, operation) = next
            priority = operation.queuePriority
            unfinished = (dependencies ?? []).filter { !$0.isFinished }
            // A class that is not known may depend on something by now, and reach for it after its end.
            mayHaveDependencies = dependencies?.isEmpty != true || !(operation is AsyncOperation)
        }
    }

    /// An operation that is no child, but for which children wait. It may become a child later.
    struct Outside {
        let slot: Int
        let operation: Operation
        var watch: FinishWatch?
    }

    /// All that the scheduler knows, as one value: the schedule, and which operations its slots stand for.
    struct State {
        var schedule: ChildSchedule
        var children: [Child?] = []
        /// The slots of children that are no `AsyncOperation`s, which know their own.
        private var slots: [ObjectIdentifier: Int] = [:]
        private var outside: [ObjectIdentifier: Outside] = [:]
        private(set) var unwatched: [Operation] = []
        /// Of operations that are not outside any more. A watch and what it watches hold each other until it is ended.
        private(set) var unneeded: [FinishWatch] = []
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
        /// The compound, kept alive while it runs.
        var running: (any Composite)?
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
        let watches = outside.values.compactMap(\.watch) + takeUnneeded()
        outside = [:]
        return .init(
            of: running,
            failures: sorted.map {
                SuboperationError(name: $0.name, index: $0.index, error: $0.error, siblingCount: total)
            }, watches: watches)
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
        if !outside.isEmpty, let known = leftOutside(operation) {
            slot = known.slot
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
        schedule.known(child.slot, priority: child.priority)
    }

    /// Takes back children whose addition is not complete.
    mutating func remove(_ arrivals: [ChildScheduler.Arrival]) {
        let present = arrivals.filter { $0.slot >= 0 && isPresent($0.next) }
        for child in present { disconnect(child.slot, from: child.unfinished) }
        for child in present.reversed() {
            // Those that are present have a weight.
            ledger.added(-(forget(child.slot)?.weight ?? 0))
            let isAwaited = schedule.isAwaited(child.slot)
            schedule.removed(child.slot)
            if isAwaited { addOutside(child.operation, slot: child.slot) }
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
    /// Tells the schedule what a child depends on: other children, and operations outside.
    mutating func connect(_ slot: Int, to dependencies: [Operation]) {
        areConnected = areConnected || !dependencies.isEmpty
        for dependency in dependencies {
            if let child = self.slot(of: dependency) {
                schedule.depends(slot, on: child)
            } else if let known = outside[ObjectIdentifier(dependency)] {
                schedule.depends(slot, on: known.slot)
            } else {
                let new = schedule.addedOutside()
                addOutside(dependency, slot: new)
                schedule.depends(slot, on: new)
            }
        }
    }

    private mutating func disconnect(_ slot: Int, from dependencies: [Operation]) {
        for dependency in dependencies {
            if let child = self.slot(of: dependency) {
                schedule.dependsNoMore(slot, on: child)
            } else if let known = outside[ObjectIdentifier(dependency)] {
                schedule.dependsNoMore(slot, on: known.slot)
                if schedule.isAwaited(known.slot) { continue }
                _ = leftOutside(dependency)
                schedule.outsideEnded(known.slot)
            }
        }
    }

    /// Nobody depends on anybody, as long as nothing has begun.
    mutating func forgetDependencies() {
        unconnected = []
        if !areConnected { return }
        areConnected = false
        schedule.forgetDependencies()
        unneeded += outside.values.compactMap(\.watch)
        outside = [:]
        unwatched = []
    }

    mutating func takeUnconnected() -> [Next] {
        if unconnected.isEmpty { return [] }
        defer { unconnected = [] }
        return unconnected.compactMap { slot in children[slot].map { (slot, $0.operation) } }
    }

    private mutating func addOutside(_ operation: Operation, slot: Int) {
        outside[ObjectIdentifier(operation)] = .init(slot: slot, operation: operation)
        unwatched.append(operation)
    }

    mutating func takeUnwatched() -> [Operation] {
        defer { unwatched = [] }
        return unwatched
    }

    mutating func takeUnneeded() -> [FinishWatch] {
        defer { unneeded = [] }
        return unneeded
    }

    /// An operation is not outside any more, without having ended.
    private mutating func leftOutside(_ operation: Operation) -> ChildScheduler.Outside? {
        let known = outside.removeValue(forKey: ObjectIdentifier(operation))
        if let watch = known?.watch { unneeded.append(watch) }
        return known
    }

    /// An operation outside is watched now.
    ///
    /// - Returns: Whether it has to be: children still wait for it, and nothing else watches it.
    mutating func watched(_ operation: Operation, by watch: FinishWatch) -> Bool {
        // It may have been a child for a moment, and have been watched anew since.
        guard let known = outside[ObjectIdentifier(operation)], known.watch == nil else { return false }
        outside[ObjectIdentifier(operation)]?.watch = watch
        return true
    }

    /// An operation has ended. If it is outside, nobody waits for it any more.
    mutating func outsideEnded(_ operation: Operation) {
        guard let known = outside.removeValue(forKey: ObjectIdentifier(operation)) else { return }
        schedule.outsideEnded(known.slot)
    }

    mutating func circle(through slots: some Sequence<Int>) -> [(operation: Operation, index: Int)]? {
        if !areConnected { return nil }
        return schedule.cycle(through: slots)?.compactMap { slot in
            children[slot].map { ($0.operation, schedule.ordinal(of: slot)) }
        }
    }
}
