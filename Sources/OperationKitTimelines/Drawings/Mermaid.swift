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
    ///     there are more operations, outer ones come before inner ones, then those that failed or still execute, then earlier ones, and a
    ///     last task says how many others there are.
    ///   - title: The title of the chart.
    /// - Returns: The text of the chart, without the fence of a block of code.
    public func mermaid(maximumRows: Int = 200, title: String = "Timeline") -> String {
        let causes = TimelineCauses(self)
        let selection = causes.index.selection(atMost: maximumRows)
        let critical = Set(causes.criticalPath.map(\.operation))
        // Mermaid takes numbers for milliseconds. The axis has them as they are, or a thousandth of them.
        let (unit, axisFormat, length) =
            switch duration {
            case ..<(.milliseconds(10)): ("µs", "%Q", Duration.microseconds(1))
            case ..<(.seconds(10)): ("ms", "%Q", Duration.milliseconds(1))
            default: ("s", "%s", Duration.milliseconds(1))
            }
        let number = { (time: Duration) in Int64((time / length).rounded()) }
        var lines = [
            "gantt", "    title \(title.mermaidEscaped) (\(unit))", "    dateFormat x", "    axisFormat \(axisFormat)",
        ]
        var section: Int?
        for position in selection {
            let entry = entries[position]
            // The section of a composite begins with itself.
            let isComposite = entry.isComposite || !causes.index.children[position].isEmpty
            let own = isComposite ? position : causes.index.parents[position] ?? -1
            if own != section {
                lines.append("    section " + (own < 0 ? "Operations" : entries[own].name.mermaidName))
                section = own
            }
            lines.append("    " + task(entry, isCritical: critical.contains(entry.id), number))
        }
        let notes = notes(omitting: entries.count - selection.count)
        if !notes.isEmpty { lines.append("    section Note") }
        lines += notes.map { "    \($0.dropLast()) :milestone, \(number(duration)), 0d" }
        return lines.joined(separator: "\n") + "\n"
    }

    private func task(_ entry: Entry, isCritical: Bool, _ number: (Duration) -> Int64) -> String {
        let mark = TimelineMark(ofEndOf: entry)
        let remark = mark.flatMap { $0 == .unfinished ? nil : " (\($0.title))" } ?? ""
        let from = number(entry.begin ?? entry.finished ?? entry.firstTime)
        let to = number(end(of: entry))
        var tags = entry.outcome == .success ? ["done"] : mark == .unfinished ? ["active"] : []
        if isCritical || mark == .failed { tags.append("crit") }
        // A task of no length would not be drawn.
        if to <= from { tags.append("milestone") }
        tags += ["op\(entry.id)", "\(from)", to > from ? "\(to)" : "0d"]
        return "\(entry.name.mermaidName)\(remark) :\(tags.joined(separator: ", "))"
    }
}
