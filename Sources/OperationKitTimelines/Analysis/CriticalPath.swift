public import OperationKit

extension OperationTimeline {
    /// A part of the critical path: an operation, and why it began when it did.
    public struct Step: Sendable, Equatable {
        /// What an operation waited for last before it began, and with that what comes before it on the path.
        public enum Reason: Sendable, Hashable {
            /// Nothing: it was the first.
            case beginning
            /// Another operation that it depended on, which was the last one to end.
            case dependency(OperationID)
            /// The composite, which started its children.
            case parent(OperationID)
            /// Its addition to a composite that had started its children.
            case added(to: OperationID)
            /// A place of a composite that was at its limit, which the end of a sibling set free.
            case place(in: OperationID, from: OperationID)
            /// A resource, which the end of another operation set free.
            case resource(String, from: OperationID)
            /// A condition, or a resource whose former holder is not in the timeline, in words.
            case condition(String)
            /// A place on a queue. What set it free cannot be seen, so the path begins here.
            case queue
            /// Its last child: a composite delivers its outcome after that.
            case children(last: OperationID)
        }

        /// The operation. One that waited for a condition is there twice in succession: before the wait, and from
        /// then on.
        public let operation: OperationID
        /// What it waited for last.
        public let reason: Reason
        /// When that happened, or when the wait for a condition began.
        public let from: Duration
        /// When the operation had done what the next step waited for.
        public let to: Duration
        /// How long it waited after ``from`` before it began, for a place on a queue, a thread or its condition.
        public let waited: Duration
    }

    /// The chain of operations that decided how long the whole took, oldest first.
    ///
    /// Each step begins when the one before it ends, and the last one ends with the operation that finished last. To
    /// find the path of one composite, take that of ``part(inside:)``.
    ///
    /// It is followed from the end to the beginning. From the end of a composite it goes to the child that ended
    /// last. From the beginning of an operation it goes to what happened last of all that had to happen: the end of
    /// one that it depended on, the end of one that held the same resource during the wait for it, the end of a
    /// sibling if the composite was at its limit until then, the start of the composite or the addition to it. What
    /// was not recorded cannot be on the path: an operation on a stock queue that depends on no other begins it.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    public var criticalPath: [Step] { criticalPath(TimelineIndex(entries)) }

    /// Describes a step of the critical path: “page 2”: 20 ms, after “login”, which it depends on.
    ///
    /// ```swift
    /// let recorder = OperationTimelineRecorder()
    /// // … run operations …
    /// let timeline = recorder.timeline
    /// for step in timeline.criticalPath {
    ///     print(timeline.description(of: step))
    /// }
    /// ```
    ///
    /// It isn't meant for programs: the wording may change.
    ///
    /// Complexity: linear in the entries.
    ///
    /// - Parameter step: A step of this timeline.
    /// - Returns: The name of the operation, how long the step took, why it began when it did, and how long it waited
    ///   then.
    public func description(of step: Step) -> String {
        let name = { (id: OperationID) in (self[id]?.name ?? "\(id)").printable }
        let waited = step.waited > .zero ? ", then waited \(step.waited.shortText)" : ""
        return "“\(name(step.operation))”: \((step.to - step.from).shortText), \(step.explanation(naming: name))"
            + waited
    }

    /// Returns how short the whole cannot get without the work of an operation.
    ///
    /// It is the longest chain of recorded dependencies and nesting in which that operation takes no time: an operation
    /// starts after its composite and after all that it depended on, and a composite ends after its children. If the
    /// other work takes as long as it did, making the operation faster makes the whole no shorter than that. It may well
    /// take longer: limits, resources and conditions are not counted.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    ///
    /// - Parameter id: The ``/OperationKit/AsyncOperation/observationID`` of an operation. Of a composite, that is without the work of
    ///   all that is inside it.
    /// - Returns: The time from the first start to the last end, at least.
    public func bound(without id: OperationID) -> Duration {
        let index = TimelineIndex(entries)
        let removed = index.position(of: id).map { Set(index.positions(inside: $0)) } ?? []
        return bound(without: removed, TimelineCauses(self, index))
    }

    func bound(without removed: Set<Int>, _ causes: TimelineCauses) -> Duration {
        var chains = RecordedChains(causes, without: removed)
        return .nanoseconds(chains.longest())
    }

    func criticalPath(_ index: TimelineIndex) -> [Step] {
        entries.isEmpty ? [] : criticalPath(TimelineCauses(self, index))
    }

    func criticalPath(_ causes: TimelineCauses) -> [Step] {
        var search = CriticalPathSearch(causes)
        return search.path()
    }
}

extension OperationTimeline.Step {
    /// Why the operation began when it did, in words.
    ///
    /// - Parameter name: Finds the names of operations.
    /// - Returns: Words that follow the name of the operation.
    func explanation(naming name: (OperationID) -> String) -> String {
        switch reason {
        case .beginning: "at the beginning"
        case .dependency(let id): "after “\(name(id))”, which it depends on"
        case .parent(let id): "when “\(name(id))” started its children"
        case .added(let id): "when it was added to “\(name(id))”"
        case .place(_, let id): "in the place of “\(name(id))”"
        case .resource(let resource, let id): "with “\(resource)”, after “\(name(id))”"
        case .condition(let text): text
        case .queue: "waiting for a place on a queue"
        case .children(let id): "after its last child, “\(name(id))”"
        }
    }
}

/// Follows the critical path backward.
private struct CriticalPathSearch {
    private let causes: TimelineCauses
    private var steps: [OperationTimeline.Step] = []
    /// The last step that took no time.
    private var omitted: OperationTimeline.Step?
    /// Whether the end of an operation, and its beginning, are on the path already: at equal times, causes may form a
    /// cycle.
    private var visitedEnds: [Bool]
    private var visitedStarts: [Bool]

    init(_ causes: TimelineCauses) {
        self.causes = causes
        visitedEnds = Array(repeating: false, count: causes.entries.count)
        visitedStarts = visitedEnds
    }

    /// What comes before a step.
    private enum Previous {
        case end(Int)
        case start(Int)
    }

    mutating func path() -> [OperationTimeline.Step] {
        let last = causes.index.roots.max { first, second in
            (hasStarted(first) ? 1 : 0, causes.ends[first]) < (hasStarted(second) ? 1 : 0, causes.ends[second])
        }
        guard let last else { return [] }
        var time = causes.ends[last]
        var previous: Previous? = .end(last)
        while let current = previous {
            switch current {
            case .end(let position):
                time = min(time, causes.ends[position])
                previous = followEnd(of: position, &time)
            case .start(let position):
                previous = followStart(of: position, &time)
            }
        }
        // If all of them took no time, there is one nevertheless.
        return steps.isEmpty ? omitted.map { [$0] } ?? [] : steps.reversed()
    }

    private func hasStarted(_ position: Int) -> Bool { causes.starts[position] >= 0 }

    private mutating func followEnd(of position: Int, _ time: inout Int64) -> Previous? {
        visitedEnds[position] = true
        guard let child = causes.lastChild(of: position), !visitedEnds[child] else { return .start(position) }
        append(position, .children(last: id(child)), from: causes.ends[child], to: &time, begins: causes.ends[child])
        return .end(child)
    }

    private mutating func followStart(of position: Int, _ time: inout Int64) -> Previous? {
        guard !visitedStarts[position], hasStarted(position) else {
            append(position, .queue, from: min(causes.firstStart, time), to: &time, begins: causes.starts[position])
            return nil
        }
        visitedStarts[position] = true
        for wait in causes.entries[position].waits.reversed() where wait.from.nanoseconds <= time {
            let end = wait.to?.nanoseconds ?? time
            if let (resource, holder) = causes.waitCause(of: position, wait), !visitedEnds[holder] {
                append(
                    position, .resource(resource, from: id(holder)), from: causes.ends[holder], to: &time,
                    begins: causes.runs[position])
                return .end(holder)
            }
            append(position, .condition(wait.reason), from: wait.from.nanoseconds, to: &time, begins: end)
        }
        let (cause, start) = causes.startCause(of: position)
        let (reason, previous): (OperationTimeline.Step.Reason, Previous?) =
            switch cause {
            case .beginning: (.beginning, nil)
            case .dependency(let other) where !visitedEnds[other]: (.dependency(id(other)), .end(other))
            case .place(let parent, let sibling) where !visitedEnds[sibling]:
                (.place(in: id(parent), from: id(sibling)), .end(sibling))
            case .parent(let parent): (.parent(id(parent)), .start(parent))
            case .added(let parent): (.added(to: id(parent)), .start(parent))
            case .queue, .dependency, .place: (.queue, nil)
            }
        let from = reason == .queue ? min(causes.firstStart, time) : start
        append(position, reason, from: from, to: &time, begins: causes.starts[position])
        return previous
    }

    private func id(_ position: Int) -> OperationID { causes.entries[position].id }

    /// Adds a step, unless it takes no time.
    private mutating func append(
        _ position: Int, _ reason: OperationTimeline.Step.Reason, from: Int64, to time: inout Int64, begins: Int64
    ) {
        let from = min(from, time)
        let waited = min(max(0, begins - from), time - from)
        let step = OperationTimeline.Step(
            operation: id(position), reason: reason, from: .nanoseconds(from), to: .nanoseconds(time),
            waited: .nanoseconds(waited))
        if from < time { steps.append(step) } else { omitted = step }
        time = from
    }
}

/// How long chains of recorded dependencies and nesting take, without waiting.
private struct RecordedChains {
    private enum Time {
        case unknown, open
        case known(Int64)
    }

    private let causes: TimelineCauses
    private let removed: Set<Int>
    /// The start of each operation, and its end, if nothing waited: at twice its position, and behind that.
    private var times: [Time]

    init(_ causes: TimelineCauses, without removed: Set<Int>) {
        (self.causes, self.removed) = (causes, removed)
        times = Array(repeating: .unknown, count: 2 * causes.entries.count)
    }

    mutating func longest() -> Int64 {
        causes.index.roots.reduce(0) { max($0, time(2 * $1 + 1)) }
    }

    /// Chains may have any length, so this doesn't recurse.
    private mutating func time(_ moment: Int) -> Int64 {
        var stack = [moment]
        while let next = stack.last {
            switch times[next] {
            case .known: stack.removeLast()
            case .unknown:
                times[next] = .open
                for earlier in earlierMoments(than: next) {
                    // What is open already is in a cycle, and does not count.
                    if case .unknown = times[earlier] { stack.append(earlier) }
                }
            case .open:
                stack.removeLast()
                let last = earlierMoments(than: next).reduce(Int64(0)) { latest, earlier in
                    if case .known(let time) = times[earlier] { max(latest, time) } else { latest }
                }
                times[next] = .known(max(last, next % 2 == 1 ? workEnd(of: next / 2) : 0))
            }
        }
        if case .known(let time) = times[moment] { return time }
        return 0
    }

    private func earlierMoments(than moment: Int) -> [Int] {
        let position = moment / 2
        if causes.starts[position] < 0 { return [] }
        if moment % 2 == 1 { return [2 * position] + causes.index.children(of: position).map { 2 * $0 + 1 } }
        return causes.dependencies(of: position).map { 2 * $0 + 1 }
            + (causes.index.parent(of: position).map { [2 * $0] } ?? [])
    }

    /// When the work of an operation is over that begins at once.
    private func workEnd(of position: Int) -> Int64 {
        guard case .known(let start) = times[2 * position] else { return 0 }
        if removed.contains(position) { return start }
        return causes.work(of: position).reduce(start) { $0.saturatingAdd($1.upperBound - $1.lowerBound) }
    }
}

extension Int64 {
    /// The sum, or the largest number if that is less.
    func saturatingAdd(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
