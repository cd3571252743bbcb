/// How often something happened in the last so many seconds, and how often something of interest.
///
/// The window is divided into ten parts, each of which counts as a whole until it has passed. So it has the last nine to ten
/// tenths of its duration in it, and takes the same memory however much happens.
struct SlidingWindow: Sendable {
    struct Counts: Equatable, Sendable {
        var all = 0
        var marked = 0
    }

    private static let partCount: Int64 = 10

    private let part: Duration
    /// Those of the current part, and of all others that are still in the window, by the number of the part.
    private var parts: [(number: Int64, counts: Counts)] = []
    private(set) var total = Counts()

    /// - Parameter duration: The length of the window, more than zero.
    init(_ duration: Duration) {
        part = max(duration / Int(SlidingWindow.partCount), .nanoseconds(1))
    }

    /// Something happened. Times come in order; one that comes late counts for the current part.
    ///
    /// - Parameters:
    ///   - counts: What is added.
    ///   - now: The time since the window was created.
    mutating func add(_ counts: Counts, at now: Duration) {
        advance(to: now)
        let number = max(self.number(of: now), parts.last?.number ?? 0)
        if parts.last?.number != number { parts.append((number, Counts())) }
        parts[parts.count - 1].counts.all += counts.all
        parts[parts.count - 1].counts.marked += counts.marked
        total.all += counts.all
        total.marked += counts.marked
    }

    /// Forgets what is no longer in the window.
    mutating func advance(to now: Duration) {
        let oldest = number(of: now) - SlidingWindow.partCount
        while let first = parts.first, first.number <= oldest {
            total.all -= first.counts.all
            total.marked -= first.counts.marked
            parts.removeFirst()
        }
    }

    /// Forgets everything.
    mutating func removeAll() {
        parts = []
        total = Counts()
    }

    private func number(of now: Duration) -> Int64 {
        // No clock comes near the bounds but one that makes no sense.
        Int64(min(max((now / part).rounded(.down), -0x1p62), 0x1p62))
    }
}
