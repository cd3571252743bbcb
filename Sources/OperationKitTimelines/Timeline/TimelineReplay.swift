public import OperationKit

extension OperationTimeline {
    /// Estimates how long the whole would have taken if the work of an operation had taken no time.
    ///
    /// It is the longest path through what was recorded, with that work set to zero. An operation starts as long
    /// after the last of its causes as it did: the ends of all that it depended on, the start of its composite, its
    /// addition, the end of the sibling or the holder that handed over a place or a resource. Waits for conditions
    /// take as long as they did. For a composite, the work of all that is inside it is set to zero.
    ///
    /// It is an estimate: without the operation, others could have had the place or the resource in another order,
    /// and what waited on a stock queue could have started earlier.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    ///
    /// - Parameter id: The ``/OperationKit/AsyncOperation/observationID`` of an operation.
    /// - Returns: The time from the beginning of the timeline to the last end. It is that of the timeline if the
    ///   operation is not in it.
    public func whatIf(without id: OperationID) -> Duration {
        let index = TimelineIndex(entries)
        guard let position = index.position(of: id) else { return .nanoseconds(lastEnd) }
        let replay = TimelineReplay(TimelineCauses(self, index))
        return .nanoseconds(replay.end(without: Set(index.positions(inside: position))))
    }

    private var lastEnd: Int64 {
        entries.lazy.map { $0.finished?.nanoseconds ?? duration.nanoseconds }.max() ?? 0
    }
}

/// Runs the recorded operations again, with other durations and the same causes.
///
/// Each operation has a start, a beginning of its work and an end. Each of these *moments* comes a certain time after
/// the last of its causes, which are earlier moments; that time was recorded.
struct TimelineReplay {
    private struct Cause {
        /// The number of the moment.
        let moment: Int
        /// How long after that moment the cause is.
        let offset: Int64
    }

    /// Kinds of moments. The number of a moment is three times the position of its operation, plus this.
    private enum Kind: Int {
        case start, run, end
    }

    private let positions: [Int]
    /// When each moment was; -1 if it is none.
    private var recorded: [Int64]
    /// How long after the last of its causes each moment was.
    private var delays: [Int64]
    /// The causes of all moments, one list after the other.
    private var causes: [Cause] = []
    private var causeStarts: [Int]
    private let roots: [Int]
    /// The moments, each after its causes. Those in a cycle are not there: they stay where they were.
    private var order: [Int] = []

    init(_ facts: TimelineCauses) {
        let count = facts.entries.count
        positions = (0..<count).filter { facts.starts[$0] >= 0 }
        roots = facts.index.roots.filter { facts.starts[$0] >= 0 }
        recorded = Array(repeating: -1, count: 3 * count)
        delays = Array(repeating: 0, count: 3 * count)
        causeStarts = Array(repeating: 0, count: 3 * count + 1)
        for position in 0..<count {
            if facts.starts[position] >= 0 {
                recorded[Self.moment(.start, position)] = facts.starts[position]
                // One that never came to its work ended at that moment.
                let run = facts.runs[position]
                recorded[Self.moment(.run, position)] = run >= 0 ? run : facts.ends[position]
                recorded[Self.moment(.end, position)] = facts.ends[position]
            }
        }
        for position in 0..<count {
            for kind in [Kind.start, .run, .end] {
                let moment = Self.moment(kind, position)
                causeStarts[moment] = causes.count
                guard recorded[moment] >= 0 else { continue }
                causes += Self.causes(of: kind, position, facts).filter { recorded[$0.moment] >= 0 }
                let last = causes[causeStarts[moment]...].map { recorded[$0.moment] + $0.offset }.max()
                delays[moment] = last.map { recorded[moment] - $0 } ?? 0
            }
        }
        causeStarts[3 * count] = causes.count
        sort()
    }

    private static func moment(_ kind: Kind, _ position: Int) -> Int { 3 * position + kind.rawValue }

    private static func causes(of kind: Kind, _ position: Int, _ facts: TimelineCauses) -> [Cause] {
        switch kind {
        case .start:
            var causes = facts.dependencies(of: position).map { Cause(moment: moment(.end, $0), offset: 0) }
            if let parent = facts.index.parent(of: position), facts.runs[parent] >= 0 {
                let added = facts.entries[position].added?.nanoseconds ?? 0
                causes.append(Cause(moment: moment(.run, parent), offset: max(0, added - facts.runs[parent])))
            }
            if case .place(_, let sibling) = facts.startCause(of: position).cause {
                causes.append(Cause(moment: moment(.end, sibling), offset: 0))
            }
            return causes
        case .run:
            var causes = [Cause(moment: moment(.start, position), offset: 0)]
            for wait in facts.entries[position].waits {
                guard case .resource(_, let holder) = facts.waitCause(of: position, wait) else { continue }
                causes[0] = Cause(
                    moment: moment(.start, position), offset: max(0, wait.from.nanoseconds - facts.starts[position]))
                causes.append(Cause(moment: moment(.end, holder), offset: 0))
            }
            return causes
        case .end:
            return [Cause(moment: moment(.run, position), offset: 0)]
                + facts.index.children(of: position).map { Cause(moment: moment(.end, $0), offset: 0) }
        }
    }

    private func causes(of moment: Int) -> ArraySlice<Cause> { causes[causeStarts[moment]..<causeStarts[moment + 1]] }

    /// Puts the moments into an order in which each comes after its causes.
    private mutating func sort() {
        var open = [Int](repeating: 0, count: recorded.count)
        var consequenceStarts = [Int](repeating: 0, count: recorded.count + 1)
        for moment in recorded.indices {
            open[moment] = causes(of: moment).count
            for cause in causes(of: moment) { consequenceStarts[cause.moment + 1] += 1 }
        }
        for index in 1..<consequenceStarts.count { consequenceStarts[index] += consequenceStarts[index - 1] }
        var next = consequenceStarts
        var consequences = [Int](repeating: 0, count: causes.count)
        for moment in recorded.indices {
            for cause in causes(of: moment) {
                consequences[next[cause.moment]] = moment
                next[cause.moment] += 1
            }
        }
        order = recorded.indices.filter { recorded[$0] >= 0 && open[$0] == 0 }
        var place = 0
        while place < order.count {
            for consequence in consequences[consequenceStarts[order[place]]..<consequenceStarts[order[place] + 1]] {
                open[consequence] -= 1
                if open[consequence] == 0 { order.append(consequence) }
            }
            place += 1
        }
    }

    /// When the last operation without a parent would have ended.
    ///
    /// - Parameter removed: The positions of the operations whose work takes no time.
    /// - Returns: The time in nanoseconds; 0 if none has started.
    func end(without removed: Set<Int>) -> Int64 {
        var times = recorded
        for moment in order {
            let last = causes(of: moment).lazy.map { times[$0.moment] + $0.offset }.max()
            guard let last else { continue }
            let isEnd = moment % 3 == Kind.end.rawValue
            times[moment] = last + (isEnd && removed.contains(moment / 3) ? min(0, delays[moment]) : delays[moment])
        }
        return roots.lazy.map { times[Self.moment(.end, $0)] }.max() ?? 0
    }
}
