import CommandLineSupport

/// The report for a terminal: a row for each comparison, then how costs grow. A pure function of the report.
struct Table {
    let report: Report

    static let header = ["case", "what", "ours", "baseline", "ratio", "min–max", "goal", "verdict"]
    static let legend = "Times are for each child, item or step. Ratios are ours to the baseline's: less is better."

    var lines: [String] {
        let rows = report.cases.map { ($0, Self.rows(of: $0)) }
        let all = [Self.header] + rows.flatMap(\.1)
        var aligned = Self.aligned(all, figures: 2..<7)[...]

        var lines = [
            report.machine.description, "\(report.rounds) rounds. \(Figures.load(report.load))" + Self.legend, "",
        ]
        lines += aligned.prefix(1)
        aligned = aligned.dropFirst()
        for (result, rows) in rows {
            lines += ["", "\(result.id)  \(result.summary),", "    against \(result.baseline)"]
            lines += aligned.prefix(rows.count)
            aligned = aligned.dropFirst(rows.count)
        }
        for result in report.cases {
            for case let growth? in result.experiments.map(\.growth) {
                lines += ["", "\(result.id)  cost of each, by their number: \(growth.what)"]
                lines += Plot(growth: growth).lines
            }
        }
        return lines
    }

    /// The rows as lines whose cells stand below each other: texts to the left, figures to the right.
    ///
    /// - Parameters:
    ///   - rows: The cells of each row, as many in each.
    ///   - figures: The columns with figures.
    /// - Returns: A line for each row.
    static func aligned(_ rows: [[String]], figures: Range<Int>) -> [String] {
        let widths = rows.first?.indices.map { column in rows.map { $0[column].count }.max() ?? 0 } ?? []
        return rows.map { cells in
            zip(cells, widths).enumerated().map { column, cell in
                figures ~= column ? cell.0.indented(to: cell.1) : cell.0.padded(to: cell.1)
            }.joined(separator: "  ").withoutTrailingSpaces
        }
    }

    /// The cells of a case's comparisons.
    static func rows(of result: CaseResult) -> [[String]] {
        result.experiments.flatMap { experiment in
            experiment.comparisons.map { comparison in
                [
                    result.id, comparison.what,
                    Figures.cost(comparison.ours.cost.median, experiment.quantity),
                    Figures.cost(comparison.baseline.cost.median, experiment.quantity),
                    Figures.ratio(comparison.ratio.median), Figures.spread(comparison.ratio),
                    Figures.goal(comparison.goal), Figures.verdict(of: comparison),
                ]
            }
        }
    }
}
