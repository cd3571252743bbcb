import Foundation

/// How figures are written.
enum Figures {
    /// Three significant digits, whole numbers in full: “0.123”, “1.23”, “12.3”, “1234”.
    static func digits(_ value: Double) -> String {
        if value == 0 { return "0" }
        let magnitude = Int(log10(abs(value)).rounded(.down))
        let decimals = max(0, 2 - magnitude)
        let text = String(format: "%.\(decimals)f", value)
        // 9.996 has become 10.00, one digit longer.
        let hasGrown = decimals > 0 && Double(text).map { abs($0) >= pow(10, Double(magnitude + 1)) } == true
        return hasGrown ? String(format: "%.\(decimals - 1)f", value) : text
    }

    static func cost(_ value: Double, _ quantity: Quantity) -> String {
        let units =
            switch quantity {
            case .nanoseconds: ["ns", "µs", "ms", "s"]
            case .bytes: ["B", "kB", "MB", "GB"]
            }
        var (value, index) = (value, 0)
        while value >= 999.5, index < units.count - 1 { (value, index) = (value / 1000, index + 1) }
        return digits(value) + " " + units[index]
    }

    static func ratio(_ value: Double) -> String { digits(value) + "×" }

    static func spread(_ statistics: Statistics) -> String {
        digits(statistics.min) + "–" + digits(statistics.max)
    }

    /// What else the machine did, as a sentence.
    static func load(_ load: Double?) -> String {
        load.map { String(format: "The load before was %.2f. ", $0) } ?? ""
    }

    /// Whether the goal was met, and how far the rounds spread, if that is much.
    static func verdict(of comparison: ComparisonResult) -> String {
        let verdict = comparison.verdict == .open ? [] : [comparison.verdict.rawValue]
        let spread = comparison.ratio.wideSpread.map { String(format: "spread %.0f %%", $0 * 100) }
        return (verdict + [spread].compactMap { $0 }).joined(separator: ", ")
    }

    static func goal(_ goal: Double?) -> String {
        goal.map { "≤ \($0)×" } ?? ""
    }
}
