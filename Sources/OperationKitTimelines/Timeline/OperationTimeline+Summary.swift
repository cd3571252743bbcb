import OperationKit

extension OperationTimeline {
    /// What a timeline says in a few numbers.
    public struct Summary: Sendable, Equatable {
        /// The time that operations spent waiting for the same.
        public struct Waiting: Sendable, Equatable {
            /// What they waited for, in words that follow “for”.
            public let reason: String
            /// The sum of the times.
            public let duration: Duration
            /// How many times that was.
            public let count: Int
        }

        /// How many operations there are, composites included.
        public let operationCount: Int
        /// How many of them failed.
        public let failedCount: Int
        /// How many of them ended as cancelled.
        public let cancelledCount: Int
        /// How many of them have not ended.
        public let unfinishedCount: Int
        /// How many attempts failed and were followed by another one.
        public let retryCount: Int
        /// How many other operations there were, which were not recorded.
        public let droppedCount: Int
        /// The time from the first start to the last end.
        public let wallTime: Duration
        /// The sum of the times that operations worked. A composite does no work of its own.
        public let work: Duration
        /// How many operations worked at the same time, on average: the work divided by the time that it took.
        public let meanParallelism: Double
        /// How many operations worked at the same time, at most.
        public let maximumParallelism: Int
        /// What operations waited for, the longest sum first. Time on a stock queue is not there: it is not known
        /// when an operation was added to it.
        public let waiting: [Waiting]
        /// The operations on the critical path with the largest effect, at most three: how long the whole would have
        /// taken without the work of each, in words.
        public let estimates: [String]
    }

    /// Work, time, parallelism, and what operations waited for.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    public var summary: Summary {
        let index = TimelineIndex(entries)
        let causes = TimelineCauses(self, index)
        let works = entries.indices.compactMap { position -> ClosedRange<Int64>? in
            // A composite is none also if its children were not recorded.
            guard !entries[position].isComposite, !index.hasChildren(position), causes.runs[position] >= 0 else {
                return nil
            }
            return causes.runs[position]...max(causes.runs[position], causes.ends[position])
        }
        let work = works.reduce(Int64(0)) { $0.saturatingAdd($1.upperBound - $1.lowerBound) }
        let ends = entries.indices.filter { causes.starts[$0] >= 0 }.map { causes.ends[$0] }
        let wallTime = max(0, (ends.max() ?? 0) - causes.firstStart)
        return Summary(
            operationCount: entries.count,
            failedCount: entries.count { if case .failed = $0.outcome { true } else { false } },
            cancelledCount: entries.count { $0.outcome == .cancelled },
            unfinishedCount: entries.count(where: \.isUnfinished),
            retryCount: entries.reduce(0) { $0 + $1.retries.count }, droppedCount: droppedCount,
            wallTime: .nanoseconds(wallTime), work: .nanoseconds(work),
            meanParallelism: wallTime > 0 ? Double(work) / Double(wallTime) : 0,
            maximumParallelism: Self.maximumOverlap(of: works), waiting: Self.waiting(causes),
            estimates: estimates(causes))
    }

    /// How many intervals there are at the same time, at most.
    static func maximumOverlap(of works: [ClosedRange<Int64>]) -> Int {
        // At the same time, ends come before beginnings, but for work that takes no time.
        var changes: [(time: Int64, change: Int)] = []
        for work in works where work.lowerBound < work.upperBound {
            changes.append((work.lowerBound, 1))
            changes.append((work.upperBound, -1))
        }
        changes.sort { ($0.time, $0.change) < ($1.time, $1.change) }
        var (current, maximum) = (0, works.isEmpty ? 0 : 1)
        for change in changes {
            current += change.change
            maximum = max(maximum, current)
        }
        return maximum
    }

    private static func waiting(_ causes: TimelineCauses) -> [Summary.Waiting] {
        var sums: [String: (duration: Int64, count: Int)] = [:]
        func add(_ duration: Int64, _ reason: String) {
            guard duration > 0 else { return }
            let sum = sums[reason, default: (0, 0)].duration.saturatingAdd(duration)
            sums[reason, default: (0, 0)].duration = sum
            sums[reason, default: (0, 0)].count += 1
        }
        for (position, entry) in causes.entries.enumerated() {
            for wait in entry.waits {
                let to = wait.to?.nanoseconds ?? causes.ends[position]
                let prefix = "waiting for "
                let reason = wait.reason.hasPrefix(prefix) ? String(wait.reason.dropFirst(prefix.count)) : wait.reason
                add(to - wait.from.nanoseconds, TerminalText.printable(reason))
            }
            guard causes.starts[position] >= 0 else { continue }
            let start = causes.starts[position]
            let parent = causes.index.parent(of: position).flatMap { causes.runs[$0] >= 0 ? $0 : nil }
            let ready = causes.dependencies(of: position).map { min(causes.ends[$0], start) }.max()
            var base = ready ?? start
            if let parent {
                base = min(start, max(causes.runs[parent], entry.added?.nanoseconds ?? 0))
                if let ready { add(ready - base, "operations that they depended on") }
                base = max(base, ready ?? base)
            }
            if case .place(let composite, _) = causes.startCause(of: position).cause {
                add(start - base, "a place in “\(TerminalText.printable(causes.entries[composite].name))”")
            } else {
                add(start - base, "a place on a queue")
            }
        }
        return sums.map {
            Summary.Waiting(reason: $0.key, duration: .nanoseconds($0.value.duration), count: $0.value.count)
        }
        .sorted { ($1.duration, $0.reason) < ($0.duration, $1.reason) }
    }

    private func estimates(_ causes: TimelineCauses) -> [String] {
        let path = criticalPath(causes.index).compactMap { causes.index.position(of: $0.operation) }
        let works = Set(path).filter { !causes.index.hasChildren($0) && causes.runs[$0] >= 0 }
            .map { (position: $0, work: causes.ends[$0] - causes.runs[$0]) }
            .filter { $0.work > 0 }
            .sorted { ($1.work, $0.position) < ($0.work, $1.position) }
        if works.isEmpty { return [] }
        let replay = TimelineReplay(causes)
        return works.prefix(3).map { position, _ in
            let time = Duration.nanoseconds(max(0, replay.end(without: [position]) - causes.firstStart))
            return "\(time.shortText) without the work of “\(TerminalText.printable(causes.entries[position].name))”"
        }
    }
}

extension OperationTimeline.Summary: CustomStringConvertible {
    /// How many reasons the description has lines for.
    private static let reasonLines = 8

    /// The numbers as lines of text.
    public var description: String {
        var lines = [outcomes]
        let mean = Int((meanParallelism * 10).rounded())
        lines.append(
            "\(wallTime.shortText) for \(work.shortText) of work: \(mean / 10).\(mean % 10) at the same time "
                + "on average, \(maximumParallelism) at most")
        for wait in waiting.prefix(Self.reasonLines) {
            lines.append(
                "waited \(wait.duration.shortText) for \(wait.reason)" + (wait.count > 1 ? ", \(wait.count) times" : "")
            )
        }
        if waiting.count > Self.reasonLines {
            lines.append("… and for \(waiting.count - Self.reasonLines) other reasons")
        }
        lines += estimates.map { "about " + $0 }
        if droppedCount > 0 { lines.append("\(droppedCount) other operations were not recorded") }
        return lines.joined(separator: "\n")
    }

    private var outcomes: String {
        let counts = [
            (failedCount, "failed"), (cancelledCount, "cancelled"), (unfinishedCount, "not finished"),
            (retryCount, retryCount == 1 ? "attempt repeated" : "attempts repeated"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let operations = operationCount == 1 ? "1 operation" : "\(operationCount) operations"
        return ([operations] + counts).joined(separator: ", ")
    }
}

extension Int64 {
    /// The sum, or the largest number if that is less.
    fileprivate func saturatingAdd(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
