/// An error that knows how long to wait before another attempt: that of a service with a `Retry-After`, for example.
public protocol RetryAfterProviding: Error {
    /// The delay before the next attempt, in place of that of the policy for retries, which still limits the number of
    /// attempts and the total time. `nil` leaves the delay to the policy.
    ///
    /// Read once for each attempt that failed, on any thread other than those of the pool of Swift's tasks.
    var retryAfter: Duration? { get }
}

extension Error {
    /// The delay that the error asks for, or the longest one that errors inside it ask for.
    var requestedDelay: Duration? {
        let mostErrors = 1_000
        var open: [any Error] = [self]
        var longest: Duration?
        for _ in 0..<mostErrors {
            guard let error = open.popLast() else { break }
            if let delay = (error as? any RetryAfterProviding)?.retryAfter {
                longest = max(longest ?? delay, delay)
            } else {
                open += (error as? any NestingError)?.errorsInside(atMost: mostErrors).map(\.error) ?? []
            }
        }
        return longest
    }
}
