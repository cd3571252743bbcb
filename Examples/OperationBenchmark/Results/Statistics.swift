/// The median of some figures, and how far they spread.
struct Statistics: Codable, Equatable, Sendable {
    let median: Double
    let min: Double
    let max: Double

    /// - Parameter figures: One for each round, in any order. Not empty.
    init(_ figures: [Double]) {
        precondition(!figures.isEmpty, "there is no median of nothing")
        let sorted = figures.sorted()
        let middle = sorted.count / 2
        median = sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
        min = sorted[0]
        max = sorted[sorted.count - 1]
    }

    /// How far the figures lie apart, as a part of the median, if that is more than a fifth: then little can be concluded.
    var wideSpread: Double? {
        let spread = (max - min) / median
        return spread > 0.2 ? spread : nil
    }

    /// The ratios of figures that were taken in the same rounds.
    init(ratiosOf figures: [Double], to others: [Double]) {
        self.init(zip(figures, others).map { $0 / $1 })
    }
}
