/// An error that knows how long to wait before another attempt: that of a service with a `Retry-After`, for example.
public protocol RetryAfterProviding: Error {
    /// The delay before the next attempt, in place of that of the policy for retries, which still limits the number of
    /// attempts and the total time. `nil` leaves the delay to the policy.
    ///
    /// Read once for each attempt that failed, on any thread.
    var retryAfter: Duration? { get }
}
