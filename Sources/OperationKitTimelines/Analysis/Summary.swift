import OperationKit

extension OperationTimeline {
    /// What a timeline says in a few numbers.
    public struct Summary: Sendable, Equatable {
        /// The time that operations spent waiting for the same.
        public struct Waiting: Sendable, Equatable {
            /// What they waited for, or did meanwhile, in words that follow “waited”: “for exclusive access to “database””,
            /// “while sleeping for 2 s”.
            public let reason: String
            /// The sum of the times.
            public let duration: Duration
            /// How many times that was.
            public let count: Int
        }

        /// How many operations there are, composites included.
        public let operationCount: Int
        /// How many of them failed. A composite is not counted if a child of it failed or did not run.
        public let failedCount: Int
        /// How many of them did not run, because another operation did not succeed.
        public let skippedCount: Int
        /// How many of them ended as cancelled.
        public let cancelledCount: Int
        /// How many of them have not ended.
        public let unfinishedCount: Int
        /// How many attempts failed and were to be followed by another one.
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
        /// What operations waited for, the longest sum first. Time on a stock queue is there only from the end of a dependency on: it is
        /// not known when an operation was added to it.
        public let waiting: [Waiting]
        /// The operations on the critical path with the most work, at most three: what the whole cannot be shorter than
        /// without the work of each, in words. See ``OperationTimeline/bound(without:)``.
        public let bounds: [String]
    }

    /// Work, time, parallelism, and what operations waited for.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    public var summary: Summary {
        let causes = TimelineCauses(self)
        let works = entries.indices.flatMap(causes.work)
        let work = works.reduce(.zero) { $0 + ($1.upperBound - $1.lowerBound) }
        let wallTime = max(.zero, causes.lastEnd - causes.firstStart)
        return Summary(
            operationCount: entries.count, failedCount: causes.failedCount,
            skippedCount: entries.count { $0.outcome?.name == "skipped" },
            cancelledCount: entries.count { $0.outcome == .cancelled },
            unfinishedCount: entries.count(where: \.isUnfinished),
            retryCount: entries.reduce(0) { $0 + $1.retries.count }, droppedCount: droppedCount,
            wallTime: wallTime, work: work, meanParallelism: wallTime > .zero ? work / wallTime : 0,
            maximumParallelism: causes.maximumParallelism(of: works), waiting: causes.waiting, bounds: causes.bounds)
    }
}

extension TimelineCauses {
    fileprivate var failedCount: Int {
        // The error of a composite is that of what is inside it.
        entries.indices.count { position in
            entries[position].outcome?.name == "failed"
                && index.children[position].allSatisfy { entries[$0].outcome?.error == nil }
        }
    }

    fileprivate func maximumParallelism(of works: [Range<Duration>]) -> Int {
        var current = 0
        // At the same time, ends come before beginnings.
        let overlaps = works.flatMap { [($0.lowerBound, 1), ($0.upperBound, -1)] }.sorted(by: <).map { _, change in
            current += change
            return current
        }
        return overlaps.max() ?? 0
    }

    fileprivate var waiting: [OperationTimeline.Summary.Waiting] {
        var sums: [String: (duration: Duration, count: Int)] = [:]
        func add(_ duration: Duration, _ reason: String) {
            guard duration > .zero else { return }
            let sum = sums[reason] ?? (.zero, 0)
            sums[reason] = (sum.duration + duration, sum.count + 1)
        }
        for (position, entry) in entries.enumerated() {
            for wait in entry.waits {
                let reason = String("while \(wait.reason)".trimmingPrefix("while waiting "))
                add((wait.to ?? ends[position]) - wait.from, reason.printable)
            }
            for pause in entry.pauses(end: ends[position]) {
                add(pause.upperBound - pause.lowerBound, "for the next attempt")
            }
            guard let start = starts[position] else { continue }
            let ready = dependencies(of: position).map { min(ends[$0], start) }.max()
            var base = ready ?? start
            if let run = index.parents[position].flatMap({ runs[$0] }) {
                base = min(start, max(run, entry.added ?? .zero))
                if let ready { add(ready - base, "for operations that they depended on") }
                base = max(base, ready ?? base)
            }
            var reason = "for a place on a queue"
            if case .place(let composite, _) = startCause(of: position).reason {
                reason = "for a place in “\(index.name(of: composite).printable)”"
            }
            add(start - base, reason)
        }
        return sums.map { .init(reason: $0.key, duration: $0.value.duration, count: $0.value.count) }
            .sorted { ($1.duration, $0.reason) < ($0.duration, $1.reason) }
    }

    fileprivate var bounds: [String] {
        let path = Set(criticalPath.compactMap { index.positions[$0.operation] })
        let works = path.map { (time: workTime(of: $0), position: $0) }.filter { $0.time > .zero }
        return works.sorted { ($1.time, $0.position) < ($0.time, $1.position) }.prefix(3).map {
            "\(bound(without: [$0.position]).shortText) without the work of “\(entries[$0.position].name.printable)”"
        }
    }
}

extension OperationTimeline.Summary: CustomStringConvertible {
    /// The numbers as lines of text.
    public var description: String {
        let counts = [
            (failedCount, "failed"), (skippedCount, "did not run"), (cancelledCount, "cancelled"),
            (unfinishedCount, "not finished"),
            (retryCount, "tried again"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let operations = "\(operationCount) operation\(operationCount == 1 ? "" : "s")"
        var lines = [
            ([operations] + counts).joined(separator: ", "),
            "\(wallTime.shortText) for \(work.shortText) of work: \(meanParallelism.shortText) at the same time on average, \(maximumParallelism) at most",
        ]
        let reasonLines = 8
        for wait in waiting.prefix(reasonLines) {
            lines.append(
                "waited \(wait.duration.shortText) \(wait.reason)" + (wait.count > 1 ? ", \(wait.count) times" : ""))
        }
        if waiting.count > reasonLines { lines.append("… and for other reasons") }
        lines += bounds.map { "at least " + $0 }
        if droppedCount > 0 {
            lines.append("\(droppedCount) other operation\(droppedCount == 1 ? " was" : "s were") not recorded")
        }
        return lines.joined(separator: "\n")
    }
}
