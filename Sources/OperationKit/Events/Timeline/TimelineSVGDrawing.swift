/// A timeline as an SVG document.
struct TimelineSVGDrawing {
    private static let rowHeight = 20
    private static let axisHeight = 24
    private static let legendHeight = 20
    private static let margin = 8
    /// How wide a character is, on average.
    private static let characterWidth = 7

    /// What a row of the drawing is.
    private enum Row {
        case operation(Int)
        /// The operations inside a composite, or those without a parent, that have no row of their own.
        case others([Int], depth: Int)
    }

    private let timeline: OperationTimeline
    private let index: TimelineIndex
    private let scale: TimelineScale
    /// Why each operation on the critical path began when it did.
    private let critical: [OperationID: String]
    private let width: Int
    private let labelWidth: Int
    private let title: String
    private var rows: [Row] = []

    init(_ timeline: OperationTimeline, width: Int, maximumRows: Int, title: String, end: Duration) {
        let index = TimelineIndex(timeline.entries)
        let selection = index.selection(atMost: maximumRows)
        (self.timeline, self.index, self.width, self.title) = (timeline, index, width, title)
        let name = { (id: OperationID) in index.position(of: id).map { timeline.entries[$0].name } ?? "\(id)" }
        // The first step of an operation says why it began.
        critical = Dictionary(
            timeline.criticalPath(index).map { ($0.operation, $0.explanation(naming: name)) },
            uniquingKeysWith: { first, _ in first })
        let longest = selection.map { TerminalText.width(timeline.entries[$0].name) + 2 * index.depths[$0] }.max() ?? 0
        labelWidth = min(max(longest, 10) * Self.characterWidth + Self.margin, width / 3)
        scale = TimelineScale(end: end, length: width - labelWidth - 2 * Self.margin)
        rows = Self.rows(selection, index)
    }

    /// The rows of a selection, with one more below each composite that has others inside it.
    private static func rows(_ selection: [Int], _ index: TimelineIndex) -> [Row] {
        guard selection.count < index.count else { return selection.map { .operation($0) } }
        let selected = Set(selection)
        var others: [Int: [Int]] = [:]
        // The nearest composite around each that has a row. Parents come before what is inside them.
        var anchors = [Int](repeating: -1, count: index.count)
        for position in index.order {
            if let parent = index.parent(of: position) {
                anchors[position] = selected.contains(parent) ? parent : anchors[parent]
            }
            if !selected.contains(position) { others[anchors[position], default: []].append(position) }
        }
        var rows: [Row] = []
        // Composites whose children have rows, and below which a row of others is to come.
        var open: [(depth: Int, positions: [Int])] = []
        func close(to depth: Int) {
            while let last = open.last, last.depth >= depth {
                rows.append(.others(last.positions, depth: last.depth + 1))
                open.removeLast()
            }
        }
        for position in selection {
            close(to: index.depths[position])
            rows.append(.operation(position))
            if let inside = others[position] { open.append((index.depths[position], inside)) }
        }
        close(to: 0)
        if let last = others[-1] { rows.append(.others(last, depth: 0)) }
        return rows
    }

    // MARK: - Document

    var document: String {
        let notes = [timeline.droppedNote].compactMap { $0 }
        let top = Self.axisHeight
        let bottom = top + rows.count * Self.rowHeight
        let legend = legendLines(top: bottom)
        let height = bottom + (legend.lineCount + notes.count) * Self.legendHeight + Self.margin
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" width=\"\(width)\" "
                + "height=\"\(height)\" role=\"img\">",
            "<title>\(MarkupText.xml(title))</title>", TimelineSVGStyle.sheet,
            "<rect class=\"back\" width=\"\(width)\" height=\"\(height)\"/>",
        ]
        if rows.isEmpty { parts.append(text("No operations were recorded.", x: Self.margin, y: 16)) }
        parts += axis(bottom: bottom)
        for (number, row) in rows.enumerated() {
            let y = top + number * Self.rowHeight
            switch row {
            case .operation(let position): parts += bar(of: position, y: y)
            case .others(let positions, let depth): parts += histogram(of: positions, depth: depth, y: y)
            }
        }
        parts += legend.parts
        for (number, note) in notes.enumerated() {
            let y = bottom + (legend.lineCount + number) * Self.legendHeight + 14
            parts.append(text(note, x: Self.margin, y: y, style: "faint"))
        }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }

    private var left: Int { labelWidth + Self.margin }

    private func axis(bottom: Int) -> [String] {
        if rows.isEmpty { return [] }
        return scale.ticks(atMost: max(1, scale.length / 90)).flatMap { tick in
            let x = number(Double(left) + scale.place(tick.time))
            return [
                "<line class=\"grid\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(Self.axisHeight - 4)\" y2=\"\(bottom)\"/>",
                "<text class=\"faint\" x=\"\(x)\" y=\"14\">\(MarkupText.xml(tick.text))</text>",
            ]
        }
    }

    /// The marks that occur, and what they mean.
    private func legendLines(top: Int) -> (parts: [String], lineCount: Int) {
        var kinds: Set<TimelineSegment.Kind> = []
        var marks: Set<String> = []
        for case .operation(let position) in rows {
            let entry = timeline.entries[position]
            kinds.formUnion(segments(of: position).map(\.kind))
            if let mark = endMark(of: entry) { marks.insert(mark) }
            if critical[entry.id] != nil { marks.insert("critical") }
            if !entry.retries.isEmpty { marks.insert("retry") }
        }
        let titles =
            TimelineSegment.Kind.allCases.filter(kinds.contains).map { (TimelineSVGStyle.name(of: $0), $0.title) }
            + [
                ("retry", "tried again"), ("failed", "failed"), ("cancelled", "cancelled"),
                ("unfinished", "unfinished"),
                ("critical", "critical path"),
            ].filter { marks.contains($0.0) }
        var (x, line) = (Self.margin, 0)
        var parts: [String] = []
        for (style, title) in titles {
            let length = 20 + title.count * Self.characterWidth + 12
            if x > Self.margin, x + length > width { (x, line) = (Self.margin, line + 1) }
            let y = top + line * Self.legendHeight + 4
            parts.append("<rect class=\"\(style)\" x=\"\(x)\" y=\"\(y + 2)\" width=\"14\" height=\"10\"/>")
            parts.append(text(title, x: x + 20, y: y + 11, style: "faint"))
            x += length
        }
        return (parts, titles.isEmpty ? 0 : line + 1)
    }

    // MARK: - Rows

    private func segments(of position: Int) -> [TimelineSegment] {
        let entry = timeline.entries[position]
        return TimelineSegment.segments(
            of: entry, isComposite: entry.isComposite || index.hasChildren(position), end: timeline.duration)
    }

    private func endMark(of entry: OperationTimeline.Entry) -> String? {
        switch entry.outcome {
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .success: nil
        case nil: entry.isUnfinished ? "unfinished" : nil
        }
    }

    private func bar(of position: Int, y: Int) -> [String] {
        let entry = timeline.entries[position]
        let reason = critical[entry.id]
        let segments = segments(of: position)
        var parts = ["<g><title>\(MarkupText.xml(timeline.details(of: entry, criticalReason: reason)))</title>"]
        parts.append(label(entry.name, depth: index.depths[position], y: y, style: nil))
        for segment in segments where segment.from <= scale.end {
            let (top, height) = TimelineSVGStyle.extent(of: segment.kind)
            parts.append(
                rectangle(TimelineSVGStyle.name(of: segment.kind), segment.from, segment.to, y: y + top, height: height)
            )
        }
        var lastPixel = -1
        for retry in entry.retries where retry.time <= scale.end && Int(scale.place(retry.time)) != lastPixel {
            lastPixel = Int(scale.place(retry.time))
            let x = left + lastPixel
            parts.append("<line class=\"retry\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(y + 2)\" y2=\"\(y + 18)\"/>")
        }
        let end = entry.finished ?? timeline.duration
        if let mark = endMark(of: entry), end <= scale.end {
            let x = number(Double(left) + max(0, scale.place(end) - 3))
            parts.append("<rect class=\"\(mark)\" x=\"\(x)\" y=\"\(y + 2)\" width=\"4\" height=\"16\"/>")
        }
        if reason != nil, let start = entry.started ?? entry.running, start <= scale.end {
            parts.append(rectangle("critical", start, end, y: y + 2, height: 16))
        }
        parts.append("</g>")
        return parts
    }

    /// Operations that share a row: in each pixel as high as the number of those that work, compared with the most.
    private func histogram(of positions: [Int], depth: Int, y: Int) -> [String] {
        var changes = [Int](repeating: 0, count: scale.length + 1)
        var works: [ClosedRange<Int64>] = []
        for position in positions {
            guard case let entry = timeline.entries[position], let start = entry.workStart, start <= scale.end else {
                continue
            }
            // A composite is as busy as what is inside it.
            if entry.isComposite || index.hasChildren(position) { continue }
            let end = max(start, entry.finished ?? timeline.duration)
            works.append(start.nanoseconds...end.nanoseconds)
            let cells = scale.cells(start, end)
            changes[cells.lowerBound] += 1
            changes[cells.upperBound + 1] -= 1
        }
        var current = 0
        let counts = changes.map { change in
            current += change
            return current
        }
        // Not the largest count: in a pixel, one may end before another one begins.
        let most = max(1, OperationTimeline.maximumOverlap(of: works))
        let name = positions.count == 1 ? "1 other" : "\(positions.count) others"
        var parts = ["<g><title>\(name), at most \(most) working at the same time</title>"]
        parts.append(label(name, depth: depth, y: y, style: "faint"))
        var first = 0
        for pixel in counts.indices.dropFirst() where counts[pixel] != counts[first] {
            if counts[first] > 0 {
                let height = max(2, 16 * min(counts[first], most) / most)
                parts.append(
                    "<rect class=\"executing\" x=\"\(left + first)\" y=\"\(y + 18 - height)\" "
                        + "width=\"\(pixel - first)\" height=\"\(height)\"/>")
            }
            first = pixel
        }
        parts.append("</g>")
        return parts
    }

    // MARK: - Elements

    private func rectangle(_ style: String, _ from: Duration, _ to: Duration, y: Int, height: Int) -> String {
        let start = scale.place(from)
        let length = max(1, scale.place(to) - start)
        // A bar at the right end is a pixel, too.
        let x = number(Double(left) + min(start, Double(scale.length) - 1))
        return "<rect class=\"\(style)\" x=\"\(x)\" y=\"\(y)\" width=\"\(number(length))\" height=\"\(height)\"/>"
    }

    private func label(_ name: String, depth: Int, y: Int, style: String?) -> String {
        let cells = (labelWidth - Self.margin) / Self.characterWidth
        let indentation = min(2 * depth, cells / 2)
        return text(
            TerminalText.cut(TerminalText.printable(name), to: cells - indentation),
            x: Self.margin + indentation * Self.characterWidth, y: y + 14, style: style)
    }

    private func text(_ text: String, x: Int, y: Int, style: String? = nil) -> String {
        let style = style.map { " class=\"\($0)\"" } ?? ""
        return "<text\(style) x=\"\(x)\" y=\"\(y)\">\(MarkupText.xml(text))</text>"
    }

    /// A number with at most one digit after the point.
    private func number(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}
