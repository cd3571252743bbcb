/// What a run of the benchmark found. Encoded as JSON, it is what `--json` writes.
///
/// Keys and meanings stay as they are for one `format`. Times are nanoseconds for each child, item or step, memory is in
/// bytes, and ratios are ours to the baseline's, so that less is better.
struct Report: Codable, Equatable, Sendable {
    /// Which keys there are: 1.
    var format = 1
    let machine: Machine
    /// How many processes were running or ready on average, in the minute before. Not there if the system does not say.
    var load: Double?
    /// How often each side was measured.
    let rounds: Int
    /// What `--count` said.
    let count: Int
    let cases: [CaseResult]

    /// Whether no goal was missed.
    var meetsGoals: Bool {
        cases.allSatisfy { result in
            result.experiments.allSatisfy { $0.comparisons.allSatisfy { $0.verdict != .missed } }
        }
    }
}

/// What was found for a case.
struct CaseResult: Codable, Equatable, Sendable {
    /// The name of the case, such as `flat`.
    let id: String
    let summary: String
    let baseline: String
    let experiments: [ExperimentResult]
}

/// What was found for sides that were measured in turns.
struct ExperimentResult: Codable, Equatable, Sendable {
    let quantity: Quantity
    let sides: [SideResult]
    let comparisons: [ComparisonResult]
    let growth: GrowthResult?
}

/// What a side cost.
struct SideResult: Codable, Equatable, Sendable {
    let name: String
    let cost: Statistics
}

/// How two sides compare.
struct ComparisonResult: Codable, Equatable, Sendable {
    enum Verdict: String, Codable, Sendable {
        case met, missed
        /// There is no goal.
        case open
    }

    let what: String
    let ours: SideResult
    let baseline: SideResult
    /// Of the ratios of the single rounds.
    let ratio: Statistics
    /// The largest median that meets the goal. Not there if there is none.
    let goal: Double?
    let verdict: Verdict
}

/// How a cost grows with the size.
struct GrowthResult: Codable, Equatable, Sendable {
    struct Point: Codable, Equatable, Sendable {
        let size: Int
        let cost: Statistics
    }

    let what: String
    let points: [Point]
}

extension ExperimentResult {
    /// Concludes from figures, of which each side has one for each round, in the order of the rounds.
    init(of experiment: Experiment, figures: [String: [Double]]) {
        func result(_ name: String) -> SideResult {
            SideResult(name: name, cost: Statistics(figures[name] ?? []))
        }
        quantity = experiment.quantity
        sides = experiment.sides.map { result($0.name) }
        comparisons = experiment.comparisons.map { comparison in
            let ratio = Statistics(
                ratiosOf: figures[comparison.ours] ?? [], to: figures[comparison.baseline] ?? [])
            return ComparisonResult(
                what: comparison.what, ours: result(comparison.ours), baseline: result(comparison.baseline),
                ratio: ratio, goal: comparison.goal, verdict: .init(of: ratio, goal: comparison.goal))
        }
        growth = experiment.growth.map { growth in
            GrowthResult(
                what: growth.what,
                points: growth.points.map { GrowthResult.Point(size: $0.size, cost: result($0.side).cost) })
        }
    }
}

extension ComparisonResult.Verdict {
    /// The median decides.
    init(of ratio: Statistics, goal: Double?) {
        guard let goal else {
            self = .open
            return
        }
        self = ratio.median <= goal ? .met : .missed
    }
}
