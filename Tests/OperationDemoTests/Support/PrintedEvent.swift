@testable import OperationDemo

/// A line of the demo's log, read back.
struct PrintedEvent: Equatable {
    let milliseconds: Int
    let name: String
    let stage: Stage
    let detail: String?

    /// Nil if the line is no event.
    init?(line: String) {
        let columns = line.split(separator: "  ").map { $0.drop(while: { $0 == " " }) }.filter { !$0.isEmpty }
        guard (3...4).contains(columns.count), columns[0].hasSuffix(" ms"),
            let milliseconds = Int(columns[0].dropLast(3)), let stage = Stage(rawValue: String(columns[2]))
        else { return nil }
        self.milliseconds = milliseconds
        name = String(columns[1])
        self.stage = stage
        detail = columns.count == 4 ? String(columns[3]) : nil
    }
}

/// What the demo printed for one queue.
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

    var names: Set<String> {
        Set(events.map(\.name))
    }

    /// The stages of one operation, in the order of the lines.
    func stages(of name: String) -> [Stage] {
        events.filter { $0.name == name }.map(\.stage)
    }

    /// The lines between which an operation worked, as it says itself.
    func work(of name: String) -> ClosedRange<Int>? {
        guard let start = events.firstIndex(where: { $0.name == name && $0.stage == .started }),
            let end = events.firstIndex(where: { $0.name == name && $0.stage.endsWork }), start <= end
        else { return nil }
        return start...end
    }

    /// Whether any two of these operations worked at the same time.
    func overlaps(_ names: [String]) -> Bool {
        let ranges = names.compactMap(work(of:))
        return ranges.indices.contains { left in
            ranges.indices.contains { right in left < right && ranges[left].overlaps(ranges[right]) }
        }
    }
}
