/// When the permits of a rate limit can be used again, as a value.
///
/// Each can be used again when the duration has passed since its use. So there are never more uses than permits in any time of
/// that length, other than with a bucket that is refilled.
struct RatePermits: Sendable {
    /// A time at which ``RatePermits/returned(at:)`` has to be reported.
    struct Wake: Equatable, Sendable {
        /// The one with the greatest number is the only one that counts.
        let number: Int
        let time: Duration
    }

    private let duration: Duration
    private var wakeCount = 0
    /// When permits can be used again, earliest first, from `head` on.
    private var returns: [Duration] = []
    private var head = 0

    init(per duration: Duration) {
        self.duration = duration
    }

    /// The number of permits that cannot be used at the moment.
    var usedCount: Int { returns.count - head }

    /// A permit was used: the work is about to begin.
    ///
    /// - Parameter now: The time, which counts as that of the last use if it is earlier.
    /// - Returns: The permit, and when to report ``returned(at:)``, if that is not going to happen anyway.
    mutating func used(at now: Duration) -> (permit: RatePermit, next: Wake?) {
        let isFirst = usedCount == 0
        let permit = RatePermit(returnTime: max(now + duration, returns.last ?? .zero))
        returns.append(permit.returnTime)
        return (permit, isFirst ? wake(at: permit.returnTime) : nil)
    }

    /// A permit was not used after all: the work has not begun.
    ///
    /// Complexity: O(n) for n permits that were used after it, to close the gap.
    ///
    /// - Returns: Whether it can be used again because of that. If not, its time has come before.
    mutating func givenBack(_ permit: RatePermit) -> Bool {
        // It was used lately.
        guard let index = returns[head...].lastIndex(where: { $0 <= permit.returnTime }),
            returns[index] == permit.returnTime
        else { return false }
        returns.remove(at: index)
        return true
    }

    /// The time has come.
    ///
    /// - Returns: How many permits can be used again, and when to report the next ones, if there are any.
    mutating func returned(at now: Duration) -> (count: Int, next: Wake?) {
        let start = head
        while head < returns.count, returns[head] <= now { head += 1 }
        let count = head - start
        // Forget what was taken once it is the larger half.
        if head * 2 > returns.count {
            returns.removeFirst(head)
            head = 0
        }
        return (count, head < returns.count ? wake(at: returns[head]) : nil)
    }

    private mutating func wake(at time: Duration) -> Wake {
        wakeCount += 1
        return Wake(number: wakeCount, time: time)
    }
}

/// A permit of a rate limit that was used.
struct RatePermit: Equatable, Sendable {
    /// When it can be used again.
    fileprivate let returnTime: Duration
}
