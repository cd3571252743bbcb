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
    /// Its colors follow the light or dark appearance of the viewer. Operations are bars with how long they took at the
    /// right, composites are thin bars above their children. What is on the critical path has a frame, and a line leads
    /// from each step of it to the next one. Pointing at a bar shows what is known of the operation.
    ///
    /// If there are more operations than rows, outer ones have rows rather than inner ones, and earlier ones rather than
    /// later ones, and a line says how many others there are. What would be narrower than a pixel is drawn as a pixel.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameters:
    ///   - width: The width in pixels. Below 200 it counts as 200.
    ///   - maximumRows: How many operations have a row.
    ///   - title: The title of the document, which stands above the drawing.
    ///   - end: The time at the right end. By default that is the end of this timeline; give two timelines the same
    ///     one to compare them.
    /// - Returns: The document.
    public func svg(
        width: Int = 960, maximumRows: Int = 300, title: String = "Timeline", end: Duration? = nil
    ) -> String {
        var drawing = SVGDrawing(
            self, width: min(max(200, width), 100_000), maximumRows: max(1, maximumRows), title: title,
            end: min(end ?? duration, .latest))
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
        case .skipped(let error): lines.append("did not run: \(error)")
        case nil: lines.append("not finished")
        }
        if !entry.resources.isEmpty { lines.append("held \(entry.resources.joined(separator: ", "))") }
        if let criticalReason { lines.append("on the critical path: \(criticalReason)") }
        return lines.joined(separator: "\n")
    }
}

/// A timeline as an SVG document.
private struct SVGDrawing {
    private static let rowHeight = 20
    private static let titleHeight = 24
    private static let axisHeight = 24
    private static let margin = 8
    /// How far the name of a child is to the right of that of its composite.
    private static let indentation = 14
    private static let smallestLabelWidth = 70
    /// The room for how long an operation took.
    private static let timeWidth = 70

    private let timeline: OperationTimeline
    private let index: TimelineIndex
    private let scale: TimelineScale
    private let path: [OperationTimeline.Step]
    /// What each operation has on the critical path, oldest first.
    private let steps: [OperationID: [OperationTimeline.Step]]
    private let width: Int
    private let labelWidth: Int
    private let title: String
    private let rows: [Int]
    /// What has been drawn, for the legend.
    private var marks: Set<TimelineMark> = []

    init(_ timeline: OperationTimeline, width: Int, maximumRows: Int, title: String, end: Duration) {
        let index = TimelineIndex(timeline.entries)
        let rows = index.selection(atMost: maximumRows)
        (self.timeline, self.index, self.width, self.title, self.rows) = (timeline, index, width, title, rows)
        path = timeline.criticalPath(index)
        steps = Dictionary(grouping: path, by: \.operation)
        let longest = rows.lazy.map { position in
            SVG.width(of: timeline.entries[position].name.printable)
                + Self.indentation * index.depths[position]
        }.max()
        labelWidth = min(max(longest ?? 0, Self.smallestLabelWidth) + Self.margin, width / 3)
        scale = TimelineScale(end: end, length: width - labelWidth - Self.timeWidth - 2 * Self.margin)
    }

    private var left: Int { labelWidth + Self.margin }

    // MARK: - Document

    mutating func document() -> String {
        let top = Self.titleHeight + Self.axisHeight
        let bottom = top + rows.count * Self.rowHeight
        var parts = [
            SVG.element(
                title.printable.cut(to: width - 2 * Self.margin, measure: SVG.width(of:)), x: Double(Self.margin),
                y: 18, style: "title")
        ]
        parts += axis(bottom: bottom)
        for (number, position) in rows.enumerated() { parts += row(of: position, y: top + number * Self.rowHeight) }
        parts += pathLines(top: top)
        let legend = SVG.legend(
            of: marks, width: width, margin: Self.margin, top: bottom + 4, rowHeight: Self.rowHeight)
        parts += legend.elements
        let notes = noteLines
        for (number, note) in notes.enumerated() {
            let y = bottom + 4 + (legend.lineCount + number) * Self.rowHeight + 14
            parts.append(SVG.element(note, x: Double(Self.margin), y: y, style: "faint"))
        }
        let height = bottom + (legend.lineCount + notes.count) * Self.rowHeight + Self.margin
        let beginning = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" width=\"\(width)\" "
                + "height=\"\(height)\" role=\"img\">",
            "<title>\(title.xml)</title>", SVG.sheet,
            "<rect class=\"back\" width=\"\(width)\" height=\"\(height)\"/>",
        ]
        return (beginning + parts).joined(separator: "\n") + "\n</svg>\n"
    }

    /// What is to be known of the drawing, in lines that are not wider than it is.
    private var noteLines: [String] {
        let others = timeline.entries.count - rows.count
        let notes = [
            rows.isEmpty ? "No operations were recorded." : nil,
            others > 0 ? others == 1 ? "1 other is not shown." : "\(others) others are not shown." : nil,
            timeline.droppedNote,
        ].compactMap { $0 }
        // Words are set in letters of an average width, which is what they have.
        return notes.flatMap { $0.wrapped(to: (width - 2 * Self.margin) / 7) }
    }

    private func axis(bottom: Int) -> [String] {
        if rows.isEmpty { return [] }
        return scale.ticks(atMost: max(1, scale.length / 90)).flatMap { tick in
            let x = Double(left) + scale.place(tick.time)
            let place = SVG.number(x)
            let top = Self.titleHeight + Self.axisHeight - 4
            return [
                "<line class=\"grid\" x1=\"\(place)\" x2=\"\(place)\" y1=\"\(top)\" y2=\"\(bottom)\"/>",
                SVG.element(tick.text, x: x, y: Self.titleHeight + 14, style: "faint"),
            ]
        }
    }

    // MARK: - Rows

    private mutating func row(of position: Int, y: Int) -> [String] {
        let entry = timeline.entries[position]
        let name = { [index, timeline] (id: OperationID) in
            index.position(of: id).map { timeline.entries[$0].name } ?? "\(id)"
        }
        // The first step of an operation says why it began.
        let reason = steps[entry.id]?.first?.explanation(naming: name)
        var parts = ["<g><title>\(timeline.details(of: entry, criticalReason: reason).xml)</title>"]
        parts.append(label(entry.name, depth: index.depths[position], y: y))
        for segment in TimelineSegment.segments(of: entry, end: timeline.duration)
        where isVisible(from: segment.from, to: segment.to) {
            let (x, length) = extent(segment.from, segment.to)
            parts.append(mark(segment.kind, x: x, y: y, width: length))
        }
        var lastPixel = -1
        for retry in entry.retries where retry.time <= scale.end && Int(scale.place(retry.time)) != lastPixel {
            lastPixel = Int(scale.place(retry.time))
            parts.append(mark(.retry, x: Double(left + lastPixel), y: y))
        }
        parts += frames(of: entry.id, y: y)
        let end = entry.finished ?? timeline.duration
        if let mark = TimelineMark(ofEndOf: entry), end <= scale.end {
            parts.append(self.mark(mark, x: Double(left) + max(3, scale.place(end)), y: y))
        }
        if let start = entry.started ?? entry.running, entry.outcome?.name != "skipped" {
            let x = Double(width - Self.margin)
            parts.append(SVG.element((end - start).shortText, x: x, y: y + 14, style: "faint", isAtEnd: true))
        }
        parts.append("</g>")
        return parts
    }

    private mutating func mark(_ mark: TimelineMark, x: Double, y: Int, width: Double = 0) -> String {
        marks.insert(mark)
        return SVG.element(mark, x: x, y: y, width: width)
    }

    /// Whether something begins before the right end, or is a moment there.
    private func isVisible(from: Duration, to: Duration) -> Bool {
        from < scale.end || from == scale.end && to <= from
    }

    /// Where a part of a bar begins, and how long it is: at least a pixel, also at the right end.
    private func extent(_ from: Duration, _ to: Duration) -> (x: Double, length: Double) {
        let start = scale.place(from)
        return (Double(left) + min(start, Double(scale.length) - 1), max(1, scale.place(to) - start))
    }

    private func label(_ name: String, depth: Int, y: Int) -> String {
        let room = labelWidth - Self.margin
        let indentation = min(depth * Self.indentation, room / 2)
        let isBlank = name.allSatisfy(\.isWhitespace)
        let text = (isBlank ? "unnamed" : name.printable).cut(to: room - indentation, measure: SVG.width(of:))
        return SVG.element(
            text, x: Double(Self.margin + indentation), y: y + 14, style: isBlank ? "faint" : nil)
    }

    // MARK: - Critical path

    /// When the work of a step began. The wait before it is drawn as a line.
    private func begin(of step: OperationTimeline.Step) -> Duration {
        // One that only waited has nothing else to show.
        step.from + step.waited < step.to ? step.from + step.waited : step.from
    }

    /// Frames around what an operation did on the critical path.
    private mutating func frames(of id: OperationID, y: Int) -> [String] {
        var frames: [String] = []
        var lastPixel = -1
        for step in steps[id] ?? [] where isVisible(from: begin(of: step), to: step.to) {
            let (x, length) = extent(begin(of: step), step.to)
            // What is within a pixel that has a frame needs no other one.
            if Int(x + length) == lastPixel { continue }
            lastPixel = Int(x + length)
            frames.append(mark(.critical, x: x, y: y, width: length))
        }
        return frames
    }

    /// Lines from each step of the critical path to the next one: down or up when the first ends, and then along the
    /// wait of the second.
    private func pathLines(top: Int) -> [String] {
        var tops: [OperationID: Int] = [:]
        for (number, position) in rows.enumerated() {
            tops[timeline.entries[position].id] = top + number * Self.rowHeight
        }
        return zip(path, path.dropFirst()).compactMap { previous, step in
            guard let y = tops[step.operation], let other = tops[previous.operation], other != y,
                isVisible(from: step.from, to: step.to)
            else { return nil }
            let from = scale.place(step.from)
            let length = scale.place(begin(of: step)) - from
            let isDown = other < y
            var line = "M\(SVG.number(Double(left) + from)) \(isDown ? other + 18 : other + 2)"
            line += "V\(length >= 1 ? y + 10 : isDown ? y + 2 : y + 18)"
            if length >= 1 { line += "h\(SVG.number(length))" }
            return "<path class=\"path\" d=\"\(line)\"/>"
        }
    }
}
