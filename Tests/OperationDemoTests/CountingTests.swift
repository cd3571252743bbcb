import Testing

@testable import OperationDemo

/// The counting, without files or threads.
@Suite struct CountingTests {
    private static func count(_ chunks: [[UInt8]]) -> [Int] {
        var counter = TextCounter()
        for chunk in chunks { counter.count(chunk) }
        return [counter.lines, counter.words, counter.bytes, Int(counter.checksum)]
    }

    // The checksums are those that `cksum` prints.
    @Test(
        "Lines, words, bytes and checksums are those that the system counts",
        arguments: [
            ("", [0, 0, 0, 4_294_967_295]),
            ("\n", [1, 0, 1, 3_515_105_045]),
            ("123456789", [0, 1, 9, 930_766_865]),
            (" two \t words \n\r\u{0B}\u{0C}three\n", [2, 3, 23, 0]),
            ("no newline at the end", [0, 5, 21, 0]),
            ("é – ü", [0, 3, 9, 0]),
        ])
    func counts(text: String, expected: [Int]) {
        let counted = Self.count([Array(text.utf8)])
        #expect(counted.prefix(3) == expected.prefix(3))
        if expected[3] != 0 { #expect(counted[3] == expected[3]) }
    }

    @Test("The chunks in which a text comes do not matter") func chunks() {
        let bytes = Array("one two\nthree  four\n\nfive".utf8)
        let whole = Self.count([bytes])
        for cut in 0...bytes.count {
            #expect(Self.count([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole)
        }
        #expect(Self.count(bytes.map { [$0] }) == whole)
    }

    @Test("The summary adds up all files and keeps the ten largest, by size and path") func summary() {
        var summary = FilesSummary()
        for number in (0..<100).shuffled() {
            let name = number < 10 ? "0\(number)" : "\(number)"
            summary.add(FileCount(path: name, lines: 1, words: 2, bytes: number / 2, checksum: 0))
        }
        #expect(summary.files == 100)
        #expect(summary.lines == 100)
        #expect(summary.words == 200)
        #expect(summary.bytes == 2450)
        #expect(summary.largest.map(\.path) == ["98", "99", "96", "97", "94", "95", "92", "93", "90", "91"])
    }

    @Test("The progress bar fits its terminal") func progressBar() {
        for columns in 2...120 {
            for total in [nil, 0, 10, 1_000_000] {
                let text = ProgressBar.text(
                    files: 7, bytes: 123_456_789_012, total: total, columns: columns, style: .plain)
                #expect(text.count < columns)
            }
        }
        let half = ProgressBar.text(files: 5, bytes: 1500, total: 10, columns: 80, style: .plain)
        #expect(
            half == String(repeating: "█", count: 12) + String(repeating: "░", count: 12)
                + "  50 %  5 of 10 files, 1.5 kB")
    }
}
