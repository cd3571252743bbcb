import Foundation
import Testing

@testable import OperationBenchmark

/// What is written of a report, without measuring anything.
@Suite struct OutputTests {
    @Test("Figures have three significant digits, costs the unit that suits them, and large numbers groups")
    func figures() {
        let values = [0, 0.00123, 0.456, 1, 9.996, 12.34, 99.96, 123.4, 1234.5].map(Figures.digits)
        #expect(values == ["0", "0.00123", "0.456", "1.00", "10.0", "12.3", "100", "123", "1234"])
        let times = [12.3, 999.7, 2340, 1_500_000, 2e9, 5e12].map { Figures.cost($0, .nanoseconds) }
        #expect(times == ["12.3 ns", "1.00 µs", "2.34 µs", "1.50 ms", "2.00 s", "5000 s"])
        #expect([512, 101_572_608].map { Figures.cost($0, .bytes) } == ["512 B", "102 MB"])
        #expect([0, 999, 1000, 100_000, 1_234_567].map(grouped) == ["0", "999", "1,000", "100,000", "1,234,567"])
    }

    @Test("The table has a row for each comparison") func table() {
        let lines = Table(report: Samples.report()).lines
        #expect(lines[0] == "Abacus, 2 cores, 8 GiB, Linux, Swift 6.2, release build")
        #expect(lines[1].hasPrefix("3 rounds. "))
        #expect(
            lines[3...] == [
                "case  what             ours  baseline   ratio      min–max    goal  verdict",
                "",
                "flat  a compound,",
                "    against a queue",
                "flat  100 children  1.10 µs   4.00 µs  0.300×  0.200–0.500  ≤ 0.5×  met, spread 100 %",
                "flat  100 to 10     1.10 µs    500 ns   2.20×    2.00–2.40",
                "",
                "flat  cost of each, by their number: children",
                "     10   500 ns  ██████████████████",
                "    100  1.10 µs  ████████████████████████████████████████",
            ])
    }

    @Test("Markdown has the machine and the tables") func markdown() {
        let lines = Markdown(report: Samples.report()).lines
        #expect(lines[0].hasPrefix("Measured on Abacus, 2 cores, 8 GiB, Linux, Swift 6.2, release build, in 3 rounds."))
        #expect(
            lines[1...] == [
                "",
                "| Case | What | Ours | Baseline | Ratio | Min–max | Goal | Verdict |",
                "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
                "| flat | 100 children | 1.10 µs | 4.00 µs | 0.300× | 0.200–0.500 | ≤ 0.5× | met, spread 100 % |",
                "| flat | 100 to 10 | 1.10 µs | 500 ns | 2.20× | 2.00–2.40 |  |  |",
                "",
                "- flat: a compound, against a queue.",
                "",
                "The cost of each child, by their number:",
                "",
                "| Case | What | 10 | 100 |",
                "| --- | --- | ---: | ---: |",
                "| flat | children | 500 ns | 1.10 µs |",
            ])
    }

    @Test("A report says how busy the machine was, and what has changed since an earlier run") func change() {
        var report = Samples.report(ours: [2000, 2400, 2200])
        report.load = 0.126
        #expect(Table(report: report).lines[1].hasPrefix("3 rounds. The load before was 0.13. Times are"))
        #expect(
            Change.lines(from: Samples.report(), to: report) == [
                "", "Compared with an earlier run",
                "case  what          before     now  change",
                "flat  100 children  0.300×  0.600×  +100 %, within the spread",
                "flat  100 to 10      2.20×   4.40×  +100 %",
            ])
    }

    @Test("A report reads back as it was written") func coding() throws {
        let data = try JSONEncoder().encode(Samples.report())
        #expect(try JSONDecoder().decode(Report.self, from: data) == Samples.report())
    }
}

/// A report that was not measured, in which each figure can be told from the others.
enum Samples {
    static let machine = Machine(
        processor: "Abacus", cores: 2, memory: 8 << 30, system: "Linux", swift: "6.2", configuration: "release")

    static var experiment: Experiment {
        Experiment(
            quantity: .nanoseconds, sides: ["ours 10", "ours 100", "stock"].map { name in Side(name: name) { 0 } },
            comparisons: [
                Comparison(what: "100 children", ours: "ours 100", baseline: "stock", goal: 0.5),
                Comparison(what: "100 to 10", ours: "ours 100", baseline: "ours 10"),
            ],
            growth: Growth(what: "children", points: [(10, "ours 10"), (100, "ours 100")]))
    }

    /// A report on the experiment, in which the larger side has these three figures.
    static func report(ours: [Double] = [1000, 1200, 1100]) -> Report {
        let figures = ["ours 10": [500.0, 500, 500], "ours 100": ours, "stock": [2000.0, 4000, 5500]]
        let result = CaseResult(
            id: "flat", summary: "a compound", baseline: "a queue",
            experiments: [ExperimentResult(of: experiment, figures: figures)])
        return Report(machine: machine, rounds: 3, count: 100, cases: [result])
    }
}
