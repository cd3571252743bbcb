#if os(macOS) || os(Linux)
import Foundation

/// Splits data that comes in parts into lines.
struct LineSplitter {
    /// A longer line comes in parts, so that memory is bounded.
    static let longestLine = 1 << 20

    private var rest: [UInt8] = []

    /// More data has come.
    ///
    /// - Returns: The lines that are complete, without their line breaks.
    mutating func append(_ data: some Sequence<UInt8>) -> [String] {
        var lines: [String] = []
        for byte in data {
            if byte == UInt8(ascii: "\n") {
                if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
                lines.append(take())
            } else {
                if rest.count >= Self.longestLine { lines.append(take()) }
                rest.append(byte)
            }
        }
        return lines
    }

    /// There is no more data.
    ///
    /// - Returns: The last line, if it has no line break.
    mutating func end() -> String? {
        rest.isEmpty ? nil : take()
    }

    private mutating func take() -> String {
        defer { rest.removeAll(keepingCapacity: true) }
        return String(decoding: rest, as: UTF8.self)
    }
}
#endif
