import CommandLineSupport

/// The events of a section as bars, one row for each operation, in the order of their first events.
///
/// A pure function of the events. In a bar, `█` is work within the life of the operation, `░` work that goes on after its
/// completion, `·` waiting in the queue; `|` marks the completion.
struct Timeline {
    /// What a row is drawn from, in milliseconds.
    private struct Row {
        let subject: Subject
        var enqueued: Int
        var started: Int?
        var workEnd: (time: Int, stage: Stage)?
        var completion: Int?
    }

    static let legend = "· waiting   █ working   ░ still working after its completion   | completion"

    private let rows: [Row]
    private let end: Int

    /// Creates the timeline of a section.
    ///
    /// - Parameters:
    ///   - events: The events of the section, in the order in which they happened.
    ///   - now: Where bars end that have not ended yet; not given, the time of the last event.
    init(_ events: [Event], until now: Duration? = nil) {
        var rows: [Row] = []
        var indices: [Subject: Int] = [:]
        for event in events {
            let time = event.time.milliseconds
            let index = indices[event.subject] ?? rows.count
            if index == rows.count {
                indices[event.subject] = index
                rows.append(Row(subject: event.subject, enqueued: time))
            }
            switch event.stage {
            case .started: rows[index].started = time
            case .workFinished, .workFailed, .workCancelled: rows[index].workEnd = (time, event.stage)
            case .completion: rows[index].completion = time
            case .enqueued, .progress, .mainReturned, .cancelCalled, .asyncCompletion: break
            }
        }
        self.rows = rows
        end = max(1, (now ?? events.last?.time ?? .zero).milliseconds)
    }

    /// The rows, an axis and the legend; nothing if there is no event.
    func lines(columns: Int, style: Style) -> [String] {
        if rows.isEmpty { return [] }
        let nameWidth = min(16, rows.map(\.subject.name.count).max() ?? 0)
        // Two spaces before the name and after it, and room for the mark and the outcome after the bar.
        let barWidth = min(120, max(20, columns - nameWidth - 4 - 12))
        var lines = rows.map { row in
            let name = row.subject.name.truncated(to: nameWidth).padded(to: nameWidth)
            let bar = bar(row, width: barWidth)
            guard let outcome = outcome(row) else {
                return "  " + style.paint(name + "  " + bar.withoutTrailingSpaces, for: row.subject)
            }
            return "  " + style.paint(name + "  " + bar, for: row.subject) + "  " + style.warning(outcome)
        }
        let axis = "0" + "\(end) ms".indented(to: barWidth)
        lines.append(style.dim(String(repeating: " ", count: nameWidth + 4) + axis))
        lines.append("  " + style.dim(Self.legend.truncated(to: columns - 2)))
        return lines
    }

    private func bar(_ row: Row, width: Int) -> String {
        let column = { (time: Int) in min(width - 1, time * width / end) }
        var cells = [Character](repeating: " ", count: width + 1)
        func fill(_ range: Range<Int>, _ character: Character) {
            for cell in range { cells[cell] = character }
        }
        func span(_ from: Int, _ to: Int) -> Range<Int> {
            from..<max(from, to + 1)
        }

        let completion = row.completion.map(column)
        guard let started = row.started.map(column) else {
            fill(span(column(row.enqueued), completion ?? width - 1), "·")
            if let completion { cells[completion] = "|" }
            return String(cells)
        }
        let workEnd = row.workEnd.map { column($0.time) } ?? width - 1
        fill(span(column(row.enqueued), started - 1), "·")
        fill(span(started, workEnd), "█")
        if let completion {
            let isEarly = row.completion.map { $0 < row.workEnd?.time ?? .max } ?? false
            if isEarly { fill(span(completion, workEnd), "░") }
            cells[isEarly ? completion : max(workEnd + 1, completion)] = "|"
        }
        return String(cells)
    }

    private func outcome(_ row: Row) -> String? {
        switch row.workEnd?.stage {
        case .workFailed: "failed"
        case .workCancelled: "cancelled"
        case nil where row.started == nil && row.completion != nil: "never ran"
        default: nil
        }
    }
}
