import OperationKit

/// What a drawing shows of an operation: a kind of bar, or a mark on it.
enum TimelineMark: String, CaseIterable, Sendable {
    /// Its children worked.
    case composite
    /// It worked.
    case executing
    /// It had started, and waited for a condition, a resource or its next attempt.
    case waiting
    /// It was part of a composite, and had not started.
    case pending
    case retry, failed, cancelled, skipped, unfinished, critical

    /// The mark of how an operation ended; `nil` for success.
    init?(ofEndOf entry: OperationTimeline.Entry) {
        switch entry.outcome {
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        case .skipped: self = .skipped
        case nil where entry.isUnfinished: self = .unfinished
        default: return nil
        }
    }

    /// What it is called in legends.
    var title: String {
        switch self {
        case .composite: "has children"
        case .pending: "not started"
        case .retry: "tried again"
        case .skipped: "did not run"
        case .critical: "critical path"
        default: rawValue
        }
    }
}

extension OperationTimeline.Entry {
    typealias Segment = (kind: TimelineMark, from: Duration, to: Duration)

    /// The parts of a bar, oldest first. There is at least one, which may be of no length.
    ///
    /// - Parameter end: The end of the timeline, up to which an unfinished operation is drawn.
    /// - Returns: The parts.
    func segments(end: Duration) -> [Segment] {
        let finish = finished ?? end
        let work = isComposite ? TimelineMark.composite : .executing
        var segments: [Segment] = []
        // Joins what follows each other and is of the same kind.
        func append(_ kind: TimelineMark, _ from: Duration, _ to: Duration) {
            let last = segments.last.flatMap { $0.kind == kind && $0.to == from ? segments.popLast() : nil }
            segments.append((kind, last?.from ?? from, max(from, to)))
        }
        if let added = added ?? (begin == nil ? firstTime : nil), begin.map({ added < $0 }) ?? true {
            append(.pending, added, begin ?? finish)
        }
        if let started, workStart != started {
            // Without waits, the time before `main()` is that of the preparation alone.
            let hasWaited = waits.contains { $0.from < workStart ?? .latest }
            append(hasWaited ? .waiting : work, started, workStart ?? finish)
        }
        guard var from = workStart else { return segments }
        // Its attempts may wait for a resource each. A composite works while its body waits.
        let waited = waits.compactMap { wait -> Range<Duration>? in
            let to = min(wait.to ?? finish, finish)
            return isComposite || wait.from >= to ? nil : wait.from..<to
        }
        let pauses = (pauses(end: finish) + waited).sorted { $0.lowerBound < $1.lowerBound }
        for pause in pauses where pause.lowerBound >= from {
            append(work, from, pause.lowerBound)
            append(.waiting, pause.lowerBound, pause.upperBound)
            from = pause.upperBound
        }
        append(work, from, finish)
        return segments
    }
}

/// The scale of a drawing: which place a time has, and where the axis has its marks.
struct TimelineScale: Sendable {
    /// The time at the right end.
    let end: Duration
    /// How many cells or pixels the scale takes.
    let length: Int

    /// - Parameters:
    ///   - end: The time at the right end. Below a nanosecond it counts as one, beyond the latest time as that.
    ///   - length: How many cells or pixels there are, above 0.
    init(end: Duration, length: Int) {
        self.end = max(end.bounded, .nanoseconds(1))
        self.length = length
    }

    /// The place of a time, from 0 to the length. Times outside of the scale are at its ends.
    func place(_ time: Duration) -> Double {
        min(max(time / .nanoseconds(1) / (end / .nanoseconds(1)), 0), 1) * Double(length)
    }

    /// The cell in which a time is, from 0.
    func cell(_ time: Duration) -> Int { min(length - 1, Int(place(time))) }

    /// The cells of a part of a bar, at least one.
    func cells(_ from: Duration, _ to: Duration) -> ClosedRange<Int> {
        let first = cell(from)
        // One that ends between two cells does not reach into the second.
        return first...max(first, min(length - 1, Int(place(to).rounded(.up)) - 1))
    }

    /// Marks of an axis: round times, and how they are written.
    ///
    /// - Parameter count: How many there may be. Below 1 it counts as 1.
    /// - Returns: The times, from 0 on.
    func ticks(atMost count: Int) -> [(time: Duration, text: String)] {
        let units = TimelineScale.units
        let steps = units.lazy.flatMap { unit in unit.steps.map { (step: unit.duration * $0, unit: unit) } }
        // Longer than a human life: the beginning is marked, and that is all.
        let (step, unit) = steps.first { $0.step * max(1, count) > end } ?? (end * 2, units[units.count - 1])
        return (0...Int(end / step)).map { number in
            (step * number, "\((step * number / unit.duration).shortText) \(unit.name)")
        }
    }

    private static let thousand = [1, 2, 5, 10, 20, 50, 100, 200, 500]

    private static let units: [(duration: Duration, name: String, steps: [Int])] = [
        (.nanoseconds(1), "ns", thousand), (.microseconds(1), "µs", thousand), (.milliseconds(1), "ms", thousand),
        (.seconds(1), "s", [1, 2, 5, 10, 15, 30]), (.seconds(60), "min", [1, 2, 5, 10, 15, 30]),
        (.seconds(3_600), "h", [1, 2, 3, 6, 12]), (.seconds(86_400), "d", thousand + [1_000, 10_000, 100_000]),
    ]
}

extension Double {
    /// The number with at most one digit after the point.
    var shortText: String {
        let tenths = Int((self * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

extension OperationTimeline {
    /// What is to be known of a drawing, in sentences.
    ///
    /// - Parameter count: How many entries it does not show.
    /// - Returns: The sentences, if there are any.
    func notes(omitting count: Int) -> [String] {
        [
            entries.isEmpty ? "No operations were recorded." : nil,
            count > 0 ? "\(count) other\(count == 1 ? " is" : "s are") not shown." : nil,
            droppedCount > 0
                ? "\(droppedCount) other operation\(droppedCount == 1 ? " was" : "s were") not recorded." : nil,
        ].compactMap(\.self)
    }
}
