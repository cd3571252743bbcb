/// The line at the bottom of the terminal while `files` runs.
struct ProgressBar {
    private static let width = 24

    /// - Parameters:
    ///   - total: How many files there will be, once that is known.
    ///   - columns: The bar never fills the last one: the terminal would begin a new line.
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
