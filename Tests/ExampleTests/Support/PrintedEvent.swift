/// A line of the demo's log, read back.
struct PrintedEvent: Equatable {
    let milliseconds: Int
    let name: String
    let text: String

    /// Nil if the line is none of the log.
    init?(line: String) {
        let columns = line.split(separator: "  ").map { $0.drop(while: { $0 == " " }) }.filter { !$0.isEmpty }
        // The axis of a timeline has times, too, but further to the right.
        guard columns.count == 3, line.prefix(9).hasSuffix(" ms"), let milliseconds = Int(columns[0].dropLast(3)) else {
            return nil
        }
        (self.milliseconds, name, text) = (milliseconds, String(columns[1]), String(columns[2]))
    }

    /// Whether the work is over, in whatever way.
    var isEnd: Bool { text.hasPrefix("finished") || text.hasPrefix("failed: ") }
    /// Whether the work begins.
    var isStart: Bool { text == "started" }
}

/// What the demo printed for one queue, with `--log`.
struct PrintedSection {
    let title: String
    let events: [PrintedEvent]
    /// The rows of the timeline and all that follows.
    let rest: [String]

    /// The sections of an output, in their order.
    static func sections(in lines: [String]) -> [PrintedSection] {
        let starts = lines.indices.filter { lines[$0].contains(" queue: ") || lines[$0].hasPrefix("collection, ") }
        return zip(starts, starts.dropFirst() + [lines.count]).map { start, end in
            let body = lines[(start + 1)..<end]
            return PrintedSection(
                title: lines[start], events: body.compactMap(PrintedEvent.init),
                rest: body.filter { PrintedEvent(line: $0) == nil && !$0.isEmpty })
        }
    }

    var names: Set<String> { Set(events.map(\.name)) }

    /// What happened to one operation, in the order of the lines.
    func texts(of name: String) -> [String] { events.filter { $0.name == name }.map(\.text) }

    /// The line that says how one operation ended.
    func end(of name: String) -> PrintedEvent? { events.first { $0.name == name && $0.isEnd } }

    /// The lines between which an operation was executing.
    func execution(of name: String) -> ClosedRange<Int>? {
        guard let start = events.firstIndex(where: { $0.name == name && $0.isStart }),
            let end = events.firstIndex(where: { $0.name == name && $0.isEnd }), start <= end
        else { return nil }
        return start...end
    }

    /// Whether any two of these operations were executing at the same time.
    func overlaps(_ names: [String]) -> Bool {
        let ranges = names.compactMap(execution(of:))
        return ranges.indices.contains { left in
            ranges.indices.contains { right in left < right && ranges[left].overlaps(ranges[right]) }
        }
    }

    /// The row of an operation in the timeline.
    func row(of name: String) -> String? {
        rest.first { $0.drop(while: { $0 == " " }).hasPrefix(name) }
    }
}
