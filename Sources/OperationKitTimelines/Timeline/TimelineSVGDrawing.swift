import OperationKit

/// A timeline as an SVG document.
struct TimelineSVGDrawing {
    private static let rowHeight = 20
    private static let axisHeight = 24
    private static let margin = 8
    /// How far the name of a child is to the right of that of its composite.
    private static let indentation = 14
    private static let smallestLabelWidth = 70

    /// What a row of the drawing is.
    private enum Row {
        case operation(Int)
        /// The operations inside a composite, or those without a parent, that have no row of their own.
        case others([Int], depth: Int)
    }

    private let timeline: OperationTimeline
    private let index: TimelineIndex
    private let scale: TimelineScale
    private let path: [OperationTimeline.Step]
    /// What each operation has on the critical path, oldest first.
    private let steps: [OperationID: [OperationTimeline.Step]]
    private let width: Int
    private let labelWidth: Int
    private let title: String
    private let rows: [Row]
    /// What has been drawn, for the legend.
    private var kinds: Set<TimelineSegment.Kind> = []
    private var marks: Set<TimelineSVGMark> = []

    init(_ timeline: OperationTimeline, width: Int, maximumRows: Int, title: String, end: Duration) {
        let index = TimelineIndex(timeline.entries)
        let rows = Self.rows(index.selection(atMost: maximumRows), index)
        (self.timeline, self.index, self.width, self.title, self.rows) = (timeline, index, width, title, rows)
        path = timeline.criticalPath(index)
        steps = Dictionary(grouping: path, by: \.operation)
        let longest = rows.map { row in
            switch row {
            case .operation(let position):
                TimelineSVGElement.width(of: TerminalText.printable(timeline.entries[position].name))
                    + Self.indentation * index.depths[position]
            case .others(let positions, let depth):
                TimelineSVGElement.width(of: Self.name(of: positions)) + Self.indentation * depth
            }
        }
        labelWidth = min(max(longest.max() ?? 0, Self.smallestLabelWidth) + Self.margin, width / 3)
        scale = TimelineScale(end: end, length: width - labelWidth - 2 * Self.margin)
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

    mutating func document() -> String {
        let top = Self.axisHeight
        let bottom = top + rows.count * Self.rowHeight
        var parts = axis(bottom: bottom)
        for (number, row) in rows.enumerated() {
            let y = top + number * Self.rowHeight
            switch row {
            case .operation(let position): parts += bar(of: position, y: y)
            case .others(let positions, let depth): parts += histogram(of: positions, depth: depth, y: y)
            }
        }
        parts += pathLines(top: top)
        let legend = TimelineSVGLegend(kinds: kinds, marks: marks, width: width, margin: Self.margin)
        parts += legend.elements(top: bottom + 4)
        let notes = noteLines
        for (number, note) in notes.enumerated() {
            let y = bottom + 4 + (legend.lineCount + number) * Self.rowHeight + 14
            parts.append(TimelineSVGElement.text(note, x: Double(Self.margin), y: y, style: "faint"))
        }
        let height = bottom + (legend.lineCount + notes.count) * Self.rowHeight + Self.margin
        let beginning = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" width=\"\(width)\" "
                + "height=\"\(height)\" role=\"img\">",
            "<title>\(MarkupText.xml(title))</title>", TimelineSVGStyle.sheet,
            "<rect class=\"back\" width=\"\(width)\" height=\"\(height)\"/>",
        ]
        return (beginning + parts).joined(separator: "\n") + "\n</svg>\n"
    }

    /// What is to be known of the drawing, in lines that are not wider than it is.
    private var noteLines: [String] {
        let notes = [rows.isEmpty ? "No operations were recorded." : nil, timeline.droppedNote].compactMap { $0 }
        return notes.flatMap { note in
            // Words are set in letters of an average width, which is what they have.
            TerminalText.lines(
                of: note.split(separator: " ").map(String.init), separator: " ", cells: (width - 2 * Self.margin) / 7)
        }
    }

    private var left: Int { labelWidth + Self.margin }

    private func axis(bottom: Int) -> [String] {
        if rows.isEmpty { return [] }
        return scale.ticks(atMost: max(1, scale.length / 90)).flatMap { tick in
            let x = Double(left) + scale.place(tick.time)
            let place = TimelineSVGElement.number(x)
            // Text behind the last mark may have no room.
            let isAtEnd = x + Double(TimelineSVGElement.width(of: tick.text)) > Double(width)
            return [
                "<line class=\"grid\" x1=\"\(place)\" x2=\"\(place)\" y1=\"\(Self.axisHeight - 4)\" y2=\"\(bottom)\"/>",
                TimelineSVGElement.text(tick.text, x: x, y: 14, style: "faint", isAtEnd: isAtEnd),
            ]
        }
    }

    // MARK: - Rows

    private func segments(of position: Int) -> [TimelineSegment] {
        let entry = timeline.entries[position]
        return TimelineSegment.segments(
            of: entry, isComposite: entry.isComposite || index.hasChildren(position), end: timeline.duration)
    }

    /// Whether something begins before the right end, or is a moment there.
    private func isVisible(from: Duration, to: Duration) -> Bool {
        from < scale.end || from == scale.end && to <= from
    }

    private func endMark(of entry: OperationTimeline.Entry) -> TimelineSVGMark? {
        switch entry.outcome {
        case .failed: .failed
        case .cancelled: .cancelled
        case .success: nil
        case nil: entry.isUnfinished ? .unfinished : nil
        }
    }

    private mutating func bar(of position: Int, y: Int) -> [String] {
        let entry = timeline.entries[position]
        let name = { [index, timeline] (id: OperationID) in
            index.position(of: id).map { timeline.entries[$0].name } ?? "\(id)"
        }
        // The first step of an operation says why it began.
        let reason = steps[entry.id]?.first?.explanation(naming: name)
        var parts = ["<g><title>\(MarkupText.xml(timeline.details(of: entry, criticalReason: reason)))</title>"]
        parts.append(label(entry.name, depth: index.depths[position], y: y, style: nil))
        for segment in segments(of: position) where isVisible(from: segment.from, to: segment.to) {
            kinds.insert(segment.kind)
            let (top, height) = TimelineSVGStyle.extent(of: segment.kind)
            let (x, length) = extent(segment.from, segment.to)
            parts.append(
                TimelineSVGElement.rectangle(
                    TimelineSVGStyle.name(of: segment.kind), x: x, y: y + top, width: length, height: height))
        }
        var lastPixel = -1
        for retry in entry.retries where retry.time <= scale.end && Int(scale.place(retry.time)) != lastPixel {
            lastPixel = Int(scale.place(retry.time))
            marks.insert(.retry)
            parts.append(TimelineSVGMark.retry.element(x: Double(left + lastPixel), y: y))
        }
        parts += frames(of: entry.id, y: y)
        let end = entry.finished ?? timeline.duration
        if let mark = endMark(of: entry), end <= scale.end {
            marks.insert(mark)
            parts.append(mark.element(x: Double(left) + max(3, scale.place(end)), y: y))
        }
        parts.append("</g>")
        return parts
    }

    /// Operations that share a row: in each pixel as high as the number of those that work, compared with the most.
    private mutating func histogram(of positions: [Int], depth: Int, y: Int) -> [String] {
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
        let name = Self.name(of: positions)
        var parts = ["<g><title>\(name), at most \(most) working at the same time</title>"]
        parts.append(label(name, depth: depth, y: y, style: "faint"))
        var first = 0
        for pixel in counts.indices.dropFirst() where counts[pixel] != counts[first] {
            if counts[first] > 0 {
                kinds.insert(.executing)
                let height = max(2, 16 * min(counts[first], most) / most)
                parts.append(
                    TimelineSVGElement.rectangle(
                        TimelineSVGStyle.name(of: .executing), x: Double(left + first), y: y + 18 - height,
                        width: Double(pixel - first), height: height))
            }
            first = pixel
        }
        parts.append("</g>")
        return parts
    }

    /// What a row of operations that have none of their own is called.
    private static func name(of others: [Int]) -> String {
        others.count == 1 ? "1 other" : "\(others.count) others"
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
            frames.append(TimelineSVGMark.critical.element(x: x, y: y, width: length))
        }
        if !frames.isEmpty { marks.insert(.critical) }
        return frames
    }

    /// Lines from each step of the critical path to the next one: down or up when the first ends, and then along the
    /// wait of the second.
    private func pathLines(top: Int) -> [String] {
        var tops: [OperationID: Int] = [:]
        for (number, row) in rows.enumerated() {
            if case .operation(let position) = row {
                tops[timeline.entries[position].id] = top + number * Self.rowHeight
            }
        }
        return zip([nil] + path.map(Optional.some), path).compactMap { previous, step in
            guard let y = tops[step.operation], isVisible(from: step.from, to: step.to) else { return nil }
            let from = scale.place(step.from)
            let length = scale.place(begin(of: step)) - from
            var line = "M\(TimelineSVGElement.number(Double(left) + from)) "
            if let previous, previous.operation != step.operation {
                guard let other = tops[previous.operation] else { return nil }
                let isDown = other < y
                line += "\(isDown ? other + 18 : other + 2)V\(length >= 1 ? y + 10 : isDown ? y + 2 : y + 18)"
            } else if length >= 1 {
                line += "\(y + 10)"
            } else {
                return nil
            }
            if length >= 1 { line += "h\(TimelineSVGElement.number(length))" }
            return "<path class=\"path\" d=\"\(line)\"/>"
        }
    }

    // MARK: - Elements

    /// Where a part of a bar begins, and how long it is: at least a pixel, also at the right end.
    private func extent(_ from: Duration, _ to: Duration) -> (x: Double, length: Double) {
        let start = scale.place(from)
        return (Double(left) + min(start, Double(scale.length) - 1), max(1, scale.place(to) - start))
    }

    private func label(_ name: String, depth: Int, y: Int, style: String?) -> String {
        let room = labelWidth - Self.margin
        let indentation = min(depth * Self.indentation, room / 2)
        let isBlank = name.allSatisfy(\.isWhitespace)
        let text = TerminalText.cut(
            isBlank ? "unnamed" : TerminalText.printable(name), to: room - indentation,
            measure: TimelineSVGElement.width(of:))
        let style = isBlank ? "faint" : style
        return TimelineSVGElement.text(text, x: Double(Self.margin + indentation), y: y + 14, style: style)
    }
}
