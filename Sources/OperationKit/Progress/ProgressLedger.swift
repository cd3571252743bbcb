/// How much of a composite's work is done, as a value.
///
/// Children count by their weights: in full once they have ended, in whatever way, and in part while they report a
/// fraction. Where they are alternatives, the one that has come farthest counts alone.
struct ProgressLedger {
    /// Whether the children are alternatives, one of which does all the work.
    let isOfAlternatives: Bool
    private var total: Int64 = 0
    private var finished: Int64 = 0
    /// The fractions that the children that have not ended have reported, times their weights.
    private var partials: [Int: Double] = [:]
    /// Their sum; of alternatives, the largest fraction so far.
    private var partial = 0.0

    init(ofAlternatives isOfAlternatives: Bool = false) {
        self.isOfAlternatives = isOfAlternatives
    }

    /// A weight that counts: not negative, and not so large that sums could overflow.
    static func weight(_ given: Int64) -> Int64 { min(max(0, given), 1 << 31) }

    /// Work was added, or, with a negative weight, taken back.
    mutating func added(_ weight: Int64) {
        total += weight
    }

    /// Work was done that belongs to no child, such as a job of a waterfall that makes a value.
    mutating func done(_ weight: Int64) {
        finished += weight
    }

    /// A child has reached a fraction of its own work.
    mutating func advanced(_ child: Int, weight: Int64, to fraction: Double) {
        if isOfAlternatives { return partial = max(partial, min(fraction, 1)) }
        let share = min(max(fraction, 0), 1) * Double(weight)
        partial += share - (partials.updateValue(share, forKey: child) ?? 0)
    }

    /// A child has ended.
    mutating func ended(_ child: Int, weight: Int64) {
        finished += weight
        guard !partials.isEmpty, let share = partials.removeValue(forKey: child) else { return }
        partial = partials.isEmpty ? 0 : partial - share
    }

    /// The weights of what is done, and of all that there is.
    var units: (completed: Int64, total: Int64)? { isOfAlternatives ? nil : (finished, total) }

    /// From 0 to 1. It falls when work is added; the fraction that is published does not.
    var fraction: Double {
        if isOfAlternatives { return partial }
        return total > 0 ? min(max((Double(finished) + partial) / Double(total), 0), 1) : 0
    }
}
