/// Sides that are measured in turns, and what is concluded from them.
struct Experiment {
    let quantity: Quantity
    /// Measured once in every round. Each has a name of its own.
    var sides: [Side]
    var comparisons: [Comparison]
    /// How the cost of one of the sides grows, if its size is varied.
    var growth: Growth?
}

extension Experiment {
    /// Measures the times of two sides, and compares them.
    init(_ what: String, ours: Side, baseline: Side, goal: Double? = nil) {
        self.init(
            quantity: .nanoseconds, sides: [ours, baseline],
            comparisons: [Comparison(what: what, ours: ours.name, baseline: baseline.name, goal: goal)])
    }
}

/// One way to do some work. Its name says how, and how much of it.
struct Side {
    let name: String
    /// Does the work, and returns what it cost.
    let measure: () throws -> Double
}

/// What a side costs.
enum Quantity: String, Codable, Sendable {
    /// Nanoseconds for each child, item or step.
    case nanoseconds
    /// Bytes in all.
    case bytes
}

/// Two sides, the one to judge and the one to judge it by, both by name.
struct Comparison {
    let what: String
    let ours: String
    let baseline: String
    /// What the ratio of the two should not exceed. A comparison without a goal is there for information.
    var goal: Double?
}

/// Sides that differ in size only.
struct Growth {
    let what: String
    let points: [(size: Int, side: String)]
}
