/// When the permits of a rate limit can be used again, as a value.
///
/// Each can be used again when the duration has passed since its use. So there are never more uses than permits in any time of
/// that length, other than with a bucket that is refilled.
struct RatePermits: Sendable {
    private let duration: Duration
    /// When permits can be used again, earliest first, from `head` on.
    private var returns: [Duration] = []
    private var head = 0

    init(per duration: Duration) {
        self.duration = duration
    }

    /// The number of permits that cannot be used at the moment.
    var usedCount: Int { returns.count - head }

    /// A permit was used: the work has begun.
    ///
    /// - Parameter now: The time, which counts as that of the last use if it is earlier.
    /// - Returns: When to report ``returned(at:)``, if that is not going to happen anyway.
    mutating func used(at now: Duration) -> Duration? {
        let isFirst = usedCount == 0
        returns.append(max(now + duration, returns.last ?? .zero))
        return isFirst ? returns.last : nil
    }

    /// The time has come.
    ///
    /// - Returns: How many permits can be used again, and when to report the next ones, if there are any.
    mutating func returned(at now: Duration) -> (count: Int, next: Duration?) {
        let start = head
        while head < returns.count, returns[head] <= now { head += 1 }
        let count = head - start
        // Forget what was taken once it is the larger half.
        if head * 2 > returns.count {
            returns.removeFirst(head)
            head = 0
        }
        return (count, head < returns.count ? returns[head] : nil)
    }
}
