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
        /// Whether it has to release dependencies when it has ended.
        var mayHaveDependencies = true
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
}

// MARK: - Finding children

extension ChildTable {
    var operations: [Operation] { records.compactMap { $0.operation } }

    func children(in slots: Range<Int>) -> [ChildReference] {
        slots.compactMap { child(in: $0) }
    }

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
        return slots.isEmpty ? nil : slots[ObjectIdentifier(operation)]
    }
}

// MARK: - Adding and removing

extension ChildTable {
    /// Makes room for the first children of the composite, where appending one by one would copy the records.
    mutating func reserveCapacity(_ count: Int) {
        if records.isEmpty { records.reserveCapacity(count) }
    }

    mutating func insert(_ operation: Operation, weight: Int64, phase: ChildPhase) -> Int {
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

    /// Removes a child. Its slot keeps what others wait for.
    ///
    /// - Returns: The child, whose last reference this may be.
    mutating func remove(_ slot: Int) -> Operation? {
        let operation = records[slot].operation.take()
        remaining -= 1
        if !slots.isEmpty, let operation { slots[ObjectIdentifier(operation)] = nil }
        return operation
    }

    /// Gives back the ordinal of the child that was added last, as if it had never been added.
    mutating func returnOrdinal(of slot: Int) {
        if records[slot].ordinal == added - 1 { added -= 1 }
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
