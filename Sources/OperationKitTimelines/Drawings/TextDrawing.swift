import OperationKit

extension OperationTimeline {
    /// Draws the timeline as bars of text, with a line for each operation.
    ///
    /// ```text
    /// Sync      ◆ ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  3 s
    ///   login   ◆ ███████████                         1 s
    ///   page 1  ◆ ··········░░░██████████!            1.2 s
    ///   page 2    ···········███████×                 600 ms
    ///   index     ···················─
    ///             0 s        1 s         2 s       3 s
    /// ━ has children  █ executing  ░ waiting  · not started  ! failed  × cancelled
    /// ─ did not run  ◆ critical path
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
    ///   - maximumRows: How many operations there are lines for. If there are more, outer ones come before inner ones,
    ///     then those that failed or still execute, then earlier ones, and a line says how many others there are.
    ///   - colors: Whether the escape sequences of a terminal color the bars.
    ///   - end: The time at the right end. By default that is the end of this timeline; give two timelines the same
    ///     one to compare them.
    /// - Returns: The lines, separated by line breaks, without one at the end.
    public func text(
        columns: Int = 80, maximumRows: Int = 40, colors: Bool = false, end: Duration? = nil
    ) -> String {
        let drawing = TimelineTextDrawing(
            self, columns: min(max(20, columns), 10_000), maximumRows: maximumRows, colors: colors,
            end: end ?? duration)
        return drawing.lines.joined(separator: "\n")
    }
}

/// A timeline as lines of text.
private struct TimelineTextDrawing {
    /// From how many columns on a line ends with the time that the operation took.
    private static let columnsWithTimes = 60
    private static let timeWidth = 13

    private let timeline: OperationTimeline
    private let labelWidth: Int
    private let scale: TimelineScale
    private let colors: Bool
    private var used: Set<TimelineMark> = []
    private(set) var lines: [String] = []

    init(_ timeline: OperationTimeline, columns: Int, maximumRows: Int, colors: Bool, end: Duration) {
        let causes = TimelineCauses(timeline)
        let index = causes.index
        let rows = index.selection(atMost: maximumRows)
        let longest = rows.map { timeline.entries[$0].name.printable.cells + 2 * index.depths[$0] }.max() ?? 0
        labelWidth = min(max(longest, 1), columns * 2 / 5)
        let hasTimes = columns >= Self.columnsWithTimes
        scale = TimelineScale(end: end, length: columns - labelWidth - 3 - (hasTimes ? Self.timeWidth : 0))
        (self.timeline, self.colors) = (timeline, colors)

        let critical = Set(causes.criticalPath.map(\.operation))
        for position in rows {
            let entry = timeline.entries[position]
            // Deep down there would be no room for names.
            let indentation = min(2 * index.depths[position], labelWidth / 2)
            let label =
                String(repeating: " ", count: indentation) + entry.name.printable.cut(to: labelWidth - indentation)
            var line = label.padded(to: labelWidth)
            line += " " + (critical.contains(entry.id) ? painted([.critical]) : " ") + " "
            line += bar(of: entry)
            if hasTimes, let length = timeline.length(of: entry) { line += "  " + length.shortText }
            while line.last == " " { line.removeLast() }
            lines.append(line)
        }
        if !timeline.entries.isEmpty { lines.append(axis) }
        let legend = TimelineMark.allCases.filter(used.contains).map { "\($0.inTerminal.character) \($0.title)" }
        lines += legend.joined(by: "  ", inLinesOf: columns)
        lines += timeline.notes(omitting: timeline.entries.count - rows.count).flatMap { $0.wrapped(to: columns) }
    }

    private mutating func bar(of entry: OperationTimeline.Entry) -> String {
        var cells = [TimelineMark?](repeating: nil, count: scale.length)
        let segments = entry.segments(end: timeline.duration)
        // What comes later is drawn above what was before, so that short work after a long wait can be seen.
        for segment in segments where segment.from <= scale.end {
            for cell in scale.cells(segment.from, segment.to) { cells[cell] = segment.kind }
        }
        for retry in entry.retries where retry.time <= scale.end { cells[scale.cell(retry.time)] = .retry }
        let end = timeline.end(of: entry)
        if end <= scale.end, let mark = TimelineMark(ofEndOf: entry) {
            cells[scale.cells(segments[0].from, end).upperBound] = mark
        }
        return painted(cells)
    }

    /// The characters of marks, in their colors.
    private mutating func painted(_ marks: [TimelineMark?]) -> String {
        used.formUnion(marks.lazy.compactMap { $0 })
        return marks.reduce(into: "") { text, mark in
            guard let (character, color) = mark?.inTerminal else { return text += " " }
            text += colors ? "\u{1B}[\(color)m\(character)\u{1B}[0m" : "\(character)"
        }
    }

    private var axis: String {
        var (text, length) = ("", 0)
        for tick in scale.ticks(atMost: scale.length / 9) {
            // The last mark ends where the bars do, if it would be longer.
            let position = labelWidth + 3 + min(Int(scale.place(tick.time)), scale.length - tick.text.cells)
            guard text.isEmpty || position > length + 1 else { continue }
            text += "".padded(to: position - length) + tick.text
            length = position + tick.text.cells
        }
        return text
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
