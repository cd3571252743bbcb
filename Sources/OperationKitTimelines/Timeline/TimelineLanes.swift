import OperationKit

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
        var free: [Int] = []
        // A composite comes before what is inside it, also if both begin at the same time.
        let depths = index.depths
        let spans = intervals.enumerated().compactMap { position, interval in
            interval.map { (position: position, from: $0.lowerBound, to: $0.upperBound) }
        }
        let ending = spans.sorted { ($0.to, $0.position) < ($1.to, $1.position) }
        var ended = 0
        for span in spans.sorted(by: {
            ($0.from, depths[$0.position], $0.position) < ($1.from, depths[$1.position], $1.position)
        }) {
            while ended < ending.count, ending[ended].to <= span.from {
                if let lane = lanes[ending[ended].position], open[lane].first == ending[ended].position {
                    open[lane] = []
                    free.append(lane)
                }
                ended += 1
            }
            if let parent = index.parent(of: span.position), let lane = lanes[parent] {
                while let last = open[lane].last, last != parent,
                    intervals[last].map({ $0.upperBound <= span.from }) ?? true
                {
                    open[lane].removeLast()
                }
                if open[lane].last == parent, let around = intervals[parent], span.to <= around.upperBound {
                    lanes[span.position] = lane
                    open[lane].append(span.position)
                    continue
                }
            }
            let lane = free.popLast() ?? open.count
            if lane == open.count { open.append([]) }
            lanes[span.position] = lane
            open[lane] = [span.position]
            // Its end has been passed.
            if span.to <= span.from { free.append(lane) }
        }
        self.lanes = lanes
        laneCount = open.count
    }
}
