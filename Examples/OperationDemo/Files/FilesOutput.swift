import Dispatch
import Foundation

/// Writes what `files` has counted: a line for each file as it comes, and on a terminal a progress bar below them.
///
/// Lines are gathered and written several times a second, or when there are many. So output keeps up with 100,000 files, and
/// what waits to be written is bounded.
final class FilesOutput: @unchecked Sendable {
    private static let interval = DispatchTimeInterval.milliseconds(80)
    private static let capacity = 1 << 15

    private let console: Console
    private let table: FilesTable
    private let timer = DispatchSource.makeTimerSource()
    private let lock = NSLock()
    private var summary = FilesSummary()
    private var unwritten: String
    private var total: Int?
    private var hasBar = false
    private var isEnded = false

    init(console: Console) {
        self.console = console
        table = FilesTable(style: console.style)
        unwritten = table.header + "\n"
        timer.schedule(deadline: .now(), repeating: Self.interval)
        timer.setEventHandler { [weak self] in self?.refresh() }
        timer.activate()
    }

    deinit {
        timer.cancel()
    }

    func add(_ count: FileCount) {
        lock.withLock {
            summary.add(count)
            unwritten += table.line(for: count) + "\n"
            if unwritten.utf8.count > Self.capacity { write() }
        }
    }

    /// Makes a bar of the figures: this is how many files there are.
    func expect(_ total: Int) {
        lock.withLock { self.total = total }
    }

    /// Writes what is left, the total and the table, in place of the bar.
    func end() {
        timer.cancel()
        lock.withLock {
            isEnded = true
            unwritten += table.total(of: summary) + "\n"
            for line in table.largest(of: summary) { unwritten += line + "\n" }
            write()
        }
    }

    private func refresh() {
        lock.withLock {
            if !isEnded { write() }
        }
    }

    /// With the lock held: lines must not come between a bar and its removal.
    private func write() {
        guard console.isTerminal else {
            if !unwritten.isEmpty { console.write(unwritten) }
            unwritten = ""
            return
        }
        var text = hasBar ? "\r\u{1B}[K" : ""
        text += unwritten
        hasBar = !isEnded
        if hasBar {
            text += ProgressBar.text(
                files: summary.files, bytes: summary.bytes, total: total, columns: console.columns,
                style: console.style)
        }
        unwritten = ""
        console.write(text)
    }
}
