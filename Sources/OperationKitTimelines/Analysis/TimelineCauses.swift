import OperationKit

/// Why each operation of a timeline began when it did, as far as that was recorded.
///
/// What hands over a place or a resource is not recorded, but follows from the times.
///
/// Complexity: creating one costs O(n log n) in the entries, each question O(log n) and the dependencies of the
/// operation.
struct TimelineCauses {
    /// The start of an operation, or its end.
    enum Moment: Hashable {
        case start(Int), end(Int)
    }

    typealias Step = OperationTimeline.Step

    /// What made an operation start, when that happened, and what comes before it, if that is known.
    typealias Cause = (reason: Step.Reason, from: Duration, previous: Moment?)

    /// How many operations that ended at nearly the same time are considered.
    private static let mostCandidates = 16

    let index: TimelineIndex
    /// When each operation started.
    let starts: [Duration?]
    /// When the work of each began.
    let runs: [Duration?]
    /// When each ended, or the end of the timeline.
    let ends: [Duration]
    /// When the first of all started.
    let firstStart: Duration
    /// When the last of those that started ended.
    let lastEnd: Duration
    /// The started child of each composite that ended last.
    private(set) var lastChildren: [Int?]
    /// For each child of a composite with a limit, the last sibling before its start that ended at the limit.
    private var handOvers: [Int?]
    /// How much later than its consequence an event may have been recorded, by another thread.
    private let tolerance: Duration
    /// Those that held each resource, by their ends.
    private let holders: [String: [Int]]

    init(_ timeline: OperationTimeline) {
        let entries = timeline.entries
        let index = TimelineIndex(entries)
        let starts = entries.map(\.begin)
        let ends = entries.map(timeline.end)
        let byEnd = entries.indices.filter { starts[$0] != nil }
            .sorted { (ends[$0], starts[$0] ?? .zero, $0) < (ends[$1], starts[$1] ?? .zero, $1) }
        holders = byEnd.reduce(into: [:]) { holders, position in
            for resource in entries[position].resources { holders[resource, default: []].append(position) }
        }
        lastChildren = Array(repeating: nil, count: entries.count)
        handOvers = lastChildren
        for position in byEnd { if let parent = index.parents[position] { lastChildren[parent] = position } }
        firstStart = starts.lazy.compactMap(\.self).min() ?? .zero
        lastEnd = byEnd.last.map { ends[$0] } ?? .zero
        tolerance = min(.milliseconds(1), timeline.duration / 1_000)
        runs = entries.map(\.workStart)
        (self.index, self.starts, self.ends) = (index, starts, ends)
        for (parent, entry) in entries.enumerated() {
            if let limit = entry.limit, limit > 0 { findHandOvers(in: parent, limit: limit) }
        }
    }

    /// Goes through the starts and ends of children, and remembers who set a place free.
    private mutating func findHandOvers(in parent: Int, limit: Int) {
        // At the same time, ends (0) come before starts, but not before that of the same child.
        let moments = index.children[parent].flatMap { child -> [(Duration, Int, Int)] in
            guard let start = starts[child] else { return [] }
            let (late, end) = (start + tolerance, ends[child])
            return [(min(late, end), late < end ? 1 : -1, child), (end, 0, child)]
        }
        var (running, last) = (0, Int?.none)
        for (_, order, child) in moments.sorted(by: <) {
            if order != 0 {
                handOvers[child] = last
            } else if running >= limit {
                last = child
            }
            running += order == 0 ? -1 : 1
        }
    }

    var entries: [OperationTimeline.Entry] { index.entries }

    func id(_ position: Int) -> OperationID { entries[position].id }

    /// The operations that one waited for before its start, as far as they are in the timeline.
    func dependencies(of position: Int) -> [Int] {
        let entry = entries[position]
        // A cancelled operation starts without waiting.
        guard let start = starts[position], start < entry.cancelled ?? .latest else { return [] }
        // One that ended later was removed, or added too late.
        return entry.dependencies.compactMap { index.positions[$0] }
            .filter { entries[$0].finished ?? .latest <= start + tolerance && $0 != position }
    }

    /// When an operation worked itself: from the beginning of its work to its end, without the delays between attempts.
    /// A composite does no work.
    func work(of position: Int) -> [Range<Duration>] {
        guard let run = runs[position] else { return [] }
        return entries[position].segments(end: ends[position]).compactMap { segment in
            let from = max(segment.from, run)
            return segment.kind == .executing && from < segment.to ? from..<segment.to : nil
        }
    }

    func workTime(of position: Int) -> Duration {
        work(of: position).reduce(.zero) { $0 + ($1.upperBound - $1.lowerBound) }
    }

    /// The composite that started an operation; `nil` if it was started by hand before.
    func starter(of position: Int) -> Int? {
        index.parents[position].flatMap { runs[$0] ?? .zero > starts[position] ?? .latest ? nil : $0 }
    }

    /// The cause of a start of which it is not known what came before.
    var unknownCause: Cause { (.queue, firstStart, nil) }

    /// What made an operation start: not after the start.
    ///
    /// It is what happened last of all that had to happen. If there is time between that and the start, and a
    /// composite with a limit is around, it is the end of a sibling that had a place.
    func startCause(of position: Int) -> Cause {
        guard let start = starts[position] else { return unknownCause }
        let parent = starter(of: position)
        var cause: Cause = start <= firstStart ? (.beginning, start, nil) : unknownCause
        if let parent, let run = runs[parent] {
            cause = (.parent(id(parent)), min(run, start), .start(parent))
            if let added = entries[position].added, added > run, added <= start {
                cause = (.added(to: id(parent)), added, .start(parent))
            }
        }
        var isReady = parent != nil
        for dependency in dependencies(of: position) {
            let time = min(ends[dependency], start)
            if time >= cause.from || !isReady { cause = (.dependency(id(dependency)), time, .end(dependency)) }
            isReady = true
        }
        if let parent, let sibling = handOvers[position], let begin = starts[sibling], begin < start,
            start > cause.from, ends[sibling] > cause.from
        {
            cause = (.place(in: id(parent), from: id(sibling)), min(ends[sibling], start), .end(sibling))
        }
        return cause
    }

    /// What ended a wait: the holder of the same resource that ended last meanwhile; `nil` for a condition.
    func waitCause(of position: Int, _ wait: OperationTimeline.Wait) -> (resource: String, holder: Int)? {
        let to = wait.to ?? ends[position]
        let causes = entries[position].resources.compactMap { resource -> (resource: String, holder: Int)? in
            let holders = holders[resource, default: []]
            var (low, high) = (0, holders.count)
            while low < high {
                let middle = (low + high) / 2
                if ends[holders[middle]] <= to + tolerance { low = middle + 1 } else { high = middle }
            }
            // One that began to work later cannot have held it before.
            return holders[..<low].suffix(Self.mostCandidates).last {
                $0 != position && ends[$0] > wait.from && runs[$0].map { $0 < to } ?? true
            }.map { (resource, $0) }
        }
        return causes.max { ends[$0.holder] < ends[$1.holder] }
    }
}
