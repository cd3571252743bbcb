import Dispatch

/// Draws on a terminal while something happens, ten times a second.
///
/// Thread-safe.
final class LiveView: @unchecked Sendable {
    private static let interval = DispatchTimeInterval.milliseconds(100)

    /// In fewer columns, lines of a timeline would be broken.
    private static let fewestColumns = 20

    private let console: Console
    private let queue = DispatchQueue(label: "OperationDemo.LiveView")
    private let timer: any DispatchSourceTimer
    // Used on the queue.
    private var region = LiveRegion()
    private var hasEnded = false

    /// Begins to draw.
    ///
    /// - Parameters:
    ///   - console: A terminal.
    ///   - lines: Returns what is to be seen now, in this width and at most this height. Called on a queue of its own.
    init(console: Console, lines: @escaping @Sendable (_ columns: Int, _ rows: Int) -> [String]) {
        self.console = console
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: Self.interval)
        timer.setEventHandler { [weak self] in self?.draw(lines) }
        timer.activate()
    }

    /// Erases what was drawn. Nothing is drawn from now on.
    func end() {
        timer.cancel()
        queue.sync {
            hasEnded = true
            write(region.erase())
        }
    }

    private func draw(_ lines: (_ columns: Int, _ rows: Int) -> [String]) {
        if hasEnded { return }
        let (columns, rows) = console.size
        guard columns > Self.fewestColumns else { return }
        // A line that fills the last column, or one in the last row, would move what is above.
        write(region.update(Array(lines(columns - 1, rows - 1).prefix(rows - 1))))
    }

    private func write(_ text: String) {
        if !text.isEmpty { console.write(text) }
    }
}
