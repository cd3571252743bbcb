/// Lines at the bottom of a terminal that are written again and again, in the same place.
///
/// That needs nothing of the terminal that would have to be undone. The lines must be narrower than the terminal, and
/// fewer than its rows: what has scrolled away cannot be written again.
struct LiveRegion {
    private var lines: [String] = []

    /// What to write so that the region consists of these lines. Empty if it does already.
    mutating func update(_ lines: [String]) -> String {
        if lines == self.lines { return "" }
        let up = start
        self.lines = lines
        return up + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
    }

    /// What to write so that the region is gone, and its place is free.
    mutating func erase() -> String {
        if lines.isEmpty { return "" }
        defer { lines = [] }
        return start + "\u{1B}[J"
    }

    /// Has the region begin below what is there: the terminal has been cleared, or the lines are to stay.
    mutating func leave() {
        lines = []
    }

    /// Brings the cursor to the beginning of the region.
    private var start: String {
        lines.isEmpty ? "\r" : "\r\u{1B}[\(lines.count)A"
    }
}
