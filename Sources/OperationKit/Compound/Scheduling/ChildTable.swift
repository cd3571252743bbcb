import Foundation

/// The children of a composite that have not ended, and the external dependencies that they wait for, each in a *slot*:
/// an index into ``records``.
///
/// Slots are numbers that are used again once a child has ended, so that a composite that is fed for ever stays small.
/// The table calls nothing of a child, except that an `AsyncOperation` stores its own slot.
struct ChildTable {
    /// A few dozen bytes for each child, so the large fields come first, and counts are no larger than they have to be.
    struct Record {
        /// The child; `nil` for an external dependency, and for a slot that no child has.
        var operation: Operation?
        /// The number of the child in the order of the additions, from 0.
        var ordinal = 0
        /// The slots of the children that wait for this one.
        var dependents: [Int] = []
        /// Twice the number of the last search that came here, plus 1 once that search has followed all dependents.
        var search = 0
        /// The share of the child in the progress.
        var weight: UInt32 = 0
        /// How many of those that it depends on have not ended.
        var open: Int32 = 0
        /// How many of these are external dependencies.
        var openExternal: Int32 = 0
        var phase = ChildPhase.free
        /// Whether the dependencies of the child do not matter any more, because of its own state: it was cancelled by
        /// itself, for example.
        var ignoresDependencies = false
        /// Whether only the queue can start the child.
        var isSynchronous = false
        var priority = Operation.QueuePriority.normal
    }

    var records: [Record] = []
    private var freeSlots: [Int] = []
    /// The slots of children that are no `AsyncOperation`s, which know their own.
    private var slots: [ObjectIdentifier: Int] = [:]
    /// How many children were added so far: the ordinal of the next one.
    private(set) var added = 0
    /// How many children have not ended.
    private(set) var remaining = 0
    /// How many children have ended.
    var ended: Int { added - remaining }
    /// Whether a child has been made to wait for something since the dependencies were removed.
    var hasDependencies = false
    var searches = 0
    /// How many children have ended before something that they depend on, since the last ones were forgotten.
    private(set) var early = 0
}

// MARK: - Finding children

extension ChildTable {
    var operations: [Operation] { records.compactMap { $0.operation } }

    func child(in slot: Int) -> ChildReference? {
        records[slot].operation.map { ChildReference(slot: slot, operation: $0) }
    }

    /// Whether a child is in its slot: it has not ended.
    func isPresent(_ child: ChildReference) -> Bool {
        records[child.slot].operation === child.operation
    }

    /// Whether the end of a child is being reported.
    func isEnding(_ slot: Int) -> Bool {
        if case .ending = records[slot].phase { true } else { false }
    }

    func slot(of operation: Operation) -> Int? {
        if let operation = operation as? AsyncOperation {
            guard let slot = operation.slot, slot < records.count, records[slot].operation === operation else {
                return nil
            }
            return slot
        }
        return slots[ObjectIdentifier(operation)]
    }
}

// MARK: - Adding and removing

extension ChildTable {
    /// Makes room for the first children of the composite, where appending one by one would copy the records.
    mutating func reserveCapacity(_ count: Int) {
        if records.isEmpty { records.reserveCapacity(count) }
    }

    mutating func insert(_ operation: Operation, weight: Int64 = 1, phase: ChildPhase = .added) -> Int {
        let slot = takeSlot()
        adopt(slot, operation, weight: weight, phase: phase)
        return slot
    }

    mutating func insertExternal() -> Int {
        let slot = takeSlot()
        records[slot].phase = .external
        return slot
    }

    /// An operation gets a slot of its own, or that of an external dependency which it was up to now.
    mutating func adopt(_ slot: Int, _ operation: Operation, weight: Int64, phase: ChildPhase) {
        records[slot].operation = operation
        records[slot].weight = UInt32(ProgressLedger.weight(weight))
        records[slot].phase = phase
        records[slot].ordinal = added
        added += 1
        remaining += 1
        if let operation = operation as? AsyncOperation {
            operation.slot = slot
        } else {
            slots[ObjectIdentifier(operation)] = slot
        }
    }

    /// Removes a child, which the caller holds. Its slot keeps what others wait for.
    mutating func remove(_ slot: Int) {
        let operation = records[slot].operation.take()
        remaining -= 1
        if !slots.isEmpty, let operation { slots[ObjectIdentifier(operation)] = nil }
    }

    /// Gives back the ordinal of the child that was added last, as if it had never been added.
    mutating func returnOrdinal() {
        added -= 1
    }

    /// Frees a slot to which nothing refers any more, to be used again.
    mutating func freeIfUnused(_ slot: Int) {
        guard case .gone = records[slot].phase, records[slot].open == 0 else { return }
        records[slot] = Record()
        freeSlots.append(slot)
    }

    /// Empties the table, so that the operations can be released one by one.
    mutating func removeAll() -> [Operation] {
        defer { records = [] }
        return operations
    }

    private mutating func takeSlot() -> Int {
        if let slot = freeSlots.popLast() { return slot }
        records.append(Record())
        return records.count - 1
    }
}

// MARK: - Phases and places

/// How far a child has come, from its addition to its end.
enum ChildPhase: Hashable {
    /// No child has this slot.
    case free
    /// Counted, but its addition is not complete: it does not start, and the composite does not end without it.
    case adding
    /// Added before the composite starts, which will read its dependencies then.
    case added
    /// Registered. Something that it depends on has not ended, or the composite has not started its children.
    case waiting
    /// Among those that can start.
    case ready
    /// A worker is inside `start()` of the child.
    case starting
    /// Running without a worker, and so without a place on the queue.
    case detached
    /// Handed to the operation queue, which starts it.
    case queued
    /// The same, but it was found not to be ready there.
    case queuedUnready
    /// Ended. It keeps its place until the progress of the composite has been reported.
    case ending(ChildPlace?)
    /// It has ended before what it depends on, which still refers to its slot.
    case gone
    /// No child, but an operation that children wait for.
    case external

    /// The place that a child takes in this phase; `nil` if it takes none.
    var place: ChildPlace? {
        switch self {
        case .starting: .worker
        case .detached: .detached
        case .queued: .queue
        case .queuedUnready: .unreadyQueue
        case .ending(let place): place
        case .free, .adding, .added, .waiting, .ready, .gone, .external: nil
        }
    }
}

/// The place that a child takes under the concurrency limit, from just before its start to its end.
enum ChildPlace {
    /// It has a worker, which is inside its `start()`.
    case worker
    /// Its worker has left it: `start()` returned before its end.
    case detached
    /// It was handed to the operation queue.
    case queue
    /// The same, but it is not ready there, and takes no place until it is.
    case unreadyQueue

    var isOnQueue: Bool { self == .queue || self == .unreadyQueue }
}

// MARK: - Dependencies

// What children wait for: each other, and external dependencies, which have slots of their own. ``ChildStateMachine``
// connects children when it registers them, ``ExternalDependencies`` when a child waits for an operation that is none, and
// ``ReadinessStateMachine`` counts down the dependents of what has ended.
extension ChildTable {
    /// A child depends on another one, or on an external dependency.
    mutating func addDependency(of slot: Int, on dependency: Int) {
        hasDependencies = true
        records[dependency].dependents.append(slot)
        records[slot].open += 1
        if records[dependency].phase == .external { records[slot].openExternal += 1 }
    }

    /// A child that is not registered does not depend on another one after all. Complexity: O(1) for what was added last.
    mutating func removeDependency(of slot: Int, on dependency: Int) {
        guard let index = records[dependency].dependents.lastIndex(of: slot) else { return }
        records[dependency].dependents.remove(at: index)
        records[slot].open -= 1
        if records[dependency].phase == .external { records[slot].openExternal -= 1 }
    }

    /// A child has ended before something that it depends on. Once more have done so, since the last time, than half of the slots,
    /// those that are left are forgotten, so that they don't pile up behind what does not end.
    ///
    /// Complexity: linear in the dependencies of a child, on average.
    mutating func endedEarly() {
        early += 1
        if 2 * early <= records.count { return }
        early = 0
        for slot in records.indices {
            records[slot].dependents = records[slot].dependents.filter { records[$0].phase != .gone }
        }
        for slot in records.indices where records[slot].phase == .gone {
            records[slot].open = 0
            freeIfUnused(slot)
        }
    }

    /// Removes all dependencies, and frees the slots of external dependencies. Valid only before a child has started.
    mutating func removeDependencies() {
        hasDependencies = false
        for slot in records.indices {
            records[slot].dependents = []
            records[slot].open = 0
            records[slot].openExternal = 0
            if case .external = records[slot].phase { records[slot].phase = .gone }
            freeIfUnused(slot)
        }
    }

    /// An external dependency has become a child, or the other way around: changes for all that wait for it how many of
    /// their open dependencies are external.
    mutating func changeOpenExternal(ofDependentsOf slot: Int, by change: Int32) {
        for dependent in records[slot].dependents { records[dependent].openExternal += change }
    }
}

// MARK: - Cycles

extension ChildTable {
    /// Finds children that wait for each other in a cycle.
    ///
    /// Complexity: linear in the children that wait for those in `slots`, directly or not.
    ///
    /// - Parameter slots: Where to search. A cycle is found if it passes through one of these.
    /// - Returns: The slots of the children, each of which waits for the one after it, and the last for the first; `nil` if
    ///   there is no cycle.
    mutating func dependencyCycle(through slots: some Sequence<Int>) -> [Int]? {
        if !hasDependencies { return nil }
        searches += 1
        var path: [(slot: Int, next: Int)] = []
        // Only a child that waits for others, and that others wait for, can be on a cycle.
        for start in slots
        where records[start].search < 2 * searches && records[start].open > records[start].openExternal
            && !records[start].dependents.isEmpty
        {
            path.append((start, 0))
            records[start].search = 2 * searches
            while let (slot, next) = path.last {
                guard next < records[slot].dependents.count else {
                    records[slot].search = 2 * searches + 1
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let dependent = records[slot].dependents[next]
                if hasStarted(dependent) { continue }
                switch records[dependent].search - 2 * searches {
                case 0: return path.map(\.slot).drop { $0 != dependent }.reversed()
                case 1: continue
                default:
                    path.append((dependent, 0))
                    records[dependent].search = 2 * searches
                }
            }
        }
        return nil
    }

    /// Whether a child has started, and so waits for nothing any more.
    private func hasStarted(_ slot: Int) -> Bool {
        switch records[slot].phase {
        case .detached, .ending, .gone: true
        case .free, .adding, .added, .waiting, .ready, .starting, .queued, .queuedUnready, .external: false
        }
    }
}
