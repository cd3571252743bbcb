import OperationKit

extension OperationTimeline {
    /// Draws the timeline as bars of text, with a line for each operation.
    ///
    /// ```text
    /// Sync      ◆ ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  3 s
    ///   login   ◆ ███████████                         1 s
    ///   page 1  ◆ ··········░░░██████████!            1.2 s
    ///   page 2    ···········███████×                 600 ms
    ///   index     ···················─                did not run
    ///             0 s        1 s         2 s       3 s
    /// ━ has children  █ executing  ░ waiting  · not started  ! failed  × cancelled  ◆ critical path
    /// ```
    ///
    /// Children are indented below their composite. Names are cut in the middle. The legend explains the marks that
    /// occur. All states can be told apart without colors. It needs a font of fixed width that has the characters
    /// above. Characters in names that could move the cursor are replaced.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameters:
    ///   - columns: How wide a line may be. Below 20 it counts as 20.
    ///   - maximumRows: How many operations there are lines for. If there are more, outer ones come before inner ones
    ///     and earlier ones before later ones, and a line says how many others there are.
    ///   - colors: Whether the escape sequences of a terminal color the bars.
    ///   - end: The time at the right end. By default that is the end of this timeline; give two timelines the same
    ///     one to compare them.
    /// - Returns: The lines, separated by line breaks, without one at the end.
    public func text(
        columns: Int = 80, maximumRows: Int = 40, colors: Bool = false, end: Duration? = nil
    ) -> String {
        if entries.isEmpty {
            let notes = ["No operations were recorded."] + (droppedNote.map { [$0] } ?? [])
            return notes.joined(separator: "\n")
        }
        return TimelineTextDrawing(
            self, columns: min(max(20, columns), 10_000), maximumRows: max(1, maximumRows), colors: colors,
            end: min(end ?? duration, .latest)
        ).lines.joined(separator: "\n")
    }

    /// Says in drawings that not all operations are there.
    var droppedNote: String? {
        switch droppedCount {
        case 0: nil
        case 1: "1 other operation was not recorded."
        default: "\(droppedCount) other operations were not recorded."
        }
    }
}

/// A timeline as lines of text.
struct TimelineTextDrawing {
    /// From how many columns on a line ends with the time that the operation took.
    private static let columnsWithTimes = 60
    private static let timeWidth = 12

    private let timeline: OperationTimeline
    private let index: TimelineIndex
    private let columns: Int
    private let labelWidth: Int
    private let scale: TimelineScale
    private let colors: Bool
    private var used: Set<TimelineMark> = []
    private(set) var lines: [String] = []

    init(_ timeline: OperationTimeline, columns: Int, maximumRows: Int, colors: Bool, end: Duration) {
        let index = TimelineIndex(timeline.entries)
        let rows = index.selection(atMost: maximumRows)
        let labels = rows.map { position in
            (timeline.entries[position].name.printable, index.depths[position])
        }
        let longest = labels.map { $0.0.cells + 2 * $0.1 }.max() ?? 0
        labelWidth = min(max(longest, 1), columns * 2 / 5)
        let hasTimes = columns >= Self.columnsWithTimes
        scale = TimelineScale(end: end, length: columns - labelWidth - 3 - (hasTimes ? Self.timeWidth : 0))
        (self.timeline, self.index, self.columns, self.colors) = (timeline, index, columns, colors)

        let critical = Set(timeline.criticalPath(index).map(\.operation))
        for (position, label) in zip(rows, labels) {
            let entry = timeline.entries[position]
            var line = labelText(label.0, depth: label.1)
            line += " " + (critical.contains(entry.id) ? painted([.critical]) : " ") + " "
            line += bar(of: position)
            if hasTimes { line += time(of: entry) }
            lines.append(trimmed(line))
        }
        let others = timeline.entries.count - rows.count
        if others > 0 { lines.append(others == 1 ? "… and 1 other" : "… and \(others) others") }
        lines.append(axis)
        let legend = TimelineMark.allCases.filter(used.contains).map { "\($0.inTerminal.character) \($0.title)" }
        lines += legend.joined(by: "  ", inLinesOf: columns)
        lines += timeline.droppedNote?.wrapped(to: columns) ?? []
    }

    private func labelText(_ name: String, depth: Int) -> String {
        // Deep down there would be no room for names.
        let indentation = min(2 * depth, labelWidth / 2)
        let text = String(repeating: " ", count: indentation) + name.cut(to: labelWidth - indentation)
        return text.padded(to: labelWidth)
    }

    private mutating func bar(of position: Int) -> String {
        let entry = timeline.entries[position]
        var cells = [TimelineMark?](repeating: nil, count: scale.length)
        let segments = TimelineSegment.segments(of: entry, end: timeline.duration)
        // What comes later is drawn above what was before, so that short work after a long wait can be seen.
        for segment in segments where segment.from <= scale.end {
            for cell in scale.cells(segment.from, segment.to) {
                cells[cell] = segment.kind
            }
        }
        for retry in entry.retries where retry.time <= scale.end { cells[scale.cell(retry.time)] = .retry }
        let last = scale.cells(segments[0].from, entry.finished ?? timeline.duration).upperBound
        if segments[0].from <= scale.end {
            cells[last] = TimelineMark(ofEndOf: entry) ?? cells[last]
        }
        return painted(cells)
    }

    private func time(of entry: OperationTimeline.Entry) -> String {
        if case .skipped = entry.outcome { return "" }
        guard let start = entry.started ?? entry.running else { return "" }
        return "  " + ((entry.finished ?? timeline.duration) - start).shortText
    }

    /// The characters of marks, in their colors.
    private mutating func painted(_ marks: [TimelineMark?]) -> String {
        used.formUnion(marks.lazy.compactMap { $0 })
        var text = ""
        var current: Int?
        for mark in marks {
            let look = mark?.inTerminal
            if colors, look?.color != current {
                if current != nil { text += "\u{1B}[0m" }
                current = look?.color
                if let current { text += "\u{1B}[\(current)m" }
            }
            text.append(look?.character ?? " ")
        }
        return current == nil ? text : text + "\u{1B}[0m"
    }

    private var axis: String {
        var text = ""
        let start = labelWidth + 3
        for tick in scale.ticks(atMost: max(1, scale.length / 9)) {
            let place = start + Int(scale.place(tick.time))
            // The last mark ends where the bars do, if it would be longer.
            let room = start + scale.length
            let position = min(place, room - tick.text.cells)
            guard text.isEmpty || position > text.cells + 1 else { continue }
            text = text.padded(to: position) + tick.text
        }
        return text
    }

    private func trimmed(_ line: String) -> String {
        var line = line[...]
        while line.last == " " { line.removeLast() }
        return String(line)
    }
}

extension TimelineMark {
    /// The character in a bar, and the parameter of the escape sequence for its color.
    fileprivate var inTerminal: (character: Character, color: Int) {
        switch self {
        case .composite: ("━", 36)
        case .executing: ("█", 32)
        case .waiting: ("░", 33)
        case .pending: ("·", 90)
        case .retry: ("↻", 33)
        case .failed: ("!", 31)
        case .cancelled: ("×", 35)
        case .skipped: ("─", 90)
        case .unfinished: ("▶", 34)
        case .critical: ("◆", 1)
        }
    }
}
