/// Text in the cells of a terminal, where some characters take two cells and others none.
enum TerminalText {
    /// How many cells a text takes.
    static func width(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + width($1) }
    }

    /// How many cells a character takes in most terminals.
    static func width(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        if first.isASCII { return character == "\r\n" ? 0 : 1 }
        // A variation selector asks for the picture of a character that would be text otherwise.
        if first.properties.isEmojiPresentation || character.unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        return wideScalars.contains { $0.contains(first.value) } ? 2 : 1
    }

    /// The scripts whose characters are as wide as they are high, from the East Asian widths of Unicode.
    private static let wideScalars: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1_F300...0x1_F64F, 0x1_F900...0x1_F9FF,
        0x2_0000...0x3_FFFD,
    ]

    /// A text without characters that could move the cursor or turn the text around: a mark stands in their place,
    /// and a space for breaks of lines.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnprintable) else { return text }
        var result = ""
        for character in text {
            guard character.unicodeScalars.contains(where: isUnprintable) else {
                result.append(character)
                continue
            }
            if character.isNewline || character == "\t" {
                result.append(" ")
            } else {
                result.unicodeScalars.append(
                    contentsOf: character.unicodeScalars.map { isUnprintable($0) ? "\u{FFFD}" : $0 })
            }
        }
        return result
    }

    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        // Joiners are part of characters.
        case .format: scalar != "\u{200C}" && scalar != "\u{200D}" && !scalar.properties.isVariationSelector
        default: false
        }
    }

    /// Cuts a text in the middle, where names differ least, so that it fits.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - room: How much room there is. By default, that is a number of cells.
    ///   - measure: How much room a character takes.
    /// - Returns: A text that takes at most so much room.
    static func cut(_ text: String, to room: Int, measure: (Character) -> Int = { width($0) }) -> String {
        guard text.reduce(0, { $0 + measure($1) }) > room else { return text }
        let left = room - measure("…")
        if left < 0 { return "" }
        let tail = fitting(text.reversed(), in: left / 2, measure)
        let head = fitting(text, in: left - left / 2, measure)
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

    /// A text with spaces behind it, so that it takes so many cells.
    static func padded(_ text: String, to cells: Int) -> String {
        text + String(repeating: " ", count: max(0, cells - width(text)))
    }

    /// Breaks words into lines of so many cells. A word that is longer has a line of its own, and is cut.
    ///
    /// - Parameters:
    ///   - words: Texts that stay together.
    ///   - separator: What is between two of them in a line.
    ///   - cells: How many cells there are.
    /// - Returns: The lines.
    static func lines(of words: [String], separator: String, cells: Int) -> [String] {
        words.reduce(into: []) { lines, word in
            let word = cut(word, to: cells)
            if let last = lines.last, width(last) + width(separator) + width(word) <= cells {
                lines[lines.count - 1] = last + separator + word
            } else {
                lines.append(word)
            }
        }
    }
}

/// Text inside XML and JSON documents.
enum MarkupText {
    /// A text as the content of an XML element, or inside the quotes of an attribute. What XML 1.0 has no room for is
    /// replaced.
    static func xml(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n": result += "&#10;"
            case "\t", "\r": result += " "
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// A text as a JSON string, with its quotes.
    static func json(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// A text inside the quotes of a DOT string, on one line.
    static func dot(_ text: String) -> String {
        var result = ""
        // Not by characters: a quote stays one in front of a combining mark.
        for scalar in TerminalText.printable(text).unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

/// Text inside Mermaid diagrams.
enum MermaidText {
    /// What a gantt chart takes for a statement at the beginning of a line.
    private static let keywords = [
        "gantt", "dateformat", "inclusiveenddates", "topaxis", "axisformat", "tickinterval", "includes", "excludes",
        "todaymarker", "weekday", "weekend", "title", "acctitle", "accdescr", "section", "click", "href", "call",
    ]

    /// The name of a task or a section. It is not empty, and not taken for a statement or a date.
    static func name(_ text: String) -> String {
        let text = String(TerminalText.printable(text).drop(while: \.isWhitespace))
        guard let first = text.unicodeScalars.first else { return "unnamed" }
        // Scalars, because a combining mark may follow.
        let lowercased = text.lowercased().unicodeScalars
        let isStatement =
            keywords.contains { lowercased.starts(with: $0.unicodeScalars) } || ("0"..."9").contains(first)
        guard isStatement else { return escaped(text) }
        return entity(first) + escaped(String(text.unicodeScalars.dropFirst()))
    }

    /// A text in which what has a meaning for Mermaid is an entity, and everything is in one line.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in TerminalText.printable(text).unicodeScalars {
            switch scalar {
            case ":", ";", "#", "%", "<", ">", "\"", "&", "{", "}", "[", "]", "`", "\\", "|": result += entity(scalar)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func entity(_ scalar: Unicode.Scalar) -> String { "#\(scalar.value);" }
}
