import CommandLineSupport

/// How a cost grows, as bars: flat bars are a linear cost. A pure function of the figures.
struct Plot {
    let growth: GrowthResult

    /// The length of the longest bar.
    static let width = 40

    var lines: [String] {
        let sizes = growth.points.map { grouped($0.size) }
        let costs = growth.points.map { Figures.cost($0.cost.median, .nanoseconds) }
        let sizeWidth = sizes.map(\.count).max() ?? 0
        let costWidth = costs.map(\.count).max() ?? 0
        let highest = growth.points.map(\.cost.median).max() ?? 0
        return growth.points.indices.map { index in
            let share = highest > 0 ? growth.points[index].cost.median / highest : 0
            let bar = String(repeating: "█", count: max(1, Int((share * Double(Self.width)).rounded())))
            return "    " + sizes[index].indented(to: sizeWidth) + "  " + costs[index].indented(to: costWidth) + "  "
                + bar
        }
    }
}
