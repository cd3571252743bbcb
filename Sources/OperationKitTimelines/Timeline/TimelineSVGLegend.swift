import OperationKit

/// What is marked in a drawing, besides the bars.
enum TimelineSVGMark: String, CaseIterable, Sendable {
    case retry, failed, cancelled, unfinished, critical

    /// What the mark is called in the legend.
    var title: String {
        switch self {
        case .retry: "tried again"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .unfinished: "unfinished"
        case .critical: "critical path"
        }
    }

    /// The mark in a row, as wide as in any bar.
    ///
    /// - Parameters:
    ///   - x: The place of what is marked. For the critical path, the beginning of the frame.
    ///   - y: The top of the row.
    ///   - width: The width of the frame of the critical path. Other marks have one of their own.
    /// - Returns: The element.
    func element(x: Double, y: Int, width: Double = 0) -> String {
        switch self {
        // As high as the bar, which it cuts in two.
        case .retry: TimelineSVGElement.rectangle(rawValue, x: x - 2, y: y + 4, width: 4, height: 12)
        case .failed, .cancelled, .unfinished:
            TimelineSVGElement.rectangle(rawValue, x: x - 3, y: y + 2, width: 4, height: 16)
        case .critical: TimelineSVGElement.rectangle(rawValue, x: x, y: y + 2, width: width, height: 16)
        }
    }
}

/// The legend of a drawing: a small bar for each kind and each mark that occurs, drawn as in the rows.
struct TimelineSVGLegend {
    private static let barWidth = 16
    private static let rowHeight = 20

    private enum Item {
        case kind(TimelineSegment.Kind)
        case mark(TimelineSVGMark)

        var title: String {
            switch self {
            case .kind(let kind): kind.title
            case .mark(let mark): mark.title
            }
        }
    }

    /// How many lines it takes.
    let lineCount: Int
    private let items: [(item: Item, x: Int, line: Int)]

    /// - Parameters:
    ///   - kinds: The kinds of bars that occur.
    ///   - marks: The marks that occur.
    ///   - width: The width of the drawing.
    ///   - margin: The distance of the legend from its edges.
    init(kinds: Set<TimelineSegment.Kind>, marks: Set<TimelineSVGMark>, width: Int, margin: Int) {
        let shown =
            TimelineSegment.Kind.allCases.filter(kinds.contains).map(Item.kind)
            + TimelineSVGMark.allCases.filter(marks.contains).map(Item.mark)
        var (x, line) = (margin, 0)
        items = shown.map { item in
            let length = Self.barWidth + 6 + TimelineSVGElement.width(of: item.title)
            if x > margin, x + length > width - margin { (x, line) = (margin, line + 1) }
            defer { x += length + 12 }
            return (item, x, line)
        }
        lineCount = items.isEmpty ? 0 : line + 1
    }

    /// The elements of the legend.
    ///
    /// - Parameter top: The top of its first line.
    /// - Returns: The elements.
    func elements(top: Int) -> [String] {
        items.flatMap { item, x, line in
            let y = top + line * Self.rowHeight
            let label = TimelineSVGElement.text(
                item.title, x: Double(x + Self.barWidth + 6), y: y + 14, style: "faint")
            switch item {
            case .kind(let kind): return [bar(of: kind, x: x, y: y), label]
            case .mark(let mark):
                let place = Double(mark == .critical ? x : mark == .retry ? x + Self.barWidth / 2 : x + Self.barWidth)
                return [
                    bar(of: .executing, x: x, y: y),
                    mark.element(x: place, y: y, width: Double(Self.barWidth)), label,
                ]
            }
        }
    }

    private func bar(of kind: TimelineSegment.Kind, x: Int, y: Int) -> String {
        let (top, height) = TimelineSVGStyle.extent(of: kind)
        return TimelineSVGElement.rectangle(
            TimelineSVGStyle.name(of: kind), x: Double(x), y: y + top, width: Double(Self.barWidth), height: height)
    }
}
