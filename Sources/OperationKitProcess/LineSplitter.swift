#if os(macOS) || os(Linux)
import Foundation

/// Splits data that comes in parts into lines. Used on the queue of a handler only.
final class LineSplitter: @unchecked Sendable {
    /// A longer line comes in parts, so that memory is bounded.
    static let longestLine = 1 << 20

    private var rest: [UInt8] = []

    /// More data has come.
    ///
    /// - Returns: The lines that are complete, without their line breaks.
    func append(_ data: Data) -> [String] {
        var lines: [String] = []
        unsafe data.withUnsafeBytes { bytes in
            var start = 0
            // A search by the system is quick in debug builds, too.
            while start < bytes.count, let first = bytes.baseAddress {
                let count = bytes.count - start
                let found = unsafe memchr(first + start, Int32(UInt8(ascii: "\n")), count)
                let end = unsafe found.map { unsafe UnsafeRawPointer($0) - first } ?? bytes.count
                unsafe add(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: &lines)
                if unsafe found != nil {
                    if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
                    lines.append(take(rest.count))
                }
                start = end + 1
            }
        }
        return lines
    }

    /// There is no more data.
    ///
    /// - Returns: The last line, if it has no line break.
    func end() -> String? {
        rest.isEmpty ? nil : take(rest.count)
    }

    private func add(_ bytes: UnsafeRawBufferPointer, to lines: inout [String]) {
        var start = 0
        while rest.count + bytes.count - start > Self.longestLine {
            let end = start + Self.longestLine + 1 - rest.count
            unsafe rest.append(contentsOf: bytes[start..<end])
            start = end
            // The next byte tells whether a carriage return belongs to the line break.
            if start == bytes.count, rest.last == UInt8(ascii: "\r") { return }
            lines.append(take(endOfPart))
        }
        unsafe rest.append(contentsOf: bytes[start...])
    }

    /// How long the part of a line is that is longer by one byte: it ends where a scalar begins.
    private var endOfPart: Int {
        let places = (Self.longestLine - 3...Self.longestLine).reversed()
        return places.first { rest[$0] & 0b1100_0000 != 0b1000_0000 } ?? Self.longestLine
    }

    private func take(_ count: Int) -> String {
        defer { rest.removeFirst(count) }
        return String(decoding: rest[..<count], as: UTF8.self)
    }
}
#endif
