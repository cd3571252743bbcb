@testable import OperationBenchmark

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
