/// How many instructions cases cost, and the tables that say so.
struct InstructionReport: Equatable, Sendable {
    /// What was found for a case.
    struct Result: Equatable, Sendable {
        let id: String
        let summary: String
        /// The instructions of each operation.
        let cost: Int
        let baseline: Baseline?

        /// The cost to that of the baseline.
        var ratio: Double? {
            baseline.flatMap { $0.cost > 0 ? Double(cost) / Double($0.cost) : nil }
        }
    }

    /// The case that another one is compared with.
    struct Baseline: Equatable, Sendable {
        let id: String
        let cost: Int
    }

    let machine: Machine
    let tool: InstructionCounter.Tool
    /// How often cases were counted in which threads meet.
    let rounds: Int
    let results: [Result]

    /// The report for a terminal.
    var table: [String] {
        [head, ""] + Table.aligned([Self.header.map { $0.lowercased() }] + rows, figures: Self.figures)
    }

    /// The report as a table of the documentation.
    var markdown: [String] {
        [head, ""] + Markdown.table(header: Self.header, figures: Self.figures, rows: rows)
    }

    private static let header = ["Case", "What", "Instructions", "Baseline", "Ratio"]
    private static let figures = 2..<5

    private var head: String {
        "Instructions for each operation, step or item, counted by \(tool.rawValue) on \(machine.description). Where "
            + "threads meet, the least of \(rounds) rounds is taken."
    }

    private var rows: [[String]] {
        results.map { result in
            [
                result.id, result.summary, grouped(result.cost),
                result.baseline.map { "\($0.id) \(grouped($0.cost))" } ?? "",
                result.ratio.map(Figures.ratio) ?? "",
            ]
        }
    }
}
