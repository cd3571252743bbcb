import OperationKit

/// What a recorder knows of operations, in about a hundred bytes for each: rows of numbers, and rare things elsewhere.
///
/// Copies share what is not changed afterwards, so a copy can be taken with a lock held, and read without it.
///
/// Complexity: each change is O(1), apart from finding out which of many dependencies are known.
struct TimelineRows: Sendable {
    /// Nanoseconds since the recorder was created; `never` if something has not happened.
    typealias Time = Int64
    static let never = Time.min
    /// How long after the end of its operation a `main()` has to return to be recorded: a millisecond.
    static let lateness: Time = 1_000_000
    /// How many waits, and how many retries, are kept of one operation: the first ones.
    static let mostDetails = 100
    /// How many dependencies are kept of all operations, for each one that there may be.
    static let dependenciesEach = 8

    /// One operation.
    struct Row: Sendable {
        let id: UInt64
        /// The identifier of the composite around the operation; ``none`` if there is none.
        var parent: UInt64
        var added = never
        var started = never
        var running = never
        var finished = never
        var name: TimelineTexts.Reference
        /// The place of the last dependency, plus 1; 0 for none.
        var lastDependency: UInt32 = 0
        /// The place of the details, plus 1; 0 for none.
        var details: UInt32 = 0
        var type: UInt16
        var outcome = Outcome.none
        var isComposite = false

        static let none = UInt64.max
    }

    enum Outcome: UInt8, Sendable {
        case none, success, cancelled, failed
    }

    struct Dependency: Sendable {
        /// What to add to the identifier of the operation to get that of the one that it depends on. They are created
        /// one soon after the other, as a rule.
        let difference: Int32
        /// The place of the previous one, plus 1; 0 for none.
        let previous: UInt32
    }

    /// What most operations don't have.
    struct Details: Sendable {
        var cancelled = never
        var returned = never
        var waits: [Wait] = []
        var retries: [Retry] = []
        var resources: [TimelineTexts.Reference] = []
        var error: TimelineTexts.Reference = 0
        /// -1 for none.
        var limit: Int32 = -1
    }

    struct Wait: Sendable {
        let reason: TimelineTexts.Reference
        let from: Time
        var to = never
    }

    struct Retry: Sendable {
        let attempt: Int32
        let error: TimelineTexts.Reference
        let time: Time
        let delay: Duration
    }

    private let maximumCount: Int
    private(set) var rows = ChunkedList<Row>()
    private(set) var details = ChunkedList<Details>()
    private(set) var dependencies = ChunkedList<Dependency>()
    private(set) var texts = TimelineTexts()
    private(set) var typeNames: [String] = []
    private var types: [ObjectIdentifier: UInt16] = [:]
    private var places = RowPlaces()
    /// How many operations have finished that there was no row for.
    private(set) var droppedCount = 0
    /// How many operations with a row have not finished.
    private(set) var unfinishedCount = 0

    init(maximumCount: Int) {
        self.maximumCount = maximumCount
    }

    // MARK: - Finding

    /// The row of an operation, if there is one.
    func row(of id: OperationID) -> Int? {
        places.place(of: id.number) { rows[$0].id }
    }

    /// The row of an operation, which is added if there is none.
    ///
    /// - Returns: `nil` if there is no room for another one.
    mutating func row(of id: OperationID, name: @autoclosure () -> String, type: AsyncOperation.Type) -> Int? {
        if let row = row(of: id) { return row }
        guard rows.count < maximumCount else { return nil }
        let row = rows.count
        rows.append(Row(id: id.number, parent: Row.none, name: texts.reference(to: name()), type: number(of: type)))
        places.insert(row, id: id.number) { rows[$0].id }
        unfinishedCount += 1
        return row
    }

    private mutating func number(of type: AsyncOperation.Type) -> UInt16 {
        if let number = types[ObjectIdentifier(type)] { return number }
        // So many types are there only if a program makes them at run time.
        guard typeNames.count < UInt16.max else { return UInt16.max - 1 }
        let number = UInt16(typeNames.count)
        typeNames.append(type.nameInMessages)
        types[ObjectIdentifier(type)] = number
        return number
    }

    // MARK: - Changing

    mutating func change(_ row: Int, _ body: (inout Row) -> Void) {
        body(&rows[row])
    }

    /// Changes the details of an operation, which are created if there are none.
    mutating func changeDetails(_ row: Int, _ body: (inout Details, inout TimelineTexts) -> Void) {
        if rows[row].details == 0 {
            details.append(Details())
            rows[row].details = UInt32(details.count)
        }
        body(&details[Int(rows[row].details) - 1], &texts)
    }

    mutating func rename(_ row: Int, _ name: String) {
        if !texts.matches(rows[row].name, name) { rows[row].name = texts.reference(to: name) }
    }

    mutating func addDependencies(_ ids: [OperationID], to row: Int) {
        if ids.isEmpty { return }
        let known = rows[row].lastDependency == 0 ? [] : Set(dependencies(of: row))
        let limit = min(maximumCount * Self.dependenciesEach, Int(UInt32.max) - 1)
        for id in ids where !known.contains(id) && dependencies.count < limit {
            // Otherwise more than two billions of operations were created in between.
            guard let difference = Int32(exactly: Int64(bitPattern: id.number &- rows[row].id)) else { continue }
            dependencies.append(Dependency(difference: difference, previous: rows[row].lastDependency))
            rows[row].lastDependency = UInt32(dependencies.count)
        }
    }

    /// Ends the last wait of an operation, if it has not ended.
    mutating func endWait(_ row: Int, at time: Time) {
        guard rows[row].details != 0 else { return }
        let place = Int(rows[row].details) - 1
        guard let last = details[place].waits.indices.last, details[place].waits[last].to == Self.never else { return }
        details[place].waits[last].to = time
    }

    /// Records the end of an operation.
    mutating func finish(_ row: Int, at time: Time, _ outcome: Outcome) {
        if rows[row].finished == Self.never { unfinishedCount -= 1 }
        rows[row].finished = time
        rows[row].outcome = outcome
    }

    /// Records that the `main()` of an operation has returned after its end, which may not have been recorded yet.
    mutating func mainReturned(_ row: Int, at time: Time) {
        if rows[row].finished != Self.never, !isLate(time, row) { return }
        changeDetails(row) { details, _ in details.returned = time }
    }

    /// Whether a `main()` returned so long after the end that it is worth showing.
    func isLate(_ returned: Time, _ row: Int) -> Bool {
        returned != Self.never && rows[row].finished != Self.never && returned - rows[row].finished >= Self.lateness
    }

    /// Counts an operation for which there was no room.
    mutating func drop() { droppedCount += 1 }

    /// What an operation depends on, in the order in which that was recorded.
    func dependencies(of row: Int) -> [OperationID] {
        var ids: [OperationID] = []
        var place = rows[row].lastDependency
        while place != 0 {
            let dependency = dependencies[Int(place) - 1]
            ids.append(OperationID(rows[row].id &+ UInt64(bitPattern: Int64(dependency.difference))))
            place = dependency.previous
        }
        return ids.reversed()
    }
}

/// Finds the row of an operation by its identifier. A dictionary would need three times the memory.
private struct RowPlaces: Sendable {
    /// Each table doubles for itself, so that no event has to wait until all places are copied.
    private static let tableCount = 64

    private struct Table: Sendable {
        /// Row numbers plus 1; 0 is free. The count is a power of two, and at most three quarters are in use.
        var slots = [UInt32](repeating: 0, count: 8)
        var count = 0
    }

    private var tables = [Table](repeating: Table(), count: tableCount)

    private static func hash(_ id: UInt64) -> (table: Int, slot: Int) {
        let mixed = id &* 0x9E37_79B9_7F4A_7C15
        return (Int(mixed >> 58), Int((mixed >> 20) & 0xFFFF_FFFF))
    }

    func place(of id: UInt64, idOfRow: (Int) -> UInt64) -> Int? {
        let (table, start) = Self.hash(id)
        let mask = tables[table].slots.count - 1
        var slot = start & mask
        while case let entry = tables[table].slots[slot], entry != 0 {
            if idOfRow(Int(entry) - 1) == id { return Int(entry) - 1 }
            slot = (slot + 1) & mask
        }
        return nil
    }

    mutating func insert(_ row: Int, id: UInt64, idOfRow: (Int) -> UInt64) {
        let (table, start) = Self.hash(id)
        if (tables[table].count + 1) * 4 > tables[table].slots.count * 3 { grow(table, idOfRow: idOfRow) }
        tables[table].count += 1
        Self.put(UInt32(row) + 1, at: start, &tables[table].slots)
    }

    private mutating func grow(_ table: Int, idOfRow: (Int) -> UInt64) {
        var slots = [UInt32](repeating: 0, count: tables[table].slots.count * 2)
        for entry in tables[table].slots where entry != 0 {
            Self.put(entry, at: Self.hash(idOfRow(Int(entry) - 1)).slot, &slots)
        }
        tables[table].slots = slots
    }

    private static func put(_ entry: UInt32, at start: Int, _ slots: inout [UInt32]) {
        let mask = slots.count - 1
        var slot = start & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = entry
    }
}
