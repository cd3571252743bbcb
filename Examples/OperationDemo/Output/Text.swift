import Foundation

extension String {
    /// The text cut to `width` characters, with an ellipsis for what is missing.
    func truncated(to width: Int) -> String {
        if count <= width { return self }
        return width < 1 ? "" : prefix(width - 1) + "…"
    }

    /// The text cut to `width` characters in the middle: names differ most at their ends.
    func cutInTheMiddle(to width: Int) -> String {
        if count <= width { return self }
        if width < 2 { return width < 1 ? "" : "…" }
        return prefix(width / 2) + "…" + suffix(width - 1 - width / 2)
    }

    /// The text in lines of at most `width` characters, as far as its words allow.
    func wrapped(to width: Int) -> [String] {
        let indentation = String(prefix { $0 == " " })
        let words = split(separator: " ").map(String.init)
        return words.wrapped(to: width - indentation.count, separator: " ").map { indentation + $0 }
    }

    /// The text with control characters spelled out, so that a file's name can neither break a line nor command the terminal.
    var printable: String {
        if unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.properties.generalCategory == .control {
                text += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }
}

extension [String] {
    /// The texts in lines of at most `width` characters, each text in one line.
    func wrapped(to width: Int, separator: String) -> [String] {
        reduce(into: []) { lines, text in
            if let last = lines.last, last.count + separator.count + text.count <= width {
                lines[lines.count - 1] = last + separator + text
            } else {
                lines.append(text)
            }
        }
    }
}

/// “1 file”, “2 files”.
func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
