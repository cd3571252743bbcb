import OperationKit

/// Elements of an SVG document, and how much room their texts take.
enum TimelineSVGElement {
    static func rectangle(_ style: String, x: Double, y: Int, width: Double, height: Int) -> String {
        "<rect class=\"\(style)\" x=\"\(number(x))\" y=\"\(y)\" width=\"\(number(width))\" height=\"\(height)\"/>"
    }

    /// A text on one line.
    ///
    /// - Parameters:
    ///   - text: The text, as it is to be read.
    ///   - x: Where it begins, or ends.
    ///   - y: Its base line.
    ///   - style: The class of the element, if it has one.
    ///   - isAtEnd: Whether `x` is the end of the text.
    /// - Returns: The element.
    static func text(_ text: String, x: Double, y: Int, style: String? = nil, isAtEnd: Bool = false) -> String {
        let style = style.map { " class=\"\($0)\"" } ?? ""
        let anchor = isAtEnd ? " text-anchor=\"end\"" : ""
        return "<text\(style) x=\"\(number(x))\" y=\"\(y)\"\(anchor)>\(MarkupText.xml(text))</text>"
    }

    /// A number with at most one digit after the point.
    static func number(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    // MARK: - Widths

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
