extension Duration {
    /// So long that it makes no difference to wait longer, and so short that no clock overflows.
    static let century = Duration.seconds(100 * 366 * 24 * 3_600)

    /// The result of products that are longer. Sums of some of them do not overflow.
    static let longest = Duration.seconds(Int64.max)

    /// Returns the product with a factor that is not negative, or the longest duration if that is shorter.
    ///
    /// It is as exact as a `Double` is for the seconds and for the fraction of a second, each for itself.
    func multiplied(by factor: Double) -> Duration {
        // Zero times infinity would not be a number.
        if self == .zero { return .zero }
        guard self < .longest else { return factor > 0 ? .longest : .zero }
        let (seconds, attoseconds) = components
        let second = 1e18
        let product = Double(seconds) * factor
        let whole = product.rounded(.down)
        let fraction = (product - whole) * second + Double(attoseconds) * factor
        guard product + fraction / second < Double(Int64.max) else { return .longest }
        let rest = fraction.truncatingRemainder(dividingBy: second)
        return Duration(
            secondsComponent: Int64(whole) + Int64((fraction - rest) / second), attosecondsComponent: Int64(rest))
    }
}
