import OperationKit

/// Texts of an SVG document, and how much room they take.
enum SVGText {
    /// A text on one line.
    ///
    /// - Parameters:
    ///   - text: The text, as it is to be read.
    ///   - x: Where it begins, or ends.
    ///   - y: Its base line.
    ///   - style: The class of the element, if it has one.
    ///   - isAtEnd: Whether `x` is the end of the text.
    /// - Returns: The element.
    static func element(_ text: String, x: Double, y: Int, style: String? = nil, isAtEnd: Bool = false) -> String {
        let style = style.map { " class=\"\($0)\"" } ?? ""
        let anchor = isAtEnd ? " text-anchor=\"end\"" : ""
        return "<text\(style) x=\"\(number(x))\" y=\"\(y)\"\(anchor)>\(MarkupText.xml(text))</text>"
    }

    /// A number with at most one digit after the point.
    static func number(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    /// How wide a text is at most, in pixels, in the usual fonts of systems.
    static func width(of text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + width(of: $1) }
    }

    /// How wide a character is at most, in pixels. The font is not known, so this is that of the widest usual one.
    static func width(of character: Character) -> Int {
        if character.isASCII {
            switch character {
            case "i", "j", "l", "I", "J", "|", "!", ".", ",", ":", ";", "'", "/", " ": return 4
            case "f", "r", "t", "-", "(", ")", "[", "]", "\"", "`": return 5
            case "m", "w", "M", "W", "@", "%": return 12
            case "#", "&", "+", "<", "=", ">", "^", "~": return 11
            case "A"..."Z": return 9
            default: return 8
            }
        }
        let cells = TerminalText.width(character)
        if cells < 2 { return cells == 0 ? 0 : character == "…" || character == "—" ? 12 : 9 }
        // Ideographs are as wide as the font is high, pictures are wider.
        return character.unicodeScalars.contains { $0.properties.isEmojiPresentation || $0 == "\u{FE0F}" } ? 16 : 13
    }
}

/// The colors and shapes of the SVG drawing.
enum SVGStyle {
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

    /// A bar in a row whose top is at `y`.
    static func bar(_ kind: TimelineSegment.Kind, x: Double, y: Int, width: Double) -> String {
        let (top, height) =
            switch kind {
            case .pending: (9, 2)
            case .waiting: (6, 8)
            case .executing: (4, 12)
            case .composite: (7, 6)
            }
        return rectangle("\(kind)", x: x, y: y + top, width: width, height: height)
    }

    static func rectangle(_ style: String, x: Double, y: Int, width: Double, height: Int) -> String {
        "<rect class=\"\(style)\" x=\"\(SVGText.number(x))\" y=\"\(y)\" width=\"\(SVGText.number(width))\" "
            + "height=\"\(height)\"/>"
    }
}

/// What is marked in a drawing, besides the bars.
enum SVGMark: String, CaseIterable, Sendable {
    case retry, failed, cancelled, skipped, unfinished, critical

    /// The mark of how an operation ended; `nil` for success.
    init?(of entry: OperationTimeline.Entry) {
        switch entry.outcome {
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        case .skipped: self = .skipped
        case nil where entry.isUnfinished: self = .unfinished
        case .success, nil: return nil
        }
    }

    /// What the mark is called in the legend.
    var title: String {
        switch self {
        case .retry: "tried again"
        case .skipped: "did not run"
        case .critical: "critical path"
        case .failed, .cancelled, .unfinished: rawValue
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
        case .retry: SVGStyle.rectangle(rawValue, x: x - 2, y: y + 4, width: 4, height: 12)
        case .failed, .cancelled, .skipped, .unfinished:
            SVGStyle.rectangle(rawValue, x: x - 3, y: y + 2, width: 4, height: 16)
        case .critical: SVGStyle.rectangle(rawValue, x: x, y: y + 2, width: width, height: 16)
        }
    }
}

/// The legend of a drawing: a small bar for each kind and each mark that occurs, drawn as in the rows.
struct SVGLegend {
    private static let barWidth = 16
    private static let rowHeight = 20

    /// How many lines it takes.
    private(set) var lineCount = 0
    private var items: [(kind: TimelineSegment.Kind, mark: SVGMark?, title: String, x: Int, line: Int)] = []

    /// - Parameters:
    ///   - kinds: The kinds of bars that occur.
    ///   - marks: The marks that occur.
    ///   - width: The width of the drawing.
    ///   - margin: The distance of the legend from its edges.
    init(kinds: Set<TimelineSegment.Kind>, marks: Set<SVGMark>, width: Int, margin: Int) {
        var x = margin
        func place(_ kind: TimelineSegment.Kind, _ mark: SVGMark?) {
            let title = mark?.title ?? kind.title
            let length = Self.barWidth + 6 + SVGText.width(of: title)
            if lineCount == 0 || x + length > width - margin { (x, lineCount) = (margin, lineCount + 1) }
            items.append((kind, mark, title, x, lineCount - 1))
            x += length + 12
        }
        for kind in TimelineSegment.Kind.allCases where kinds.contains(kind) { place(kind, nil) }
        for mark in SVGMark.allCases where marks.contains(mark) {
            place(mark == .skipped ? .pending : .executing, mark)
        }
    }

    /// The elements of the legend.
    ///
    /// - Parameter top: The top of its first line.
    /// - Returns: The elements.
    func elements(top: Int) -> [String] {
        items.flatMap { item -> [String] in
            let y = top + item.line * Self.rowHeight
            let (x, width) = (Double(item.x), Double(Self.barWidth))
            let bar = SVGStyle.bar(item.kind, x: x, y: y, width: width)
            let label = SVGText.element(item.title, x: x + width + 6, y: y + 14, style: "faint")
            let mark = item.mark.map { mark in
                mark.element(
                    x: mark == .critical ? x : mark == .retry ? x + width / 2 : x + width, y: y, width: width)
            }
            return [bar] + (mark.map { [$0] } ?? []) + [label]
        }
    }
}
