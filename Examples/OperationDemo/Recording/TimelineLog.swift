import CommandLineSupport
import OperationKit
import OperationKitTimelines

/// A timeline as a log: a line for each thing that happened, oldest first.
struct TimelineLog {
    private struct Line {
        let time: Duration
        let name: String
        let text: String
    }

    private static let longestName = 20

    private let lines: [Line]

    /// Creates the log of a run.
    ///
    /// - Parameters:
    ///   - timeline: What happened.
    ///   - notes: What operations have said in between.
    init(_ timeline: OperationTimeline, notes: [Recording.Note]) {
        let names = Dictionary(uniqueKeysWithValues: timeline.entries.map { ($0.id, $0) })
        var lines = timeline.entries.flatMap { entry in
            // The row of the queue is no operation.
            entry.typeName == "OperationQueue" ? [] : Self.lines(of: entry, parent: entry.parent.flatMap { names[$0] })
        }
        lines += notes.map { Line(time: $0.time, name: $0.name, text: $0.text) }
        // At equal times in the order from above, which is that of a life.
        self.lines = lines.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
            .map(\.element)
    }

    /// The lines: milliseconds, operation, and what happened, two or more spaces in between.
    func text(style: Style) -> [String] {
        let width = min(Self.longestName, lines.map(\.name.count).max() ?? 0)
        return lines.map { line in
            let time = String(line.time.milliseconds).indented(to: 6) + " ms"
            return "\(time)  \(style.bold(line.name.cutInTheMiddle(to: width).padded(to: width)))  \(line.text)"
        }
    }

    private static func lines(of entry: OperationTimeline.Entry, parent: OperationTimeline.Entry?) -> [Line] {
        var lines: [Line] = []
        func add(_ time: Duration?, _ text: String) {
            if let time { lines.append(Line(time: time, name: entry.name, text: text)) }
        }
        let isEnqueued = parent == nil || parent?.typeName == "OperationQueue"
        // Work is not added to anything.
        if entry.typeName != Track.workType {
            add(entry.added, isEnqueued ? "enqueued" : "added to “\(parent?.name ?? "")”")
        }
        add(entry.started, "started")
        for wait in entry.waits { add(wait.from, wait.reason) }
        if !entry.waits.isEmpty { add(entry.running, "runs") }
        for retry in entry.retries {
            let delay = "\(retry.delay.milliseconds) ms"
            add(retry.time, "attempt \(retry.attempt) failed: \(retry.error); again in \(delay)")
        }
        add(entry.cancelled, "cancelled")
        switch entry.outcome {
        case .success: add(entry.finished, "finished")
        case .cancelled: add(entry.finished, "finished as cancelled")
        case .failed(let error): add(entry.finished, "failed: \(error)")
        case .skipped(let error): add(entry.finished, "did not run: \(error)")
        case nil: break
        }
        return lines
    }
}
