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
    /// was not recorded cannot be on the path: an operation on a stock queue that depends on no other begins it, and of what a composite
    /// adds while it runs, as the jobs of a waterfall and the attempts of a retry, only the last one is on it.
    ///
    /// Complexity: O(n log n) in the entries and what they contain.
    public var criticalPath: [Step] { TimelineCauses(self).criticalPath }

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
        let name = { (id: OperationID) in self[id]?.name ?? "\(id)" }
        let waited = step.waited > .zero ? ", then waited \(step.waited.shortText)" : ""
        let words = "“\(name(step.operation))”: \((step.to - step.from).shortText), \(step.explanation(naming: name))"
        return (words + waited).printable
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
        let causes = TimelineCauses(self)
        return causes.bound(without: Set(causes.index.positions(inside: id)))
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

extension TimelineCauses {
    /// The critical path, oldest step first.
    var criticalPath: [Step] {
        // What has started counts more.
        let last = index.roots.max { (starts[$0] == nil ? 0 : 1, ends[$0]) < (starts[$1] == nil ? 0 : 1, ends[$1]) }
        guard let last else { return [] }
        var next: Moment? = .end(last)
        // What comes after this is on the path already.
        var time = ends[last]
        var steps: [Step] = []
        // What is on the path already: at equal times, causes may form a cycle.
        var visited: Set<Moment> = []

        // Adds a step, unless it takes no time, and goes on to what comes before it. If the operation had to wait for
        // something else after its cause, it says when it began.
        func append(_ position: Int, _ cause: Cause, begins: Duration? = nil) {
            let from = min(cause.from, time)
            let waited = begins.map { min(max(.zero, $0 - from), time - from) } ?? .zero
            let step = Step(operation: id(position), reason: cause.reason, from: from, to: time, waited: waited)
            steps.append(step)
            (time, next) = (from, cause.previous)
        }
        func followStart(of position: Int) {
            for wait in entries[position].waits.reversed() where wait.from <= time {
                if let (resource, holder) = waitCause(of: position, wait), !visited.contains(.end(holder)) {
                    let cause: Cause = (.resource(resource, from: id(holder)), ends[holder], .end(holder))
                    return append(position, cause, begins: runs[position])
                }
                append(position, (.condition(wait.reason), wait.from, nil), begins: wait.to ?? time)
            }
            let cause = startCause(of: position)
            let isKnown = cause.previous.map { !visited.contains($0) } ?? true
            append(position, isKnown ? cause : unknownCause, begins: starts[position])
        }

        while let moment = next {
            let isNew = visited.insert(moment).inserted
            switch moment {
            case .end(let position):
                if let child = lastChildren[position], !visited.contains(.end(child)) {
                    append(position, (.children(last: id(child)), ends[child], .end(child)))
                } else {
                    next = .start(position)
                }
            case .start(let position) where isNew: followStart(of: position)
            case .start(let position): append(position, unknownCause, begins: starts[position])
            }
        }
        let long = steps.filter { $0.from < $0.to }
        // If all of them took no time, there is one nevertheless.
        return long.isEmpty ? steps.suffix(1) : long.reversed()
    }

    /// The longest chain of recorded dependencies and nesting, in which some operations take no time.
    ///
    /// Chains may have any length, so this doesn't recurse.
    func bound(without removed: Set<Int>) -> Duration {
        // When each moment comes if nothing waits. One that comes before itself is in a cycle, and does not count.
        var times: [Moment: Duration] = [:]
        var open: Set<Moment> = []
        var stack = index.roots.map(Moment.end)
        while let moment = stack.last {
            if times[moment] != nil {
                stack.removeLast()
            } else if open.insert(moment).inserted {
                stack += moments(before: moment).filter { !open.contains($0) }
            } else {
                var time = moments(before: moment).reduce(.zero) { max($0, times[$1] ?? .zero) }
                if case .end(let position) = moment, !removed.contains(position) {
                    time = max(time, (times[.start(position)] ?? .zero) + workTime(of: position))
                }
                times[moment] = time
            }
        }
        return index.roots.reduce(.zero) { max($0, times[.end($1)] ?? .zero) }
    }

    private func moments(before moment: Moment) -> [Moment] {
        switch moment {
        case .start(let position):
            dependencies(of: position).map(Moment.end) + (starter(of: position).map { [.start($0)] } ?? [])
        case .end(let position):
            [.start(position)] + index.children[position].map(Moment.end)
        }
    }
}
