import OperationKit

/// Names and other texts, in as little memory as their characters need.
///
/// A text that was added lately is found again, so that a few names for many operations take no memory. Copies share
/// what is not changed afterwards.
struct TimelineTexts: Sendable {
    /// Stands for a text. The number of a chunk, and a place in it.
    typealias Reference = UInt32

    /// How many bytes of a text are kept.
    static let longestText = 1_000

    private static let chunkSize = 1 << 16
    private static let lengthSize = 2
    private static let recentCount = 1_024

    /// Each text is its length, in two bytes, and then its UTF-8.
    private var chunks: [[UInt8]] = [[0, 0]]
    /// What was added last, by hash.
    private var recent = [Reference](repeating: 0, count: recentCount)

    /// Adds a text, unless it was added lately.
    ///
    /// - Parameter text: The text. If it is too long, its beginning is kept.
    /// - Returns: What stands for the text. That of the empty text is 0, and is what there is when there is no room
    ///   left.
    mutating func reference(to text: String) -> Reference {
        if text.isEmpty { return 0 }
        let text = text.utf8.count <= TimelineTexts.longestText ? text : Self.beginning(of: text)
        let slot = Int(UInt(bitPattern: text.hashValue) % UInt(Self.recentCount))
        if recent[slot] != 0, matches(recent[slot], text) { return recent[slot] }
        let length = text.utf8.count
        if chunks[chunks.count - 1].count + Self.lengthSize + length > Self.chunkSize {
            guard chunks.count < Self.chunkSize else { return 0 }
            chunks.append([])
            chunks[chunks.count - 1].reserveCapacity(Self.chunkSize)
        }
        let last = chunks.count - 1
        let reference = Reference(last << 16 | chunks[last].count)
        chunks[last].append(UInt8(length & 0xFF))
        chunks[last].append(UInt8(length >> 8))
        chunks[last].append(contentsOf: text.utf8)
        recent[slot] = reference
        return reference
    }

    subscript(reference: Reference) -> String {
        String(decoding: bytes(reference), as: UTF8.self)
    }

    /// Whether a reference stands for a text.
    func matches(_ reference: Reference, _ text: String) -> Bool {
        bytes(reference).elementsEqual(text.utf8)
    }

    private func bytes(_ reference: Reference) -> ArraySlice<UInt8> {
        let chunk = chunks[Int(reference >> 16)]
        let place = Int(reference & 0xFFFF)
        let length = Int(chunk[place]) | Int(chunk[place + 1]) << 8
        let start = place + Self.lengthSize
        return chunk[start..<start + length]
    }

    private static func beginning(of text: String) -> String {
        let mark = "…"
        var length = mark.utf8.count
        let scalars = text.unicodeScalars.prefix { scalar in
            length += UTF8.width(scalar)
            return length <= longestText
        }
        return String(scalars) + mark
    }
}
