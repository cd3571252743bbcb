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
    mutating func append(_ data: Data) -> [String] {
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
                    lines.append(take())
                }
                start = end + 1
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

    private mutating func add(_ bytes: UnsafeRawBufferPointer, to lines: inout [String]) {
        var start = 0
        while rest.count + bytes.count - start > Self.longestLine {
            let end = start + Self.longestLine - rest.count
            unsafe rest.append(contentsOf: bytes[start..<end])
            lines.append(take())
            start = end
        }
        unsafe rest.append(contentsOf: bytes[start...])
    }

    private mutating func take() -> String {
        defer { rest.removeAll(keepingCapacity: true) }
        return String(decoding: rest, as: UTF8.self)
    }
}
#endif
