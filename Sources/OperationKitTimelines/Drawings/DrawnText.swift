/// The scripts whose characters are as wide as they are high, from the East Asian widths of Unicode.
private let wideScalars: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
    0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1_F300...0x1_F9FF, 0x2_0000...0x3_FFFD,
]

// MARK: - Cells of a terminal

extension Character {
    /// How many cells the character takes in most terminals: one, two or none.
    var cells: Int {
        let first = unicodeScalars[unicodeScalars.startIndex]
        if first.isASCII { return self == "\r\n" ? 0 : 1 }
        // A variation selector asks for the picture of a character that would be text otherwise.
        if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return wideScalars.contains { $0.contains(first.value) } ? 2 : 1
        }
    }
}

extension StringProtocol {
    /// How many cells of a terminal the text takes.
    var cells: Int { reduce(0) { $0 + $1.cells } }
}

extension String {
    /// The text with others in place of some of its scalars.
    ///
    /// All formats are escaped by scalars, not by characters: a quote stays one in front of a combining mark.
    ///
    /// - Parameter replacement: What stands for a scalar; `nil` for itself.
    /// - Returns: The text.
    private func replacingScalars(_ replacement: (Unicode.Scalar) -> String?) -> String {
        unicodeScalars.reduce(into: "") { text, scalar in
            if let other = replacement(scalar) { text += other } else { text.unicodeScalars.append(scalar) }
        }
    }

    /// The text without characters that could move the cursor or turn the text around: a mark stands in their place,
    /// and a space for breaks of lines.
    var printable: String {
        replacingScalars { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: scalar.properties.isWhitespace ? " " : "\u{FFFD}"
            // Joiners are part of characters.
            case .format where !scalar.properties.isJoinControl: "\u{FFFD}"
            default: nil
            }
        }
    }

    /// Cuts the text in the middle, where names differ least, so that it fits.
    ///
    /// - Parameters:
    ///   - room: How much room there is. By default, that is a number of cells.
    ///   - measure: How much room a character takes.
    /// - Returns: A text that takes at most so much room.
    func cut(to room: Int, measure: (Character) -> Int = \.cells) -> String {
        guard reduce(0, { $0 + measure($1) }) > room else { return self }
        let left = room - measure("…")
        if left < 0 { return "" }
        let tail = String.fitting(reversed(), in: left / 2, measure)
        let head = String.fitting(self, in: left - left / 2, measure)
        return String(head) + "…" + String(tail.reversed())
    }

    private static func fitting(
        _ characters: some Sequence<Character>, in room: Int, _ measure: (Character) -> Int
    ) -> [Character] {
        var left = room
        return characters.prefix { character in
            left -= measure(character)
            return left >= 0
        }
    }

    /// The text with spaces behind it, so that it takes so many cells.
    func padded(to count: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, count - cells))
    }

    /// The words of the text in lines of so many cells.
    func wrapped(to cells: Int) -> [String] {
        split(separator: " ").map(String.init).joined(by: " ", inLinesOf: cells)
    }
}

extension [String] {
    /// Joins texts that stay together into lines of so many cells. One that is longer has a line of its own, and is cut.
    ///
    /// - Parameters:
    ///   - separator: What is between two of them in a line.
    ///   - cells: How many cells there are.
    /// - Returns: The lines.
    func joined(by separator: String, inLinesOf cells: Int) -> [String] {
        reduce(into: []) { lines, word in
            let word = word.cut(to: cells)
            if let last = lines.last, last.cells + separator.cells + word.cells <= cells {
                lines[lines.count - 1] = last + separator + word
            } else {
                lines.append(word)
            }
        }
    }
}

// MARK: - Documents

extension String {
    /// The text as the content of an XML element, or inside the quotes of an attribute. What XML 1.0 has no room for is
    /// replaced.
    var xml: String {
        replacingScalars { scalar in
            switch scalar {
            case "&": "&amp;"
            case "<": "&lt;"
            case ">": "&gt;"
            case "\"": "&quot;"
            case "\n": "&#10;"
            case "\t", "\r": " "
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{FFFE}", "\u{FFFF}": "\u{FFFD}"
            default: nil
            }
        }
    }

    /// The text inside the quotes of a DOT string, on one line. Entities of HTML are known there.
    var dot: String {
        printable.replacingScalars { $0 == "\"" || $0 == "\\" ? "\\\($0)" : $0 == "&" ? "&amp;" : nil }
    }

    /// What a gantt chart of Mermaid takes for a statement at the beginning of a line.
    private static let keywords = [
        "gantt", "dateformat", "inclusiveenddates", "topaxis", "axisformat", "tickinterval", "includes", "excludes",
        "todaymarker", "weekday", "weekend", "title", "acctitle", "accdescr", "section", "click", "href", "call",
    ]

    /// The text as the name of a box, a task or a section of Mermaid. It is not empty, and not taken for a statement, a date or an
    /// item of a list.
    var mermaidName: String {
        let text = String(printable.drop(while: \.isWhitespace))
        guard let first = text.unicodeScalars.first else { return "unnamed" }
        // Scalars, because a combining mark may follow.
        let lowercased = text.lowercased().unicodeScalars
        let isStatement =
            String.keywords.contains { lowercased.starts(with: $0.unicodeScalars) }
            || "0123456789+-".unicodeScalars.contains(first)
        guard isStatement else { return text.mermaidEscaped }
        return "#\(first.value);" + String(text.unicodeScalars.dropFirst()).mermaidEscaped
    }

    /// The text with an entity for what has a meaning for Mermaid, in one line.
    var mermaidEscaped: String {
        printable.replacingScalars { ":;#%<>\"&{}[]`\\|*_".unicodeScalars.contains($0) ? "#\($0.value);" : nil }
    }
}
