extension Duration {
    /// So long that it makes no difference to wait longer, and so short that no clock overflows.
    package static let century = Duration.seconds(100 * 366 * 24 * 3_600 as Int64)

    /// The result of sums and products that are longer. Sums of some of them do not overflow.
    static let longest = Duration.seconds(Int64.max)

    /// The duration itself if it can be a delay: neither negative nor longer than the longest one.
    var clamped: Duration { min(max(self, .zero), .longest) }

    /// Returns the sum of two durations, a negative one of which counts as zero, or the longest duration if that is shorter.
    func adding(_ other: Duration) -> Duration {
        (clamped + other.clamped).clamped
    }

    /// Returns the product with a factor, or the longest duration if that is shorter. It is zero if one of them is negative.
    ///
    /// It is as exact as a `Double` is. The longest duration stands for one without an end, and stays as long.
    func multiplied(by factor: Double) -> Duration {
        // Zero times infinity would not be a number.
        if self <= .zero || factor <= 0 { return .zero }
        guard self < .longest, self / .seconds(1) * factor < Double(Int64.max) else { return .longest }
        return self * factor
    }

    /// The whole nanoseconds, or the most that there can be.
    package var nanoseconds: Int64 {
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            return Int64(clamping: attoseconds / 1_000_000_000)
        }
        let (seconds, attoseconds) = min(max(self, .nanoseconds(Int64.min)), .nanoseconds(Int64.max)).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// The duration for people to read, with about three digits: some 300 years at most.
    package var shortText: String {
        if self < .zero { return "−" + (.zero - self).shortText }
        let nanoseconds = nanoseconds
        let seconds = nanoseconds / 1_000_000_000
        if seconds >= 86_400_000 { return "\(seconds / 86_400) d" }
        if seconds >= 86_400 { return "\(seconds / 86_400) d \(seconds / 3_600 % 24) h" }
        if seconds >= 3_600 { return "\(seconds / 3_600) h \(seconds / 60 % 60) min" }
        if seconds >= 60 { return "\(seconds / 60) min \(seconds % 60) s" }
        for (unit, name) in [(Int64(1_000_000_000), "s"), (1_000_000, "ms"), (1_000, "µs")] where nanoseconds >= unit {
            // Rounded down: 999.9 ms is not 1 s.
            let (whole, rest) = (nanoseconds / unit, nanoseconds % unit / (unit / 1_000))
            let count = rest == 0 || whole >= 100 ? 0 : rest % 100 == 0 || whole >= 10 ? 1 : 2
            return "\(whole)" + (count == 0 ? "" : "." + String(1_000 + rest).dropFirst().prefix(count)) + " \(name)"
        }
        return nanoseconds == 0 ? "0 s" : "\(nanoseconds) ns"
    }
}
