import OperationKit

/// Why each operation of a timeline began when it did, as far as that was recorded.
///
/// What hands over a place or a resource is not recorded, but follows from the times. Times are nanoseconds.
///
/// Complexity: creating one costs O(n log n) in the entries, each question O(log n) and the dependencies of the
/// operation.
struct TimelineCauses {
    /// What made an operation start.
    enum StartCause: Equatable {
        /// It was the first, or what came before is not known.
        case beginning, queue
        case dependency(Int)
        /// The composite started its children.
        case parent(Int)
        /// It was added to a composite that had started its children.
        case added(to: Int)
        /// A sibling ended while the composite was at its limit.
        case place(in: Int, from: Int)
    }

    /// How many operations that ended at nearly the same time are considered.
    private static let mostCandidates = 16

    let entries: [OperationTimeline.Entry]
    let index: TimelineIndex
    /// When each operation started; -1 if it did not.
    let starts: [Int64]
    /// When the work of each began; -1 if it did not.
    let runs: [Int64]
    /// When each ended, or the end of the timeline.
    let ends: [Int64]
    /// When the first of all started.
    let firstStart: Int64
    /// The started child of each composite that ended last; -1 for none.
    private var lastChildren: [Int]
    /// For each child of a composite with a limit, the last sibling before its start that ended at the limit; -1 for none.
    private var handOvers: [Int]
    /// How much later than its consequence an event may have been recorded, by another thread.
    private let tolerance: Int64
    /// Those that held each resource, by their ends.
    private let holders: [String: [Int]]

    init(_ timeline: OperationTimeline, _ index: TimelineIndex) {
        let entries = timeline.entries
        let end = timeline.duration.nanoseconds
        let starts = entries.map { ($0.started ?? $0.running)?.nanoseconds ?? -1 }
        let ends = entries.map { $0.finished?.nanoseconds ?? end }
        let started = entries.indices.filter { starts[$0] >= 0 }
        let byEnd = started.sorted { (ends[$0], starts[$0], $0) < (ends[$1], starts[$1], $1) }
        holders = byEnd.reduce(into: [:]) { holders, position in
            for resource in entries[position].resources { holders[resource, default: []].append(position) }
        }
        lastChildren = Array(repeating: -1, count: entries.count)
        for position in byEnd { if let parent = index.parent(of: position) { lastChildren[parent] = position } }
        firstStart = started.lazy.map { starts[$0] }.min() ?? 0
        tolerance = min(1_000_000, end / 1_000)
        runs = entries.map { $0.workStart?.nanoseconds ?? -1 }
        (self.entries, self.index, self.starts, self.ends) = (entries, index, starts, ends)
        handOvers = Array(repeating: -1, count: entries.count)
        for (parent, entry) in entries.enumerated() {
            if let limit = entry.limit, limit > 0 { findHandOvers(in: parent, limit: limit) }
        }
    }

    /// Goes through the starts and ends of children, and remembers who set a place free.
    private mutating func findHandOvers(in parent: Int, limit: Int) {
        var moments: [(time: Int64, isStart: Bool, child: Int)] = []
        for child in index.children(of: parent) where starts[child] >= 0 {
            moments.append((min(starts[child] + tolerance, ends[child]), true, child))
            moments.append((ends[child], false, child))
        }
        moments.sort { ($0.time, $0.isStart ? 1 : 0, $0.child) < ($1.time, $1.isStart ? 1 : 0, $1.child) }
        var (running, last) = (0, -1)
        for moment in moments {
            if moment.isStart {
                handOvers[moment.child] = last
            } else if running >= limit {
                last = moment.child
            }
            running += moment.isStart ? 1 : -1
        }
    }

    /// The child of a composite that ended last, of those that had started.
    func lastChild(of position: Int) -> Int? { lastChildren[position] < 0 ? nil : lastChildren[position] }

    /// The operations that one waited for before its start, as far as they are in the timeline.
    func dependencies(of position: Int) -> [Int] {
        let entry = entries[position]
        // A cancelled operation starts without waiting.
        if let cancelled = entry.cancelled?.nanoseconds, cancelled <= starts[position] { return [] }
        return entry.dependencies.compactMap { index.position(of: $0) }
            .filter { entries[$0].finished != nil && $0 != position }
    }

    /// When an operation worked itself: from the beginning of its work to its end, without the delays between attempts.
    /// A composite does no work.
    func work(of position: Int) -> [Range<Int64>] {
        let entry = entries[position]
        guard !entry.isComposite, runs[position] >= 0, runs[position] < ends[position] else { return [] }
        var (works, start) = ([Range<Int64>](), runs[position])
        for pause in entry.pauses(end: .nanoseconds(ends[position])) {
            let (from, to) = (pause.lowerBound.nanoseconds, pause.upperBound.nanoseconds)
            if start < from { works.append(start..<from) }
            start = max(start, to)
        }
        return start < ends[position] ? works + [start..<ends[position]] : works
    }

    /// What made an operation start, and when that happened: not after the start.
    ///
    /// It is what happened last of all that had to happen. If there is time between that and the start, and a
    /// composite with a limit is around, it is the end of a sibling that had a place.
    ///
    /// - Parameter position: An operation that has started.
    /// - Returns: The cause, and its time in nanoseconds.
    func startCause(of position: Int) -> (cause: StartCause, time: Int64) {
        let start = starts[position]
        let parent = index.parent(of: position)
        var cause = start <= firstStart ? (StartCause.beginning, start) : (.queue, min(firstStart, start))
        if let parent, runs[parent] >= 0 {
            cause = (.parent(parent), min(runs[parent], start))
            if let added = entries[position].added?.nanoseconds, added > runs[parent], added <= start {
                cause = (.added(to: parent), added)
            }
        }
        var isReady = parent != nil
        for dependency in dependencies(of: position) {
            let time = min(ends[dependency], start)
            if time >= cause.1 || !isReady { cause = (.dependency(dependency), time) }
            isReady = true
        }
        let sibling = handOvers[position]
        if let parent, sibling >= 0, sibling != position, start > cause.1, ends[sibling] > cause.1,
            starts[sibling] < start
        {
            cause = (.place(in: parent, from: sibling), min(ends[sibling], start))
        }
        return cause
    }

    /// What ended a wait: the holder of the same resource that ended last meanwhile; `nil` for a condition.
    func waitCause(of position: Int, _ wait: OperationTimeline.Wait) -> (resource: String, holder: Int)? {
        let from = wait.from.nanoseconds
        let to = wait.to?.nanoseconds ?? ends[position]
        var found: (resource: String, holder: Int)?
        for resource in entries[position].resources {
            let holders = holders[resource, default: []]
            var (low, high) = (0, holders.count)
            while low < high {
                let middle = (low + high) / 2
                if ends[holders[middle]] <= to + tolerance { low = middle + 1 } else { high = middle }
            }
            let holder = holders[..<low].suffix(Self.mostCandidates).last {
                // One that began to work later cannot have held it before.
                $0 != position && ends[$0] > from && runs[$0] < to
            }
            if let holder, found.map({ ends[$0.holder] < ends[holder] }) ?? true { found = (resource, holder) }
        }
        return found
    }
}
