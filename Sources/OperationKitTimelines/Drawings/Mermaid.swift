import OperationKit

extension OperationTimeline {
    /// Draws the timeline as a gantt chart of Mermaid, which GitHub, GitLab and many editors draw inside Markdown.
    ///
    /// There is a section for each composite, and a task for each operation from its start to its end: `done` if it
    /// succeeded, `active` if it has not finished, `crit` if it failed or is on the critical path. Numbers on the
    /// axis are milliseconds, for short timelines microseconds and for long ones seconds, as the title says.
    /// Characters that Mermaid cannot take are written as entities.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameters:
    ///   - maximumRows: How many operations have a task. Mermaid refuses texts of more than 50,000 characters. If
    ///     there are more operations, outer ones come before inner ones and earlier ones before later ones, and a
    ///     last task says how many others there are.
    ///   - title: The title of the chart.
    /// - Returns: The text of the chart, without the fence of a block of code.
    public func mermaid(maximumRows: Int = 200, title: String = "Timeline") -> String {
        let index = TimelineIndex(entries)
        let selection = index.selection(atMost: max(1, maximumRows))
        let critical = Set(criticalPath(index).map(\.operation))
        let unit = MermaidUnit(for: duration)
        var lines = [
            "gantt", "    title \(title.mermaidEscaped) (\(unit.name))", "    dateFormat x",
            "    axisFormat \(unit.axisFormat)",
        ]
        var section: Int?
        for position in selection {
            let entry = entries[position]
            // The section of a composite begins with itself.
            let own = index.hasChildren(position) || entry.isComposite ? position : index.parent(of: position) ?? -1
            if own != section {
                lines.append("    section " + (own < 0 ? "Operations" : entries[own].name.mermaidName))
                section = own
            }
            lines.append("    " + task(entry, isCritical: critical.contains(entry.id), unit))
        }
        let others = entries.count - selection.count
        var notes = others > 0 ? [others == 1 ? "1 other is not shown" : "\(others) others are not shown"] : []
        if let droppedNote { notes.append(String(droppedNote.dropLast())) }
        if !notes.isEmpty || entries.isEmpty {
            lines.append("    section Note")
            for note in notes.isEmpty ? ["No operations were recorded"] : notes {
                lines.append("    \(note) :milestone, \(unit.number(duration)), 0d")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func task(_ entry: Entry, isCritical: Bool, _ unit: MermaidUnit) -> String {
        var name = entry.name.mermaidName
        var tags: [String] = []
        switch entry.outcome {
        case .failed:
            name += " (failed)"
            tags.append("crit")
        case .cancelled: name += " (cancelled)"
        case .skipped: name += " (did not run)"
        case .success: tags.append("done")
        case nil: tags += entry.isUnfinished ? ["active"] : []
        }
        if isCritical, !tags.contains("crit") { tags.append("crit") }
        let from = unit.number(entry.started ?? entry.running ?? entry.finished ?? entry.firstTime)
        let to = unit.number(entry.finished ?? duration)
        // A task of no length would not be drawn.
        if to <= from { tags.append("milestone") }
        return "\(name) :" + (tags + ["op\(entry.id)", "\(from)", to > from ? "\(to)" : "0d"]).joined(separator: ", ")
    }
}

/// The unit of the numbers in a chart. Mermaid takes them for milliseconds.
private struct MermaidUnit {
    let name: String
    /// Numbers as they are, or a thousandth of them.
    let axisFormat: String
    private let length: Duration

    init(for duration: Duration) {
        switch duration {
        case ..<(.milliseconds(10)): (name, axisFormat, length) = ("µs", "%Q", .microseconds(1))
        case ..<(.seconds(10)): (name, axisFormat, length) = ("ms", "%Q", .milliseconds(1))
        default: (name, axisFormat, length) = ("s", "%s", .milliseconds(1))
        }
    }

    // Not beyond what a number can hold.
    func number(_ time: Duration) -> Int64 { Int64(min((time / length).rounded(), 0x1p62)) }
}
