import Foundation

extension String {
    /// The text cut to `width` characters, with an ellipsis for what is missing.
    func truncated(to width: Int) -> String {
        if count <= width { return self }
        return width < 1 ? "" : prefix(width - 1) + "…"
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

/// “1 file”, “2 files”.
func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }

    /// “0.4 s”.
    var inSeconds: String {
        let tenths = milliseconds / 100
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
