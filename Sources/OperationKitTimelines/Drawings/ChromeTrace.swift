import Foundation
import OperationKit

extension OperationTimeline {
    /// The timeline as JSON in Chrome's trace event format, which Perfetto (ui.perfetto.dev), `chrome://tracing` and
    /// others open.
    ///
    /// Each operation is a slice from its start to its end, with what is known of it as arguments. What it waited for
    /// before its `main()` is a slice inside that. Operations that overlap are in different lanes; a child is in the
    /// lane of its composite if no sibling is. Failed attempts, the sleeps of a workflow and cancellations are instants, and so are
    /// operations that ended without having started. Arrows connect the steps of the critical path.
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
    private let causes: TimelineCauses
    private let intervals: [ClosedRange<Duration>?]
    /// In each lane, slices are either nested or do not overlap, as trace viewers need it.
    private let lanes: [Int?]
    private var events: [String] = []

    init(_ timeline: OperationTimeline) {
        (self.timeline, causes) = (timeline, TimelineCauses(timeline))
        intervals = zip(causes.starts, causes.ends).map { start, end in start.map { $0...max($0, end) } }
        lanes = causes.index.lanes(of: intervals)
    }

    mutating func document() -> String {
        event("M", "process_name", ["\"args\":{\"name\":\"Operations\"}"])
        for lane in Set(lanes.compactMap(\.self)).sorted() {
            event("M", "thread_name", lane: lane, ["\"args\":{\"name\":\"Lane \(lane + 1)\"}"])
            event("M", "thread_sort_index", lane: lane, ["\"args\":{\"sort_index\":\(lane)}"])
        }
        for position in causes.index.order { addEvents(of: position) }
        addCriticalPath()
        var other = ["\"droppedOperations\":\(timeline.droppedCount)"]
        if let date = timeline.startDate { other.append("\"startMillisecondsSince1970\":\(date.milliseconds)") }
        return "{\"displayTimeUnit\":\"ms\",\"otherData\":{\(other.joined(separator: ","))},\"traceEvents\":[\n"
            + events.joined(separator: ",\n") + "\n]}\n"
    }

    private mutating func addEvents(of position: Int) {
        let entry = timeline.entries[position]
        guard let interval = intervals[position], let lane = lanes[position] else {
            let time = entry.finished ?? entry.firstTime
            return event("i", entry.name, at: time, [arguments(of: entry), "\"s\":\"t\""])
        }
        slice(entry.name, interval, lane, entry.isComposite ? "composite" : "operation", [arguments(of: entry)])
        for wait in entry.waits {
            // Slices in a lane have to be nested, so nothing may reach out of the operation.
            let from = wait.from.clamped(to: interval)
            let to = max(from, wait.to?.clamped(to: interval) ?? interval.upperBound)
            if wait.from < entry.running ?? .latest {
                slice(wait.reason, from...to, lane, "waiting")
            } else {
                // Meanwhile, children may begin and end in the same lane.
                let duration = Self.arguments(["duration": (to - from).shortText])
                event("i", wait.reason, at: from, lane: lane, [duration, "\"s\":\"t\""])
            }
        }
        for retry in entry.retries {
            event(
                "i", "attempt \(retry.attempt) failed", at: retry.time, lane: lane,
                [Self.arguments(["error": retry.error, "delay": retry.delay.shortText]), "\"s\":\"t\""])
        }
        if let cancelled = entry.cancelled {
            event("i", "cancelled: \(entry.name)", at: cancelled, lane: lane, ["\"s\":\"t\""])
        }
    }

    private func arguments(of entry: OperationTimeline.Entry) -> String {
        let list = { (texts: [String]) in texts.isEmpty ? nil : texts.joined(separator: ", ") }
        return Self.arguments(
            id: entry.id,
            [
                "type": entry.typeName, "outcome": entry.outcome?.name ?? "none", "error": entry.outcome?.error,
                "not started for": entry.startDelay?.shortText,
                "depends on": list(entry.dependencies.map(causes.index.name)), "held": list(entry.resources),
            ])
    }

    private static func arguments(id: OperationID? = nil, _ texts: KeyValuePairs<String, String?>) -> String {
        let members = [id.map { "\"id\":\($0)" }] + texts.map { key, text in text.map { "\"\(key)\":\($0.json)" } }
        return "\"args\":{\(members.compactMap(\.self).joined(separator: ","))}"
    }

    /// An arrow from the end of each step to the beginning of the next one.
    private mutating func addCriticalPath() {
        let path = causes.criticalPath
        for (number, (step, next)) in zip(path, path.dropFirst()).enumerated() where step.operation != next.operation {
            guard let from = causes.index.positions[step.operation], let source = intervals[from],
                let to = causes.index.positions[next.operation], let target = intervals[to]
            else { continue }
            let common = ["\"cat\":\"critical path\"", "\"id\":\(number + 1)"]
            // An arrow binds to the slice that is there at its time.
            let last = max(source.lowerBound, source.upperBound - .nanoseconds(1))
            let start = step.to.clamped(to: source.lowerBound...last)
            let end = (next.from + next.waited).clamped(to: target)
            event("s", "critical path", at: start, lane: lanes[from], common)
            event("f", "critical path", at: max(start, end), lane: lanes[to], ["\"bp\":\"e\""] + common)
        }
    }

    private mutating func slice(
        _ name: String, _ interval: ClosedRange<Duration>, _ lane: Int, _ category: String, _ members: [String] = []
    ) {
        let duration = interval.upperBound - interval.lowerBound
        event(
            "X", name, at: interval.lowerBound, lane: lane,
            members + ["\"cat\":\"\(category)\"", "\"dur\":\(duration.microseconds)"])
    }

    /// Adds an event.
    ///
    /// - Parameters:
    ///   - phase: Its kind.
    ///   - name: Its name.
    ///   - time: When it happens, if that is a time.
    ///   - lane: Its lane; the first one by default.
    ///   - members: What else is in its object, as JSON.
    private mutating func event(
        _ phase: String, _ name: String, at time: Duration? = nil, lane: Int? = nil, _ members: [String]
    ) {
        let own = ["\"ph\":\"\(phase)\"", "\"name\":\(name.json)", "\"pid\":1", "\"tid\":\((lane ?? 0) + 1)"]
        let place = time.map { ["\"ts\":\($0.microseconds)"] } ?? []
        events.append("{\((own + place + members).joined(separator: ","))}")
    }
}

extension String {
    /// The text as a JSON string, with its quotes.
    fileprivate var json: String { String(decoding: (try? JSONEncoder().encode(self)) ?? Data(), as: UTF8.self) }
}

extension Duration {
    fileprivate var microseconds: Double { Double(nanoseconds) / 1_000 }

    fileprivate func clamped(to range: ClosedRange<Self>) -> Self {
        min(max(self, range.lowerBound), range.upperBound)
    }
}

extension TimelineIndex {
    /// Puts intervals into lanes, in each of which two of them are either nested or do not overlap.
    ///
    /// An operation is in the lane of its composite if it fits, otherwise in one that nothing else uses meanwhile.
    ///
    /// Complexity: O(n log n).
    ///
    /// - Parameter intervals: When each entry began and ended; `nil` for those that are left out.
    /// - Returns: The number of the lane of each of them.
    fileprivate func lanes(of intervals: [ClosedRange<Duration>?]) -> [Int?] {
        // At the same time, ends come before starts. A composite starts before what is inside it, and ends after it.
        let moments = intervals.enumerated().flatMap { position, interval in
            interval.map {
                [($0.lowerBound, 1, depths[position], position), ($0.upperBound, 0, -depths[position], position)]
            } ?? []
        }
        var lanes = [Int?](repeating: nil, count: intervals.count)
        // What is open in each lane, the innermost last.
        var open: [[Int]] = []
        var free: [Int] = []
        for (time, starting, _, position) in moments.sorted(by: <) {
            if starting == 0 {
                guard let lane = lanes[position], open[lane].last == position else { continue }
                open[lane].removeLast()
                if open[lane].isEmpty { free.append(lane) }
                continue
            }
            let end = intervals[position]?.upperBound ?? time
            let parent = parents[position]
            let around = parent.flatMap { lanes[$0] }.flatMap { open[$0].last == parent ? $0 : nil }
            let isInside = parent.flatMap { intervals[$0] }.map { end <= $0.upperBound } ?? false
            let lane = (isInside ? around : nil) ?? free.popLast() ?? open.count
            if lane == open.count { open.append([]) }
            lanes[position] = lane
            if time < end {
                open[lane].append(position)
            } else if open[lane].isEmpty {
                free.append(lane)
            }
        }
        return lanes
    }
}
