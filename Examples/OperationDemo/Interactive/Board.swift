import OperationKit
import OperationKitTimelines

/// What `--interactive` shows: bars, how many operations there are in each state, and the keys.
///
/// A pure function of a timeline. What is counted is what has a row, and what the lines above and below the rows say.
struct Board {
    /// The state of an operation, as its bar shows it.
    enum State {
        case waiting, working, finished

        init(_ entry: OperationTimeline.Entry) {
            if entry.finished != nil {
                self = .finished
            } else if entry.running != nil || (entry.started != nil && entry.waits.isEmpty) {
                self = .working
            } else {
                self = .waiting
            }
        }
    }

    /// How long a finished operation has a row: longer, and the others would be squeezed.
    private static let memory = Duration.seconds(20)
    /// Bars need as many columns.
    private static let fewestColumns = 20
    /// The time that bars begin with.
    private static let shortestScale = Duration.seconds(2)

    private let timeline: OperationTimeline
    private let settings: [String]
    private let choice: OperationID?
    /// The operations that are in no other with what is inside them, in the order of their addition.
    private let groups: [[OperationTimeline.Entry]]
    private let message: String
    private let showsHelp: Bool

    /// Creates a board.
    ///
    /// - Parameters:
    ///   - timeline: What happened.
    ///   - settings: What is to be said of the queue.
    ///   - choice: The operation that was chosen last.
    ///   - message: What the last key has done.
    ///   - showsHelp: Whether all keys are explained.
    init(
        _ timeline: OperationTimeline, settings: [String], choice: OperationID? = nil, message: String = "",
        showsHelp: Bool = false
    ) {
        self.timeline = timeline
        self.settings = settings
        self.choice = choice
        self.message = message
        self.showsHelp = showsHelp
        groups = timeline.entries.filter { $0.parent == nil }.sorted { $0.beginning < $1.beginning }.map {
            [$0] + timeline.entries(inside: $0.id).filter { $0.parent != nil }.sorted { $0.beginning < $1.beginning }
        }
    }

    // MARK: - Choosing

    /// The operation that a key would cancel: the one that was chosen, or else the first that has not finished.
    var chosen: OperationID? {
        let candidates = candidates
        return candidates.first { $0 == choice } ?? candidates.first
    }

    /// The operation above the chosen one, or below it.
    func neighbor(_ offset: Int) -> OperationID? {
        let candidates = candidates
        guard let place = candidates.firstIndex(where: { $0 == chosen }) else { return nil }
        return candidates[min(max(0, place + offset), candidates.count - 1)]
    }

    /// What can be cancelled: the work of naive operations cannot, they have finished.
    private var candidates: [OperationID] {
        groups.joined().filter { $0.finished == nil && $0.typeName != Track.workType }.map(\.id)
    }

    // MARK: - Drawing

    /// Returns the lines.
    ///
    /// - Parameters:
    ///   - columns: How wide a line may be.
    ///   - rows: How many lines there may be.
    ///   - style: Colors, or none.
    /// - Returns: The lines, the counts first and the keys last.
    func lines(columns: Int, rows: Int, style: Style) -> [String] {
        guard columns >= Self.fewestColumns else { return ["Too narrow".truncated(to: columns)] }
        let status = (settings + counts).wrapped(to: columns - 1, separator: ", ").map { style.inverse(" \($0)") }
        var foot = showsHelp ? Key.legend : Key.reminder.wrapped(to: columns, separator: "  ")
        if !message.isEmpty { foot = message.wrapped(to: columns) + foot }
        foot = foot.map { style.dim($0.truncated(to: columns)) }
        // The axis, the legend, and the lines that say how many others there are.
        let others = 3 + (columns < 60 ? 4 : 2)
        let window = window(rows: max(1, rows - status.count - foot.count - others))
        var body: [String] = []
        if window.earlier > 0 { body.append("… and \(window.earlier) earlier") }
        body += drawing(of: window.groups, columns: columns, rows: window.rows, style: style)
        if window.later > 0 { body.append("… and \(window.later) later") }
        return status + body + foot
    }

    private var counts: [String] {
        let states = groups.joined().map(State.init)
        return [(State.working, "working"), (.waiting, "waiting"), (.finished, "finished")].map { state, word in
            "\(states.count { $0 == state }) \(word)"
        }
    }

    private typealias Window = (groups: ArraySlice<[OperationTimeline.Entry]>, rows: Int, earlier: Int, later: Int)

    /// The newest operations that there is room for, the chosen one in any case.
    private func window(rows: Int) -> Window {
        func count(_ groups: ArraySlice<[OperationTimeline.Entry]>) -> Int { groups.reduce(0) { $0 + $1.count } }
        let oldest = timeline.duration - Self.memory
        let recent = groups.firstIndex { group in group.contains { ($0.finished ?? timeline.duration) >= oldest } }
        var (from, to) = (groups.count, groups.count)
        while from > recent ?? groups.count, count(groups[(from - 1)..<to]) <= rows { from -= 1 }
        if let chosen, let place = groups.firstIndex(where: { $0.contains { $0.id == chosen } }), place < from {
            from = place
            to = place + 1
            while to < groups.count, count(groups[from...to]) <= rows { to += 1 }
        }
        if from == to, let last = groups.indices.last, recent != nil { (from, to) = (last, last + 1) }
        return (groups[from..<to], rows, count(groups[..<from]), count(groups[to...]))
    }

    private func drawing(
        of groups: ArraySlice<[OperationTimeline.Entry]>, columns: Int, rows: Int, style: Style
    ) -> [String] {
        let entries = groups.joined()
        let chosen = chosen
        guard let beginning = entries.map(\.beginning).min() else { return ["Nothing is going on: add something."] }
        let shown = entries.map { entry in
            var entry = entry.shifted(by: .zero - beginning)
            entry.name = (entry.id == chosen ? "▸ " : "  ") + entry.name
            return entry
        }
        let now = timeline.duration - beginning
        let part = OperationTimeline(entries: shown, duration: shown.contains { $0.finished == nil } ? now : .zero)
        let end = max(Self.shortestScale, part.duration.roundTime)
        return part.text(columns: columns, maximumRows: rows, colors: style.isColored, end: end)
            .split(separator: "\n").map(String.init)
    }
}

extension OperationTimeline.Entry {
    /// The first time at which something happened.
    var beginning: Duration {
        [added, started, running, cancelled, finished].compactMap(\.self).min() ?? .zero
    }
}
