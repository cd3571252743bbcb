import Foundation

/// A log that scrolls above a status line.
///
/// The status line is the last line, without a line break; to write a line, it is erased and written again below. That needs
/// nothing of the terminal that would have to be undone. Thread-safe.
final class Screen: @unchecked Sendable {
    private let console: Console
    private let lock = NSLock()
    private var tally = Tally()
    private var settings = ""
    private var isEnded = false

    init(console: Console) {
        self.console = console
    }

    func show(_ event: Event) {
        let line = EventLine(style: console.style).text(for: event)
        lock.withLock {
            tally.note(event)
            write(line + "\n")
        }
    }

    func print(_ lines: [String]) {
        lock.withLock { write(lines.map { $0 + "\n" }.joined()) }
    }

    func print(_ timeline: Timeline) {
        print(timeline.lines(columns: console.columns, style: console.style))
    }

    /// Changes what the status line says of the queue.
    func showSettings(_ text: String) {
        lock.withLock {
            settings = text
            write("")
        }
    }

    func redraw() {
        lock.withLock { write("") }
    }

    func clear() {
        lock.withLock { write("\u{1B}[2J\u{1B}[H") }
    }

    /// Erases the status line, for a while: what is written next brings it back.
    func eraseStatus() {
        lock.withLock { console.write("\r\u{1B}[K") }
    }

    /// Erases the status line for good. Later lines are not written.
    func end() {
        lock.withLock {
            isEnded = true
            console.write("\r\u{1B}[K")
        }
    }

    private func write(_ text: String) {
        if isEnded { return }
        let status = " \(settings), \(tally.text) | snacf add  xX cancel  ? keys  q quit "
        let line = status.truncated(to: console.columns - 1)
        let inverse = console.style.isColored ? "\u{1B}[7m\(line)\u{1B}[0m" : line
        console.write("\r\u{1B}[K" + text + inverse)
    }
}

/// How many operations wait and how many work, by their events.
struct Tally: Sendable {
    private var waiting: Set<Subject> = []
    private var working: Set<Subject> = []

    mutating func note(_ event: Event) {
        switch event.stage {
        case .enqueued:
            waiting.insert(event.subject)
        case .started:
            waiting.remove(event.subject)
            working.insert(event.subject)
        case .workFinished, .workFailed, .workCancelled:
            working.remove(event.subject)
        case .completion:
            waiting.remove(event.subject)
        case .progress, .mainReturned, .cancelCalled, .asyncCompletion:
            break
        }
    }

    var text: String {
        "\(working.count) working, \(waiting.count) waiting"
    }
}
