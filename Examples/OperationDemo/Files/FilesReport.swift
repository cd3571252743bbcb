import CommandLineSupport

/// The totals of all files so far and the largest of them. Its size does not depend on the number of files.
struct FilesSummary: Equatable, Sendable {
    static let largestCount = 10

    private(set) var files = 0
    private(set) var lines = 0
    private(set) var words = 0
    private(set) var bytes = 0
    /// In the order of their size, and of their path where that is equal.
    private(set) var largest: [FileCount] = []

    mutating func add(_ count: FileCount) {
        files += 1
        lines += count.lines
        words += count.words
        bytes += count.bytes

        let place = largest.firstIndex { Self.isLarger(count, than: $0) } ?? largest.count
        guard place < Self.largestCount else { return }
        largest.insert(count, at: place)
        if largest.count > Self.largestCount { largest.removeLast() }
    }

    private static func isLarger(_ left: FileCount, than right: FileCount) -> Bool {
        (right.bytes, left.path) < (left.bytes, right.path)
    }
}

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

/// The line at the bottom of the terminal while `files` runs.
struct ProgressBar {
    private static let width = 24

    /// Returns the line.
    ///
    /// - Parameters:
    ///   - files: The number of files counted so far.
    ///   - bytes: The number of bytes in them.
    ///   - total: How many files there will be, once that is known.
    ///   - columns: The width of the terminal. The bar never fills the last column: the terminal would begin a new
    ///     line.
    ///   - style: How the bar is set off from the figures.
    /// - Returns: The line, without a line break.
    static func text(files: Int, bytes: Int, total: Int?, columns: Int, style: Style) -> String {
        let size = Self.size(bytes)
        guard let total, total > 0 else {
            return "\(counted(files, "file")), \(size), looking for more".truncated(to: columns - 1)
        }
        // Files may come and go between the look ahead and the work.
        let done = min(files, total)
        let filled = done * width / total
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        let figures = " \("\(done * 100 / total)".indented(to: 3)) %  \(files) of \(counted(total, "file")), \(size)"
        guard columns > width + 1 else { return figures.truncated(to: columns - 1) }
        return style.accent(bar) + figures.truncated(to: columns - 1 - width)
    }

    private static func size(_ bytes: Int) -> String {
        var size = Double(bytes)
        for unit in ["bytes", "kB", "MB", "GB"] {
            if size < 1000 { return unit == "bytes" ? "\(bytes) bytes" : "\(tenths(size)) \(unit)" }
            size /= 1000
        }
        return "\(tenths(size)) TB"
    }

    private static func tenths(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded(.down))
        return "\(tenths / 10).\(tenths % 10)"
    }
}
