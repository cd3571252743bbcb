/// The report as the tables of the documentation. A pure function of the report.
struct Markdown {
    let report: Report

    var lines: [String] {
        var lines = [
            "Measured on \(report.machine.description), in \(report.rounds) rounds. \(Figures.load(report.load))\(Table.legend)",
            "",
        ]
        lines += Self.table(
            header: ["Case", "What", "Ours", "Baseline", "Ratio", "Min–max", "Goal", "Verdict"], figures: 2..<7,
            rows: report.cases.flatMap(Table.rows(of:)))
        lines.append("")
        lines += report.cases.map { "- \($0.id): \($0.summary), against \($0.baseline)." }

        let growths = report.cases.flatMap { result in
            result.experiments.compactMap(\.growth).map { (result.id, $0) }
        }
        guard let sizes = growths.first?.1.points.map(\.size) else { return lines }
        lines += ["", "The cost of each child, by their number:", ""]
        lines += Self.table(
            header: ["Case", "What"] + sizes.map(grouped), figures: 2..<(2 + sizes.count),
            rows: growths.map { id, growth in
                [id, growth.what] + growth.points.map { Figures.cost($0.cost.median, .nanoseconds) }
            })
        return lines
    }

    /// A table whose columns with figures are aligned to the right.
    static func table(header: [String], figures: Range<Int>, rows: [[String]]) -> [String] {
        let rule = header.indices.map { figures.contains($0) ? "---:" : "---" }
        return ([header, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
    }
}
