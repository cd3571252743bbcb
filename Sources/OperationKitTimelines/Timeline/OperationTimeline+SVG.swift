import OperationKit

extension OperationTimeline {
    /// Draws the timeline as an SVG document that needs nothing else: no script, no font, no style sheet.
    ///
    /// ```swift
    /// let recorder = OperationTimelineRecorder()
    /// // … run operations …
    /// try Data(recorder.timeline.svg().utf8).write(to: URL(fileURLWithPath: "timeline.svg"))
    /// ```
    ///
    /// Its colors follow the light or dark appearance of the viewer. Operations are bars, composites thin bars above
    /// their children. What is on the critical path has a frame, and a line leads from each step of it to the next
    /// one. Pointing at a bar shows what is known of the operation.
    ///
    /// If there are more operations than rows, outer ones have rows rather than inner ones, and earlier ones rather
    /// than later ones. The others are drawn together, as a row for each composite whose height is the number of
    /// those that work at the same time. What would be narrower than a pixel is drawn as a pixel, together with what
    /// else is in it. So the size of the document depends on the width and the number of rows, not on the number of
    /// operations.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameters:
    ///   - width: The width in pixels. Below 200 it counts as 200.
    ///   - maximumRows: How many operations have a row of their own.
    ///   - title: The title of the document, for assistive software too.
    ///   - end: The time at the right end. By default that is the end of this timeline; give two timelines the same
    ///     one to compare them.
    /// - Returns: The document.
    public func svg(
        width: Int = 960, maximumRows: Int = 300, title: String = "Timeline", end: Duration? = nil
    ) -> String {
        var drawing = TimelineSVGDrawing(
            self, width: max(200, width), maximumRows: max(1, maximumRows), title: title, end: end ?? duration)
        return drawing.document()
    }

    /// All that is known of an entry, in lines.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - criticalReason: Why it began when it did, if it is on the critical path.
    /// - Returns: The lines.
    func details(of entry: Entry, criticalReason: String?) -> String {
        var lines = ["\(entry.name) (\(entry.typeName))"]
        if let start = entry.started ?? entry.running {
            let end = entry.finished ?? duration
            lines.append("\(start.shortText) to \(end.shortText): \((end - start).shortText)")
        }
        if let added = entry.added, let started = entry.started, started > added {
            lines.append("not started for \((started - added).shortText)")
        }
        for wait in entry.waits {
            lines.append("\(wait.reason), \(((wait.to ?? entry.finished ?? duration) - wait.from).shortText)")
        }
        for retry in entry.retries {
            lines.append("attempt \(retry.attempt) failed at \(retry.time.shortText): \(retry.error)")
        }
        if let cancelled = entry.cancelled { lines.append("cancelled at \(cancelled.shortText)") }
        switch entry.outcome {
        case .success: lines.append("succeeded")
        case .cancelled: lines.append("ended as cancelled")
        case .failed(let error): lines.append("failed: \(error)")
        case nil: lines.append("not finished")
        }
        if let returned = entry.returned { lines.append("main() returned at \(returned.shortText)") }
        if !entry.resources.isEmpty { lines.append("held \(entry.resources.joined(separator: ", "))") }
        if let criticalReason { lines.append("on the critical path: \(criticalReason)") }
        return lines.joined(separator: "\n")
    }
}
