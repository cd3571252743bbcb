import Foundation
import OperationKit

/// What a recorder knows of operations, in about a hundred bytes for each.
///
/// Copies share what is not changed afterwards, so a copy can be taken with a lock held, and read without it.
struct TimelineRows: Sendable {
    /// Nanoseconds since the recorder was created; `never` if something has not happened.
    typealias Time = Int64
    static let never = Time.min
    /// How many waits, and how many retries, are kept of one operation: the first ones.
    static let mostDetails = 100
    /// How many dependencies are kept of all operations, for each one that there may be.
    static let dependenciesEach = 8
    /// How many bytes of a text are kept.
    static let longestText = 1_000

    /// One operation.
    struct Row: Sendable {
        let id: OperationID
        let type: AsyncOperation.Type
        var name: String
        var parent: OperationID?
        var added = never
        var started = never
        var running = never
        var finished = never
        var dependencies: [OperationID] = []
        /// What most operations don't have: one element, or none.
        var details: [Details] = []
        var isComposite = false
    }

    struct Details: Sendable {
        var cancelled = never
        var waits: [(reason: String, from: Time, to: Time)] = []
        var retries: [(attempt: Int, error: String, time: Time, delay: Duration)] = []
        var resources: [String] = []
        /// Of an operation that did not succeed.
        var outcome: OperationTimeline.Outcome?
        var limit: Int?
    }

    private let maximumCount: Int
    private(set) var rows = ChunkedList<Row>()
    private var places: [OperationID: Int32] = [:]
    private var dependencyCount = 0
    /// How many operations have finished that there was no row for.
    private var droppedCount = 0
    /// How many operations with a row have not finished.
    private var unfinishedCount = 0

    init(maximumCount: Int) {
        self.maximumCount = maximumCount
    }

    // MARK: - Recording

    /// Records an event. The first time that something happens counts.
    mutating func record(_ event: OperationEvent, _ facts: ObservedFacts, at time: Time) {
        guard let place = place(of: event, facts) else {
            if case .finished = event.kind { droppedCount += 1 }
            return
        }
        rows[place].isComposite = facts.isComposite
        if let parent = facts.parent { rows[place].parent = parent }
        addDependencies(facts.dependencies, at: place)
        switch event.kind {
        case .added:
            if rows[place].added == Self.never { rows[place].added = time }
        case .started:
            rows[place].started = time
            if rows[place].name != event.name { rows[place].name = Self.shortened(event.name) }
        case .waiting(let reason):
            endWait(at: time, place)
            changeDetails(place) { details in
                if details.waits.count < Self.mostDetails {
                    details.waits.append((Self.shortened(reason), time, Self.never))
                }
            }
        case .running:
            endWait(at: time, place)
            rows[place].running = time
            if facts.limit == nil, facts.resources.isEmpty { return }
            changeDetails(place) { details in
                details.limit = facts.limit
                details.resources = facts.resources.map(Self.shortened)
            }
        case .cancelled:
            changeDetails(place) { $0.cancelled = time }
        case .retrying(let attempt, _, let delay):
            changeDetails(place) { details in
                if details.retries.count < Self.mostDetails {
                    details.retries.append((attempt, Self.shortened(facts.error), time, delay))
                }
            }
        case .finished:
            endWait(at: time, place)
            if rows[place].finished == Self.never { unfinishedCount -= 1 }
            rows[place].finished = time
            if let outcome = facts.outcome { changeDetails(place) { $0.outcome = outcome } }
        }
    }

    /// The place of the row of an operation, which is added if there is none; `nil` if there is no room for it.
    private mutating func place(of event: OperationEvent, _ facts: ObservedFacts) -> Int? {
        if let place = places[event.operation] { return Int(place) }
        guard rows.count < maximumCount else { return nil }
        places[event.operation] = Int32(rows.count)
        rows.append(Row(id: event.operation, type: facts.type, name: Self.shortened(event.name)))
        unfinishedCount += 1
        return rows.count - 1
    }

    private mutating func changeDetails(_ place: Int, _ body: (inout Details) -> Void) {
        if rows[place].details.isEmpty { rows[place].details = [Details()] }
        body(&rows[place].details[0])
    }

    private mutating func endWait(at time: Time, _ place: Int) {
        guard let last = rows[place].details.first?.waits.last, last.to == Self.never else { return }
        changeDetails(place) { $0.waits[$0.waits.count - 1].to = time }
    }

    private mutating func addDependencies(_ ids: [OperationID], at place: Int) {
        if ids.isEmpty || ids == rows[place].dependencies { return }
        let known = Set(rows[place].dependencies)
        for id in ids where !known.contains(id) && dependencyCount / Self.dependenciesEach < maximumCount {
            rows[place].dependencies.append(id)
            dependencyCount += 1
        }
    }

    /// A text, or its beginning if it is too long.
    static func shortened(_ text: String) -> String {
        if text.utf8.count <= longestText { return text }
        var length = "…".utf8.count
        let beginning = text.unicodeScalars.prefix { scalar in
            length += UTF8.width(scalar)
            return length <= longestText
        }
        return String(beginning) + "…"
    }

    // MARK: - Timelines

    /// The timeline, which begins with the first event.
    ///
    /// - Parameters:
    ///   - startDate: The date of the time 0 of the rows.
    ///   - now: The end, if something has not finished.
    /// - Returns: The timeline.
    func timeline(startDate: Date, now: Time) -> OperationTimeline {
        let origin = (0..<rows.count).lazy.compactMap { firstTime(of: rows[$0]) }.min() ?? now
        let entries = (0..<rows.count).map { entry(of: rows[$0], origin: origin) }
        return OperationTimeline(
            checked: entries, startDate: startDate.addingTimeInterval(Double(origin) / 1e9),
            duration: unfinishedCount > 0 ? .nanoseconds(max(0, now - origin)) : .zero, droppedCount: droppedCount)
    }

    private func firstTime(of row: Row) -> Time? {
        [row.added, row.started, row.running, row.finished, row.details.first?.cancelled ?? Self.never]
            .filter { $0 != Self.never }.min()
    }

    private func entry(of row: Row, origin: Time) -> OperationTimeline.Entry {
        func duration(_ time: Time) -> Duration? {
            time == Self.never ? nil : .nanoseconds(max(0, time - origin))
        }
        let details = row.details.first ?? Details()
        return OperationTimeline.Entry(
            id: row.id, name: row.name, typeName: row.type.nameInMessages, parent: row.parent,
            added: duration(row.added), started: duration(row.started), running: duration(row.running),
            cancelled: duration(details.cancelled), finished: duration(row.finished),
            waits: details.waits.map {
                .init(reason: $0.reason, from: duration($0.from) ?? .zero, to: duration($0.to))
            },
            retries: details.retries.map {
                .init(attempt: $0.attempt, error: $0.error, time: duration($0.time) ?? .zero, delay: $0.delay)
            },
            outcome: row.finished == Self.never ? nil : details.outcome ?? .success, dependencies: row.dependencies,
            resources: details.resources, isComposite: row.isComposite, limit: details.limit)
    }
}

/// A list that grows without copying what it holds, and of which a copy shares all that is not changed afterwards.
///
/// An array that grows copies its elements, for which the lock would have to be held.
struct ChunkedList<Element: Sendable>: Sendable {
    /// How many elements there are in each array but the last.
    private static var chunkSize: Int { 1_024 }

    private var chunks: [[Element]] = []
    private(set) var count = 0

    mutating func append(_ element: Element) {
        if count == chunks.count * Self.chunkSize {
            chunks.append([])
            // The first array grows as usual, so that a list of a few elements is small.
            if count > 0 { chunks[chunks.count - 1].reserveCapacity(Self.chunkSize) }
        }
        chunks[chunks.count - 1].append(element)
        count += 1
    }

    subscript(position: Int) -> Element {
        get { chunks[position / Self.chunkSize][position % Self.chunkSize] }
        _modify { yield &chunks[position / Self.chunkSize][position % Self.chunkSize] }
    }
}
