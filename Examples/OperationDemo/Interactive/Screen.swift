/// The board on a terminal, below what was there before.
///
/// Used on one queue.
final class Screen {
    private let console: Console
    private var region = LiveRegion()
    private var hasEnded = false

    init(console: Console) {
        self.console = console
    }

    /// Draws the board, unless it looks as it did.
    func show(_ board: Board) {
        if hasEnded { return }
        let (columns, rows) = console.size
        let lines = board.lines(columns: columns - 1, rows: rows - 1, style: console.style)
        write(region.update(Array(lines.prefix(rows - 1))))
    }

    /// Clears the terminal: after a change of its size, lines may be anywhere.
    func clear() {
        region.leave()
        write("\u{1B}[2J\u{1B}[H")
    }

    /// Erases the board for a while.
    func erase() {
        write(region.erase())
    }

    /// Leaves the board as it is, for good.
    func end() {
        hasEnded = true
    }

    private func write(_ text: String) {
        if !text.isEmpty { console.write(text) }
    }
}
