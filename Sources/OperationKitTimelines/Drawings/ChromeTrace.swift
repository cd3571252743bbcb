import OperationKit

extension OperationTimeline {
    /// The timeline as JSON in Chrome's trace event format, which Perfetto (ui.perfetto.dev), `chrome://tracing` and
    /// others open.
    ///
    /// Each operation is a slice from its start to its end, with what is known of it as arguments. What it waited for
    /// before its `main()` is a slice inside that. Operations that overlap are in different lanes; a child is in the
    /// lane of its composite if no sibling is. Failed attempts and cancellations are instants, and so are operations that
    /// ended without having started. Arrows connect the steps of the critical path.
    ///
    /// Complexity: O(n log n) in the entries.
    public var chromeTrace: String {
        var trace = ChromeTrace(self)
        return trace.document()
    }
}

/// Writes the events of a trace.
private struct ChromeTrace {
    private let timeline: OperationTimeline
    private let index: TimelineIndex
    private let intervals: [ClosedRange<Int64>?]
    private let lanes: TimelineLanes
    private var events: [String] = []

    init(_ timeline: OperationTimeline) {
        let index = TimelineIndex(timeline.entries)
        let intervals = timeline.entries.map { entry -> ClosedRange<Int64>? in
            guard let start = (entry.started ?? entry.running)?.nanoseconds else { return nil }
            return start...max(start, (entry.finished ?? timeline.duration).nanoseconds)
        }
        (self.timeline, self.index, self.intervals) = (timeline, index, intervals)
        lanes = TimelineLanes(intervals, index)
    }

    mutating func document() -> String {
        event("M", "process_name", at: nil, lane: nil, ["args": "{\"name\":\"Operations\"}"])
        for lane in 0..<lanes.laneCount {
            event("M", "thread_name", at: nil, lane: lane, ["args": "{\"name\":\"Lane \(lane + 1)\"}"])
            event("M", "thread_sort_index", at: nil, lane: lane, ["args": "{\"sort_index\":\(lane)}"])
        }
        for position in index.order { addEvents(of: position) }
        addCriticalPath()
        var other = ["\"droppedOperations\":\(timeline.droppedCount)"]
        if let date = timeline.startDate { other.append("\"startMillisecondsSince1970\":\(date.milliseconds)") }
        return "{\"displayTimeUnit\":\"ms\",\"otherData\":{\(other.joined(separator: ","))},\"traceEvents\":[\n"
            + events.joined(separator: ",\n") + "\n]}\n"
    }

    private mutating func addEvents(of position: Int) {
        let entry = timeline.entries[position]
        let lane = lanes.lanes[position]
        guard let interval = intervals[position], let lane else {
            let time = entry.finished ?? entry.firstTime
            event("i", entry.name, at: time.nanoseconds, lane: 0, ["s": "\"t\"", "args": arguments(of: entry)])
            return
        }
        event(
            "X", entry.name, at: interval.lowerBound, lane: lane,
            [
                "dur": Self.microseconds(interval.upperBound - interval.lowerBound),
                "cat": category(of: position).json, "args": arguments(of: entry),
            ])
        for wait in entry.waits {
            // Slices in a lane have to be nested, so nothing may reach out of the operation.
            let from = min(max(wait.from.nanoseconds, interval.lowerBound), interval.upperBound)
            let to = min(max(wait.to?.nanoseconds ?? interval.upperBound, from), interval.upperBound)
            event(
                "X", wait.reason, at: from, lane: lane, ["dur": Self.microseconds(to - from), "cat": "\"waiting\""])
        }
        for retry in entry.retries {
            let arguments =
                "{\"error\":\(retry.error.json),\"delay\":\(retry.delay.shortText.json)}"
            event(
                "i", "attempt \(retry.attempt) failed", at: retry.time.nanoseconds, lane: lane,
                ["s": "\"t\"", "args": arguments])
        }
        if let cancelled = entry.cancelled {
            event("i", "cancelled: \(entry.name)", at: cancelled.nanoseconds, lane: lane, ["s": "\"t\""])
        }
    }

    private func category(of position: Int) -> String {
        timeline.entries[position].isComposite ? "composite" : "operation"
    }

    private func arguments(of entry: OperationTimeline.Entry) -> String {
        var arguments = ["\"id\":\(entry.id)", "\"type\":\(entry.typeName.json)"]
        arguments.append("\"outcome\":\"\(entry.outcome?.name ?? "none")\"")
        if let error = entry.outcome?.error { arguments.append("\"error\":\(error.json)") }
        if let added = entry.added, let started = entry.started, started > added {
            arguments.append("\"not started for\":\((started - added).shortText.json)")
        }
        if !entry.dependencies.isEmpty {
            let names = entry.dependencies.map { id in
                index.position(of: id).map { timeline.entries[$0].name } ?? "\(id)"
            }
            arguments.append("\"depends on\":\(names.joined(separator: ", ").json)")
        }
        if !entry.resources.isEmpty {
            arguments.append("\"held\":\(entry.resources.joined(separator: ", ").json)")
        }
        return "{\(arguments.joined(separator: ","))}"
    }

    /// An arrow from the end of each step to the beginning of the next one.
    private mutating func addCriticalPath() {
        let path = timeline.criticalPath(index)
        for (number, (step, next)) in zip(path, path.dropFirst()).enumerated() where step.operation != next.operation {
            guard let from = index.position(of: step.operation), let to = index.position(of: next.operation),
                let fromLane = lanes.lanes[from], let toLane = lanes.lanes[to],
                let source = intervals[from], let target = intervals[to]
            else { continue }
            let common = ["cat": "\"critical path\"", "id": "\(number + 1)"]
            // An arrow binds to the slice that is there at its time.
            let start = min(max(step.to.nanoseconds, source.lowerBound), max(source.lowerBound, source.upperBound - 1))
            let end = min(max(next.from.nanoseconds + next.waited.nanoseconds, target.lowerBound), target.upperBound)
            event("s", "critical path", at: start, lane: fromLane, common)
            event("f", "critical path", at: max(start, end), lane: toLane, common.merging(["bp": "\"e\""]) { $1 })
        }
    }

    private mutating func event(
        _ phase: String, _ name: String, at time: Int64?, lane: Int?, _ members: [String: String]
    ) {
        var text = "{\"ph\":\"\(phase)\",\"name\":\(name.json),\"pid\":1,\"tid\":\((lane ?? 0) + 1)"
        if let time { text += ",\"ts\":\(Self.microseconds(time))" }
        for (key, value) in members.sorted(by: { $0.key < $1.key }) { text += ",\"\(key)\":\(value)" }
        events.append(text + "}")
    }

    /// Nanoseconds as microseconds, without losing a digit.
    private static func microseconds(_ nanoseconds: Int64) -> String {
        let rest = nanoseconds % 1_000
        if rest == 0 { return "\(nanoseconds / 1_000)" }
        let digits = String(1_000 + rest).dropFirst()
        return "\(nanoseconds / 1_000).\(digits)"
    }
}

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
