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
    /// If there are more operations than rows, outer ones have rows rather than inner ones, those that failed or still execute rather
    /// than others, and earlier ones rather than later ones, and a line says how many others there are. What would be narrower than a pixel
    /// is drawn as a pixel.
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
            self, width: min(max(200, width), 100_000), maximumRows: maximumRows, title: title,
            end: end ?? duration)
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
        let end = end(of: entry)
        if let start = entry.begin {
            lines.append("\(start.shortText) to \(end.shortText): \((end - start).shortText)")
        }
        if let delay = entry.startDelay { lines.append("not started for \(delay.shortText)") }
        lines += entry.waits.map { "\($0.reason), \((($0.to ?? end) - $0.from).shortText)" }
        lines += entry.retries.map { "attempt \($0.attempt) failed at \($0.time.shortText): \($0.error)" }
        if let cancelled = entry.cancelled { lines.append("cancelled at \(cancelled.shortText)") }
        let outcome =
            switch entry.outcome {
            case .success: "succeeded"
            case .cancelled: "ended as cancelled"
            case .failed(let error): "failed: \(error)"
            case .skipped(let error): "did not run: \(error)"
            case nil: "not finished"
            }
        lines.append(outcome)
        if !entry.resources.isEmpty { lines.append("held \(entry.resources.joined(separator: ", "))") }
        if let criticalReason { lines.append("on the critical path: \(criticalReason)") }
        return lines.joined(separator: "\n")
    }
}

private let rowHeight = 20
private let titleHeight = 24
private let axisHeight = 24
private let margin = 8
/// How far the name of a child is to the right of that of its composite.
private let indentation = 14
private let smallestLabelWidth = 70
/// The room for how long an operation took.
private let timeWidth = 70
/// How far below the top of a row the base line of its text is.
private let baseLine = 14

/// A timeline as an SVG document.
struct SVGDrawing {
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
    private var elements: [String] = []
    /// Where the rows are.
    private var tops: [OperationID: Int] = [:]
    /// What has been drawn, for the legend.
    private var marks: Set<TimelineMark> = []

    init(_ timeline: OperationTimeline, width: Int, maximumRows: Int, title: String, end: Duration) {
        let causes = TimelineCauses(timeline)
        let index = causes.index
        rows = index.selection(atMost: maximumRows)
        (self.timeline, self.index, self.width, self.title) = (timeline, index, width, title)
        path = causes.criticalPath
        steps = Dictionary(grouping: path, by: \.operation)
        let longest = rows.lazy.map { position in
            Self.width(of: index.entries[position].name.printable) + indentation * index.depths[position]
        }.max()
        labelWidth = min(max(longest ?? 0, smallestLabelWidth) + margin, width / 3)
        scale = TimelineScale(end: end, length: width - labelWidth - timeWidth - 2 * margin)
    }

    /// Where the bars begin.
    private var left: Double { Double(labelWidth + margin) }

    // MARK: - Document

    mutating func document() -> String {
        let top = titleHeight + axisHeight
        var bottom = top + rows.count * rowHeight
        text(
            title.printable.cut(to: width - 2 * margin, measure: Self.width(of:)), x: Double(margin), y: 18,
            style: "title")
        if !rows.isEmpty { addAxis(top: top - 4, bottom: bottom) }
        for (number, position) in rows.enumerated() { addRow(of: position, y: top + number * rowHeight) }
        addPath()
        bottom += rowHeight * addLegend(top: bottom + 4)
        let notes = timeline.notes(omitting: index.entries.count - rows.count)
        // Words are set in letters of an average width, which is what they have.
        for note in notes.flatMap({ $0.wrapped(to: (width - 2 * margin) / 7) }) {
            text(note, x: Double(margin), y: bottom + 4 + baseLine, style: "faint")
            bottom += rowHeight
        }
        let height = bottom + margin
        let beginning = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" width=\"\(width)\" "
                + "height=\"\(height)\" role=\"img\">",
            "<title>\(title.xml)</title>", Self.sheet,
            "<rect class=\"back\" width=\"\(width)\" height=\"\(height)\"/>",
        ]
        return (beginning + elements).joined(separator: "\n") + "\n</svg>\n"
    }

    private mutating func addAxis(top: Int, bottom: Int) {
        for tick in scale.ticks(atMost: scale.length / 90) {
            let x = left + scale.place(tick.time)
            elements.append(
                "<line class=\"grid\" x1=\"\(x.shortText)\" x2=\"\(x.shortText)\" y1=\"\(top)\" y2=\"\(bottom)\"/>")
            text(tick.text, x: x, y: titleHeight + baseLine, style: "faint")
        }
    }

    /// Adds each kind of bar and each mark that occurs, drawn as in the rows.
    ///
    /// - Parameter top: The top of its first line.
    /// - Returns: How many lines it takes.
    private mutating func addLegend(top: Int) -> Int {
        var (place, lineCount) = (margin, 0)
        for mark in TimelineMark.allCases where marks.contains(mark) {
            let length = 22 + Self.width(of: mark.title)
            if lineCount == 0 || place + length > width - margin { (place, lineCount) = (margin, lineCount + 1) }
            let (x, y) = (Double(place), top + (lineCount - 1) * rowHeight)
            self.mark(mark, x: x, y: y, width: 16)
            text(mark.title, x: x + 22, y: y + baseLine, style: "faint")
            place += length + 12
        }
        return lineCount
    }

    // MARK: - Rows

    private mutating func addRow(of position: Int, y: Int) {
        let entry = timeline.entries[position]
        tops[entry.id] = y
        // The first step of an operation says why it began.
        let reason = steps[entry.id]?.first?.explanation(naming: index.name)
        elements.append("<g><title>\(timeline.details(of: entry, criticalReason: reason).xml)</title>")
        let room = labelWidth - margin
        let start = min(index.depths[position] * indentation, room / 2)
        let label = entry.name.printable.cut(to: room - start, measure: Self.width(of:))
        text(label, x: Double(margin + start), y: y + baseLine)
        for segment in entry.segments(end: timeline.duration) {
            if let (x, length) = extent(segment.from, segment.to) { mark(segment.kind, x: x, y: y, width: length) }
        }
        for retry in entry.retries where retry.time <= scale.end {
            mark(.retry, x: left + scale.place(retry.time), y: y)
        }
        // Frames around what it did on the critical path.
        for step in steps[entry.id] ?? [] {
            if let (x, length) = extent(begin(of: step), step.to) { mark(.critical, x: x, y: y, width: length) }
        }
        let end = timeline.end(of: entry)
        if let mark = TimelineMark(ofEndOf: entry), end <= scale.end {
            self.mark(mark, x: left + max(3, scale.place(end)), y: y)
        }
        if let length = timeline.length(of: entry) {
            let x = Double(width - margin)
            text(length.shortText, x: x, y: y + baseLine, style: "faint", isAtEnd: true)
        }
        elements.append("</g>")
    }

    /// Whether something begins before the right end, or is a moment there.
    private func isVisible(from: Duration, to: Duration) -> Bool {
        from < scale.end || from == scale.end && to <= from
    }

    /// Where a part of a bar begins, and how long it is: at least a pixel, also at the right end; `nil` if it is not
    /// visible.
    private func extent(_ from: Duration, _ to: Duration) -> (x: Double, length: Double)? {
        guard isVisible(from: from, to: to) else { return nil }
        let start = scale.place(from)
        return (left + min(start, Double(scale.length) - 1), max(1, scale.place(to) - start))
    }

    // MARK: - Critical path

    /// When the work of a step began. The wait before it is drawn as a line.
    private func begin(of step: OperationTimeline.Step) -> Duration {
        // One that only waited has nothing else to show.
        step.from + step.waited < step.to ? step.from + step.waited : step.from
    }

    /// Adds lines from each step of the critical path to the next one: down or up when the first ends, and then along
    /// the wait of the second, which may be none.
    private mutating func addPath() {
        for (previous, step) in zip(path, path.dropFirst()) where isVisible(from: step.from, to: step.to) {
            guard let y = tops[step.operation], let other = tops[previous.operation], other != y else { continue }
            let from = scale.place(step.from)
            let length = scale.place(begin(of: step)) - from
            let line = "M\((left + from).shortText) \(other + 10)V\(y + 10)h\(length.shortText)"
            elements.append("<path class=\"path\" d=\"\(line)\"/>")
        }
    }

    // MARK: - Elements

    /// Adds a text on one line, which begins at a place, or ends there.
    private mutating func text(_ text: String, x: Double, y: Int, style: String? = nil, isAtEnd: Bool = false) {
        let style = style.map { " class=\"\($0)\"" } ?? ""
        let anchor = isAtEnd ? " text-anchor=\"end\"" : ""
        elements.append("<text\(style) x=\"\(x.shortText)\" y=\"\(y)\"\(anchor)>\(text.xml)</text>")
    }

    /// Adds a bar or a mark to a row.
    ///
    /// - Parameters:
    ///   - mark: What it shows.
    ///   - x: The beginning of the bar, or the place of what is marked. For the critical path, the beginning of the frame.
    ///   - y: The top of the row.
    ///   - width: The width of the bar or the frame. Other marks have one of their own.
    private mutating func mark(_ mark: TimelineMark, x: Double, y: Int, width: Double = 0) {
        marks.insert(mark)
        let height =
            switch mark {
            case .pending: 2
            case .composite: 6
            case .waiting: 8
            // A retry cuts the bar in two.
            case .executing, .retry: 12
            default: 16
            }
        let (left, width) =
            switch mark {
            case .pending, .waiting, .executing, .composite, .critical: (0.0, width)
            default: (3.0, 4.0)
            }
        elements.append(
            "<rect class=\"\(mark.rawValue)\" x=\"\((x - left).shortText)\" y=\"\(y + (rowHeight - height) / 2)\" "
                + "width=\"\(width.shortText)\" height=\"\(height)\"/>")
    }
}

/// The widths of texts, and the colors.
extension SVGDrawing {
    /// How wide a text is at most, in pixels, in the usual fonts of systems.
    static func width(of text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + width(of: $1) }
    }

    /// How wide a character is at most, in pixels. The font is not known, so this is that of the widest usual one.
    static func width(of character: Character) -> Int {
        if "ijlIJ|!.,:;'/ frt-()[]\"`".contains(character) { return 5 }
        if "mwMW@%#&+<=>^~".contains(character) { return 12 }
        if character.isASCII { return character.isUppercase ? 9 : 8 }
        // Of what takes two cells of a terminal, pictures are the widest.
        return character == "…" || character == "—" ? 12 : [0, 9, 16][character.cells]
    }

    /// The style sheet, with a light and a dark set of colors.
    static let sheet = """
        <style>
        svg {
          --back: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d8dee4;
          --executing: #2f81f7; --composite: #6e7781; --waiting: #bf8700; --pending: #8c959f;
          --failed: #cf222e; --cancelled: #8250df; --critical: #bc4c00;
        }
        @media (prefers-color-scheme: dark) {
          svg {
            --back: #0d1117; --ink: #e6edf3; --faint: #9198a1; --grid: #30363d;
            --executing: #4493f8; --composite: #8d96a0; --waiting: #bb8009; --pending: #6e7681;
            --failed: #f85149; --cancelled: #ab7df8; --critical: #f0883e;
          }
        }
        text { font: 12px system-ui, sans-serif; fill: var(--ink); }
        .title { font-size: 13px; font-weight: 600; }
        .faint { fill: var(--faint); font-size: 11px; }
        .back { fill: var(--back); }
        .grid { stroke: var(--grid); }
        .executing { fill: var(--executing); } .composite { fill: var(--composite); } .waiting { fill: var(--waiting); }
        .pending, .skipped { fill: var(--pending); } .failed { fill: var(--failed); }
        .cancelled { fill: var(--cancelled); } .unfinished { fill: var(--ink); }
        .retry { fill: var(--failed); stroke: var(--back); }
        .critical { fill: none; stroke: var(--critical); stroke-width: 2; }
        .path { fill: none; stroke: var(--critical); stroke-width: 1.5; }
        </style>
        """
}
