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

    /// What ended a wait before `main()`.
    enum WaitCause: Equatable {
        case condition
        case resource(String, from: Int)
    }

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
    /// How much later than its consequence an event may have been recorded, by another thread.
    private let tolerance: Int64
    /// The started children of all entries by their ends, one list after the other.
    private let childrenByEnd: Groups
    private let startsOfChildren: Groups
    /// For each child in the lists by ends, the last one up to there that ended while the composite was at its limit:
    /// its place in the list, or -1.
    private var handOvers: [Int]
    private let holders: [String: [Int]]

    init(_ timeline: OperationTimeline, _ index: TimelineIndex) {
        let entries = timeline.entries
        let end = timeline.duration.nanoseconds
        let starts = entries.map { ($0.started ?? $0.running)?.nanoseconds ?? -1 }
        let runs = entries.map { $0.workStart?.nanoseconds ?? -1 }
        let ends = entries.map { $0.finished?.nanoseconds ?? end }
        let started = entries.indices.filter { starts[$0] >= 0 }
        let byEnd = started.sorted { (ends[$0], starts[$0], $0) < (ends[$1], starts[$1], $1) }
        let byStart = started.sorted { starts[$0] < starts[$1] }
        childrenByEnd = Groups(byEnd, count: entries.count) { index.parent(of: $0) }
        startsOfChildren = Groups(byStart, count: entries.count) { index.parent(of: $0) }
        holders = byEnd.reduce(into: [:]) { holders, position in
            for resource in entries[position].resources { holders[resource, default: []].append(position) }
        }
        firstStart = byStart.first.map { starts[$0] } ?? 0
        tolerance = min(1_000_000, end / 1_000)
        (self.entries, self.index, self.starts, self.runs, self.ends) = (entries, index, starts, runs, ends)
        handOvers = []
        findHandOvers()
    }

    private mutating func findHandOvers() {
        var found = [Int](repeating: -1, count: childrenByEnd.memberCount)
        for (parent, entry) in entries.enumerated() {
            guard let limit = entry.limit, limit > 0 else { continue }
            var last = -1
            for place in childrenByEnd[parent].indices {
                if runningChildren(of: parent, before: ends[childrenByEnd[parent][place]]) >= limit { last = place }
                found[place] = last
            }
        }
        handOvers = found
    }

    /// The child of a composite that ended last, of those that had started.
    func lastChild(of position: Int) -> Int? { childrenByEnd[position].last }

    /// The operations that one waited for before its start, as far as they are in the timeline.
    func dependencies(of position: Int) -> [Int] {
        let entry = entries[position]
        // A cancelled operation starts without waiting.
        if let cancelled = entry.cancelled?.nanoseconds, cancelled <= starts[position] { return [] }
        return entry.dependencies.compactMap { index.position(of: $0) }
            .filter { entries[$0].finished != nil && $0 != position }
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
        if let parent, let sibling = sibling(handingOverTo: position, in: parent, after: cause.1) {
            cause = (.place(in: parent, from: sibling), min(ends[sibling], start))
        }
        return cause
    }

    /// The sibling that ended last before a start, at a time at which the composite was at its limit.
    private func sibling(handingOverTo position: Int, in parent: Int, after ready: Int64) -> Int? {
        guard let limit = entries[parent].limit, limit > 0, starts[position] > ready else { return nil }
        let siblings = childrenByEnd[parent]
        var place = siblings.firstIndexAfterAll { ends[$0] <= starts[position] + tolerance } - 1
        while place >= siblings.startIndex, handOvers[place] >= 0 {
            place = handOvers[place]
            let sibling = siblings[place]
            guard ends[sibling] > ready else { return nil }
            // One that began with it, or later, did not have its place.
            if sibling != position, starts[sibling] < starts[position] { return sibling }
            place -= 1
        }
        return nil
    }

    private func runningChildren(of parent: Int, before time: Int64) -> Int {
        let started = startsOfChildren[parent]
        let ended = childrenByEnd[parent]
        return (started.firstIndexAfterAll { starts[$0] < time } - started.startIndex)
            - (ended.firstIndexAfterAll { ends[$0] < time } - ended.startIndex)
    }

    /// What ended a wait: the holder of the same resource that ended last meanwhile, or a condition.
    func waitCause(of position: Int, _ wait: OperationTimeline.Wait) -> WaitCause {
        let from = wait.from.nanoseconds
        let to = wait.to?.nanoseconds ?? ends[position]
        var found: (resource: String, holder: Int)?
        for resource in entries[position].resources {
            guard let holders = holders[resource] else { continue }
            var place = holders[...].firstIndexAfterAll { ends[$0] <= to + tolerance }
            while place > 0 {
                place -= 1
                guard ends[holders[place]] > from else { break }
                // One that began to work later cannot have held it before.
                if holders[place] == position || runs[holders[place]] >= to { continue }
                if let found, ends[found.holder] >= ends[holders[place]] { break }
                found = (resource, holders[place])
                break
            }
        }
        return found.map { .resource($0.resource, from: $0.holder) } ?? .condition
    }
}

/// Lists of positions, one for each parent, one after the other.
private struct Groups {
    private let list: [Int]
    private let starts: [Int]

    /// - Parameters:
    ///   - positions: All positions. Each list keeps their order.
    ///   - count: How many lists there are.
    ///   - group: The list to which a position belongs, or `nil` if it belongs to none.
    init(_ positions: [Int], count: Int, group: (Int) -> Int?) {
        var starts = [Int](repeating: 0, count: count + 1)
        for position in positions { if let group = group(position) { starts[group + 1] += 1 } }
        for index in 1..<starts.count { starts[index] += starts[index - 1] }
        var next = starts
        var list = [Int](repeating: 0, count: starts[count])
        for position in positions {
            guard let group = group(position) else { continue }
            list[next[group]] = position
            next[group] += 1
        }
        (self.list, self.starts) = (list, starts)
    }

    var memberCount: Int { list.count }

    subscript(group: Int) -> ArraySlice<Int> { list[starts[group]..<starts[group + 1]] }
}

extension ArraySlice {
    /// The first index whose element does not fulfill a condition that holds for a beginning of the slice.
    fileprivate func firstIndexAfterAll(_ condition: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if condition(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
