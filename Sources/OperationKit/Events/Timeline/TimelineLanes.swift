/// Puts intervals into lanes, in each of which two of them are either nested or do not overlap: what trace viewers
/// need.
///
/// An operation is in the lane of its composite if it fits, otherwise in one that nothing else uses meanwhile.
///
/// Complexity: O(n log n).
struct TimelineLanes {
    /// The lane of each entry; `nil` for those that have no interval.
    let lanes: [Int?]
    let laneCount: Int

    /// - Parameters:
    ///   - intervals: When each entry began and ended, in nanoseconds; `nil` for those that are left out.
    ///   - index: The entries.
    init(_ intervals: [ClosedRange<Int64>?], _ index: TimelineIndex) {
        var lanes = [Int?](repeating: nil, count: intervals.count)
        // What is open in each lane, the innermost last.
        var open: [[Int]] = []
        var busy = IndexedHeap<Int64, Int>()
        var free = IndexedHeap<Int, Int>()
        // A composite comes before what is inside it, also if both begin at the same time.
        let depths = index.depths
        let order = intervals.indices.filter { intervals[$0] != nil }.sorted { first, second in
            guard let one = intervals[first], let other = intervals[second] else { return false }
            return (one.lowerBound, depths[first], first) < (other.lowerBound, depths[second], second)
        }
        for position in order {
            guard let interval = intervals[position] else { continue }
            func isOver(_ other: Int) -> Bool { intervals[other].map { $0.upperBound <= interval.lowerBound } ?? true }
            while let next = busy.first, next.key <= interval.lowerBound, let lane = busy.popFirst() {
                open[lane] = []
                _ = free.insert(lane, key: lane)
            }
            if let parent = index.parent(of: position), let lane = lanes[parent] {
                while let last = open[lane].last, last != parent, isOver(last) { open[lane].removeLast() }
                if open[lane].last == parent, let around = intervals[parent], interval.upperBound <= around.upperBound {
                    lanes[position] = lane
                    open[lane].append(position)
                    continue
                }
            }
            let lane = free.popFirst() ?? open.count
            if lane == open.count { open.append([]) }
            open[lane] = [position]
            lanes[position] = lane
            _ = busy.insert(lane, key: interval.upperBound)
        }
        self.lanes = lanes
        laneCount = open.count
    }
}
