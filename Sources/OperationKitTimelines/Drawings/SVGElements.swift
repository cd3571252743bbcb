import OperationKit

/// The texts, colors and shapes of the SVG drawing.
enum SVG {
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
        return "<text\(style) x=\"\(number(x))\" y=\"\(y)\"\(anchor)>\(text.xml)</text>"
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
        let cells = character.cells
        if cells < 2 { return cells == 0 ? 0 : character == "…" || character == "—" ? 12 : 9 }
        // Ideographs are as wide as the font is high, pictures are wider.
        return character.unicodeScalars.contains { $0.properties.isEmojiPresentation || $0 == "\u{FE0F}" } ? 16 : 13
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

    /// A bar or a mark in a row.
    ///
    /// - Parameters:
    ///   - mark: What it shows.
    ///   - x: The beginning of the bar, or the place of what is marked. For the critical path, the beginning of the frame.
    ///   - y: The top of the row.
    ///   - width: The width of the bar or the frame. Other marks have one of their own.
    /// - Returns: The element.
    static func element(_ mark: TimelineMark, x: Double, y: Int, width: Double = 0) -> String {
        let (left, top, width, height) =
            switch mark {
            case .pending: (0.0, 9, width, 2)
            case .waiting: (0.0, 6, width, 8)
            case .executing: (0.0, 4, width, 12)
            case .composite: (0.0, 7, width, 6)
            case .critical: (0.0, 2, width, 16)
            // As high as the bar, which it cuts in two.
            case .retry: (2.0, 4, 4.0, 12)
            case .failed, .cancelled, .skipped, .unfinished: (3.0, 2, 4.0, 16)
            }
        return "<rect class=\"\(mark.rawValue)\" x=\"\(number(x - left))\" y=\"\(y + top)\" width=\"\(number(width))\" "
            + "height=\"\(height)\"/>"
    }

    /// The legend of a drawing: a small bar for each kind and each mark that occurs, drawn as in the rows.
    ///
    /// - Parameters:
    ///   - marks: The kinds of bars and the marks that occur.
    ///   - width: The width of the drawing.
    ///   - margin: The distance of the legend from its edges.
    ///   - top: The top of its first line.
    ///   - rowHeight: The height of a line.
    /// - Returns: The elements, and how many lines they take.
    static func legend(
        of marks: Set<TimelineMark>, width: Int, margin: Int, top: Int, rowHeight: Int
    ) -> (elements: [String], lineCount: Int) {
        let barWidth = 16
        let bars: [TimelineMark] = [.pending, .waiting, .executing, .composite]
        var elements: [String] = []
        var (left, lineCount) = (margin, 0)
        for mark in bars + TimelineMark.allCases.filter({ !bars.contains($0) }) where marks.contains(mark) {
            let length = barWidth + 6 + Self.width(of: mark.title)
            if lineCount == 0 || left + length > width - margin { (left, lineCount) = (margin, lineCount + 1) }
            let (x, y, width) = (Double(left), top + (lineCount - 1) * rowHeight, Double(barWidth))
            let bar = bars.contains(mark) ? mark : mark == .skipped ? .pending : .executing
            elements.append(element(bar, x: x, y: y, width: width))
            if bar != mark {
                let place = mark == .critical ? x : mark == .retry ? x + width / 2 : x + width
                elements.append(element(mark, x: place, y: y, width: width))
            }
            elements.append(element(mark.title, x: x + width + 6, y: y + 14, style: "faint"))
            left += length + 12
        }
        return (elements, lineCount)
    }
}
