/// Measures the sides of experiments in turns.
struct Runner {
    let rounds: Int

    /// Measures an experiment.
    ///
    /// All sides are measured in every round, so that whatever else the machine does meets them alike; in every second
    /// round the other way round, so that none is always the one that comes first.
    ///
    /// - Parameters:
    ///   - experiment: The experiment.
    ///   - willMeasure: Called before each turn of a side, with the round and the name.
    /// - Returns: The figures of all sides.
    /// - Throws: The error of the first side that cannot be measured.
    func run(_ experiment: Experiment, willMeasure: (String) -> Void = { _ in }) throws -> ExperimentResult {
        var figures: [String: [Double]] = [:]
        for round in 0..<rounds {
            let sides = round.isMultiple(of: 2) ? experiment.sides : experiment.sides.reversed()
            for side in sides {
                willMeasure("round \(round + 1) of \(rounds): \(side.name)")
                figures[side.name, default: []].append(try side.measure())
            }
        }
        return ExperimentResult(of: experiment, figures: figures)
    }
}
