/// Counts what `wc` counts, and computes the checksum that `cksum` prints, chunk by chunk.
///
/// A line is a newline character; a word is a run of bytes other than ASCII white space. A word may go across chunks.
struct TextCounter: Sendable {
    private(set) var lines = 0
    private(set) var words = 0
    private(set) var bytes = 0
    private var crc: UInt32 = 0
    private var isInWord = false

    mutating func count(_ chunk: [UInt8]) {
        for byte in chunk { count(byte) }
    }

    /// The checksum of all bytes so far, as POSIX defines it for `cksum`: the length counts, too.
    var checksum: UInt32 {
        var crc = crc
        var length = bytes
        while length > 0 {
            crc = Self.updated(crc, with: UInt8(truncatingIfNeeded: length))
            length >>= 8
        }
        return ~crc
    }

    private mutating func count(_ byte: UInt8) {
        bytes &+= 1
        crc = Self.updated(crc, with: byte)
        switch byte {
        case 0x0A:
            lines &+= 1
            isInWord = false
        case 0x20, 0x09, 0x0B, 0x0C, 0x0D:
            isInWord = false
        default:
            if !isInWord { words &+= 1 }
            isInWord = true
        }
    }

    private static func updated(_ crc: UInt32, with byte: UInt8) -> UInt32 {
        crc &<< 8 ^ table[Int(UInt8(truncatingIfNeeded: crc &>> 24) ^ byte)]
    }

    /// The remainders of all bytes for the polynomial 0x04C11DB7, the highest bit first.
    private static let table: [UInt32] = (0..<256).map { (byte: UInt32) in
        (0..<8).reduce(byte << 24) { crc, _ in crc & 0x8000_0000 == 0 ? crc << 1 : crc << 1 ^ 0x04C1_1DB7 }
    }
}
