/// One attempt of a ``RetryOperation``.
public struct RetryAttempt: Sendable {
    /// Its number, from 1 on.
    public let number: Int
    /// When it began: the time since the first attempt did.
    public let start: Duration
    /// How long it took; `nil` as long as it has not ended.
    public private(set) var duration: Duration?
    /// The error that it ended with; `nil` for success, and as long as it has not ended.
    public private(set) var error: (any Error)?

    init(number: Int, start: Duration) {
        self.number = number
        self.start = start
    }

    fileprivate mutating func ended(with error: (any Error)?, at now: Duration) {
        duration = now - start
        self.error = error
    }
}

/// The attempts of one operation, the last ones of very many.
struct AttemptLog {
    /// How many attempts are kept at least, of more than these.
    static let size = 1_000

    /// At most twice as many, so that those at the front are seldom removed.
    private var all: [RetryAttempt] = []
    private var firstStart: Duration?

    var attempts: [RetryAttempt] { all.suffix(Self.size) }

    /// An attempt began.
    ///
    /// - Returns: What is not kept, to be released after unlocking: errors may be of users' types.
    mutating func began(_ number: Int, at now: Duration) -> [RetryAttempt] {
        let start = firstStart ?? now
        firstStart = start
        var removed: [RetryAttempt] = []
        if all.count == 2 * Self.size {
            removed = Array(all.prefix(Self.size))
            all.removeFirst(Self.size)
        }
        all.append(RetryAttempt(number: number, start: now - start))
        return removed
    }

    /// The last attempt ended.
    mutating func ended(with error: (any Error)?, at now: Duration) -> [RetryAttempt] {
        if let last = all.indices.last, let firstStart { all[last].ended(with: error, at: now - firstStart) }
        return []
    }
}
