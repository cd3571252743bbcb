public import Foundation
public import OperationKit

/// What happened to operations, and when: a value that can be drawn, saved and analyzed.
///
/// An ``OperationTimelineRecorder`` makes one from what it observes. Entries can be made by hand, too, for operations
/// that are not observed:
///
/// ```swift
/// let login = OperationID(1)
/// let timeline = OperationTimeline(entries: [
///     .init(id: login, name: "login", running: .zero, finished: .seconds(1), outcome: .success),
///     .init(
///         id: OperationID(2), name: "download", running: .seconds(1), finished: .seconds(3), outcome: .success,
///         dependencies: [login]),
/// ])
/// print(timeline.text(columns: 60))
/// print(timeline.summary)
/// ```
///
/// All times are counted from the beginning of the timeline. Encoded as JSON, they are whole nanoseconds. A time of
/// more than 73 years counts as 73 years.
public struct OperationTimeline: Sendable, Equatable {
    /// The operations, in the order in which they were first noticed. Each identifier is there once, and each parent
    /// is among the entries.
    public let entries: [Entry]
    /// When the timeline begins, to the millisecond, if that is known.
    public let startDate: Date?
    /// How long the timeline is: until the last of its times, or until the moment at which it was taken if an
    /// operation had not finished by then.
    public let duration: Duration
    /// How many other operations there were, which are not among the entries because there were too many.
    public let droppedCount: Int

    /// Creates a timeline.
    ///
    /// A parent that is not among the entries, or that is inside its own child, is dropped: the entry becomes one
    /// without a parent. So any subset of the entries of a timeline makes another one. One whose times are not in order, or in which an
    /// operation depends on itself, can be encoded, but not decoded again.
    ///
    /// Complexity: linear in the entries and what they contain.
    ///
    /// - Parameters:
    ///   - entries: What happened to each operation.
    ///   - startDate: When the timeline begins, if that is known.
    ///   - duration: How long the timeline is. By default, and if it is shorter, that is the last of all times.
    ///   - droppedCount: How many other operations there were.
    /// - Precondition: Each identifier is there once, no time is negative, and nor is the number of other operations.
    public init(entries: [Entry], startDate: Date? = nil, duration: Duration = .zero, droppedCount: Int = 0) {
        let problem = Self.problem(in: entries, droppedCount: droppedCount)
        precondition(problem == nil, "OperationKit: a timeline cannot be made of these entries. \(problem ?? "")")
        self.init(checked: entries, startDate: startDate, duration: duration, droppedCount: droppedCount)
    }

    /// Creates a timeline from entries with unique identifiers and without negative times.
    init(checked entries: [Entry], startDate: Date?, duration: Duration, droppedCount: Int) {
        var entries = entries
        for index in entries.indices { entries[index].bound() }
        for index in entries.positionsWithoutParent { entries[index].parent = nil }
        self.entries = entries
        self.startDate = startDate.map { Date(milliseconds: $0.milliseconds) }
        self.duration = max(duration.bounded, entries.lazy.flatMap(\.allTimes).max() ?? .zero)
        self.droppedCount = droppedCount
    }

    /// The entry of an operation, or `nil` if there is none.
    ///
    /// Complexity: linear in the entries.
    ///
    /// - Parameter id: The ``/OperationKit/AsyncOperation/observationID`` of the operation.
    public subscript(id: OperationID) -> Entry? {
        entries.first { $0.id == id }
    }

    /// Returns the entries of an operation and of all that is inside it, at any depth, in the order of ``entries``.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameter id: The ``/OperationKit/AsyncOperation/observationID`` of a composite, or of any other operation.
    /// - Returns: The entries; none if the operation is not in the timeline.
    public func entries(inside id: OperationID) -> [Entry] {
        TimelineIndex(entries).positions(inside: id).sorted().map { entries[$0] }
    }

    /// Returns the part of the timeline that an operation and all that is inside it make up, on the same scale of time.
    ///
    /// ```swift
    /// let recorder = OperationTimelineRecorder()
    /// let sync = CompoundOperation(name: "Sync")
    /// // … run it …
    /// print(recorder.timeline.part(inside: sync.observationID).text(columns: 80))
    /// ```
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameter id: The ``/OperationKit/AsyncOperation/observationID`` of a composite, or of any other operation.
    /// - Returns: A timeline of the same duration, in which the operation has no parent. It is empty if the operation
    ///   is not in the timeline.
    public func part(inside id: OperationID) -> OperationTimeline {
        OperationTimeline(
            checked: entries(inside: id), startDate: startDate, duration: duration, droppedCount: droppedCount)
    }

    /// Says what no timeline can have, if these entries have it.
    static func problem(in entries: [Entry], droppedCount: Int) -> String? {
        if droppedCount < 0 { return "The number of operations that were not recorded is negative." }
        var seen: Set<OperationID> = []
        for entry in entries {
            if !seen.insert(entry.id).inserted { return "There are two entries for operation \(entry.id)." }
            if entry.hasNegativeTime { return "A time of “\(entry.name)” (\(entry.id)) is negative." }
        }
        return nil
    }

    /// The end of an operation, or that of the timeline.
    func end(of entry: Entry) -> Duration { entry.finished ?? duration }

    /// The time from the start of an operation to its end; `nil` if it has not started, or did not run.
    func length(of entry: Entry) -> Duration? {
        if case .skipped = entry.outcome { return nil }
        return entry.begin.map { end(of: entry) - $0 }
    }
}

extension Date {
    /// Not beyond what a number can hold.
    var milliseconds: Int64 { Int64(max(-0x1p62, min((timeIntervalSince1970 * 1_000).rounded(), 0x1p62))) }

    init(milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
}

/// The entries of a timeline as a forest: which are inside which, in the order in which they are drawn.
///
/// Positions are those in the list of entries. Composites may be nested to any depth, so nothing here recurses.
///
/// Complexity: creating one costs O(n log n).
struct TimelineIndex: Sendable {
    let entries: [OperationTimeline.Entry]
    let positions: [OperationID: Int]
    let parents: [Int?]
    /// The children of each entry, and at the end the entries without a parent, in the order in which they were first noticed.
    private(set) var children: [[Int]]
    /// All positions: each parent before its children, siblings in the order in which they were first noticed.
    private(set) var order: [Int] = []
    /// How many composites are around each entry.
    private(set) var depths: [Int]

    /// - Parameter entries: Entries as in a timeline: each parent is among them, and there are no cycles.
    init(_ entries: [OperationTimeline.Entry]) {
        self.entries = entries
        (positions, parents) = entries.positionsAndParents
        let times = entries.map(\.firstTime)
        children = Array(repeating: [], count: entries.count + 1)
        depths = Array(repeating: 0, count: entries.count)
        for position in entries.indices.sorted(by: { (times[$0], $0) < (times[$1], $1) }) {
            children[parents[position] ?? entries.count].append(position)
        }
        var open = Array(children[entries.count].reversed())
        while let position = open.popLast() {
            order.append(position)
            if let parent = parents[position] { depths[position] = depths[parent] + 1 }
            open += children[position].reversed()
        }
    }

    /// Those without a parent, in the order in which they were first noticed.
    var roots: [Int] { children[parents.count] }

    /// The name of an operation, or else its identifier.
    func name(of id: OperationID) -> String { positions[id].map { entries[$0].name } ?? "\(id)" }

    /// An operation and all that is inside it; none if it is not in the timeline.
    func positions(inside id: OperationID) -> ArraySlice<Int> {
        guard let root = positions[id] else { return [] }
        let fromRoot = order.drop { $0 != root }
        return fromRoot.prefix(1) + fromRoot.dropFirst().prefix { depths[$0] > depths[root] }
    }

    /// At most some entries to draw: outer ones rather than what is inside them, those that have failed or still execute rather than
    /// others, earlier ones rather than later ones.
    ///
    /// - Parameter maximum: How many entries there is room for. Below 1 it counts as 1.
    /// - Returns: The positions in the order in which they are drawn. The parent of each is among them.
    func selection(atMost maximum: Int) -> [Int] {
        // The sort is stable.
        let ranks = zip(depths, entries).map {
            2 * $0 + ($1.isUnfinished && $1.begin != nil || $1.outcome?.name == "failed" ? 0 : 1)
        }
        let chosen = Set(order.sorted { ranks[$0] < ranks[$1] }.prefix(max(1, maximum)))
        return order.filter(chosen.contains)
    }
}

extension [OperationTimeline.Entry] {
    /// The position of each entry, and that of its parent, if it has one that is there.
    ///
    /// Each identifier is there once.
    var positionsAndParents: (positions: [OperationID: Int], parents: [Int?]) {
        let positions = Dictionary(uniqueKeysWithValues: zip(lazy.map(\.id), indices))
        return (positions, map { $0.parent.flatMap { positions[$0] } })
    }

    /// The positions of the entries that refer to a parent that is not there, or that close a cycle of parents.
    var positionsWithoutParent: [Int] {
        let parents = positionsAndParents.parents
        // Which walk to the outermost parent has come to an entry: the one that began there.
        var walks = [Int?](repeating: nil, count: count)
        return indices.compactMap { start in
            var position = start
            while walks[position] == nil, self[position].parent != nil {
                walks[position] = start
                guard let parent = parents[position], walks[parent] != start else { return position }
                position = parent
            }
            return nil
        }
    }
}
