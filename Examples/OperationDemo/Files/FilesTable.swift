/// The lines that `files` prints: numbers in columns, the path last, so that any path fits.
struct FilesTable: Sendable {
    let style: Style

    var header: String {
        style.bold(row("lines", "words", "bytes", "cksum", "path"))
    }

    func line(for count: FileCount) -> String {
        row("\(count.lines)", "\(count.words)", "\(count.bytes)", "\(count.checksum)", count.path)
    }

    func total(of summary: FilesSummary) -> String {
        let name = "total of \(counted(summary.files, "file"))"
        return style.bold(row("\(summary.lines)", "\(summary.words)", "\(summary.bytes)", "", name))
    }

    /// Empty if there was no file.
    func largest(of summary: FilesSummary) -> [String] {
        if summary.largest.isEmpty { return [] }
        return ["", style.bold("The largest files:"), style.dim("  " + "bytes".indented(to: 12) + "    share  path")]
            + summary.largest.map { count in
                let bytes = "\(count.bytes)".indented(to: 12)
                return "  \(bytes)  \(Self.share(count.bytes, of: summary.bytes).indented(to: 7))  \(count.path)"
            }
    }

    private static func share(_ part: Int, of whole: Int) -> String {
        // In floating point: sparse files are larger than a thousandth of what an integer holds.
        let perMille = whole == 0 ? 0 : Int((Double(part) / Double(whole) * 1000).rounded())
        return "\(perMille / 10).\(perMille % 10) %"
    }

    private func row(_ lines: String, _ words: String, _ bytes: String, _ checksum: String, _ path: String) -> String {
        let numbers = [lines.indented(to: 8), words.indented(to: 9), bytes.indented(to: 12), checksum.indented(to: 11)]
        return numbers.joined(separator: " ") + "  " + path
    }
}
