import OperationKit

/// A part of the bar of an operation.
struct TimelineSegment: Equatable, Sendable {
    enum Kind: CaseIterable, Sendable {
        /// The operation was part of a composite, and had not started.
        case pending
        /// It had started, and waited for a condition or a resource.
        case waiting
        /// It worked.
        case executing
        /// Its children worked.
        case composite
        /// It had finished, and its `main()` had not returned.
        case late

        /// What the kind is called in legends.
        var title: String {
            switch self {
            case .pending: "not started"
            case .waiting: "waiting"
            case .executing: "executing"
            case .composite: "has children"
            case .late: "still in main()"
            }
        }
    }

    let kind: Kind
    let from: Duration
    let to: Duration

    /// The parts of a bar, oldest first. There is at least one, which may be of no length.
    ///
    /// - Parameters:
    ///   - entry: The operation.
    ///   - isComposite: Whether it has children.
    ///   - end: The end of the timeline, up to which an unfinished operation is drawn.
    /// - Returns: The parts.
    static func segments(
        of entry: OperationTimeline.Entry, isComposite: Bool, end: Duration
    ) -> [TimelineSegment] {
        let finish = entry.finished ?? end
        let begin = entry.workStart
        var segments: [TimelineSegment] = []
        func append(_ kind: Kind, _ from: Duration, _ to: Duration) {
            segments.append(TimelineSegment(kind: kind, from: from, to: max(from, to)))
        }
        let start = entry.started ?? begin
        if let added = entry.added ?? (start == nil ? entry.firstTime : nil), added < start ?? .seconds(Int64.max) {
            append(.pending, added, start ?? finish)
        }
        if let started = entry.started, begin != started, entry.running != nil || !entry.waits.isEmpty {
            // Without waits, the time before `main()` is that of the preparation alone.
            let isWait = !entry.waits.isEmpty
            append(isWait ? .waiting : isComposite ? .composite : .executing, started, begin ?? finish)
        }
        if let begin { append(isComposite ? .composite : .executing, begin, finish) }
        if let returned = entry.returned, returned > finish { append(.late, finish, returned) }
        return merged(segments)
    }

    /// Joins what follows each other and is of the same kind.
    private static func merged(_ segments: [TimelineSegment]) -> [TimelineSegment] {
        segments.reduce(into: []) { result, segment in
            if let last = result.last, last.kind == segment.kind, last.to == segment.from {
                result[result.count - 1] = TimelineSegment(kind: last.kind, from: last.from, to: segment.to)
            } else {
                result.append(segment)
            }
        }
    }
}
