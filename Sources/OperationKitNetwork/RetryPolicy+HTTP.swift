public import OperationKit

extension RetryPolicy {
    /// Three attempts for requests that can be repeated without harm, with growing delays, or those that a server asks for.
    ///
    /// ```swift
    /// import FoundationNetworking
    ///
    /// let page = RetryOperation(.http, name: "page") { _ in DataTaskOperation() }
    /// let request = URLRequest(url: URL(string: "https://example.com/news")!)
    /// print(try await OperationQueue().run(page.with(input: request)).text)
    /// ```
    ///
    /// Tried again are requests whose connection failed or broke off (``TransferError/isTransient``), and those that were answered with status
    /// 408, 429, 500, 502, 503 or 504, of the methods GET, HEAD, OPTIONS, TRACE, PUT and DELETE. An `OperationTimeoutError` does not say
    /// which method the request had, so it is not tried again; the `timeoutInterval` of a request is.
    ///
    /// The delay of a `Retry-After` may be up to a day. Set `maximumTotalTime` to bound it: where a delay would pass
    /// that time, the operation ends immediately with the ``HTTPError``.
    public static var http: RetryPolicy {
        RetryPolicy(maximumAttempts: 3, backoff: .exponential(.milliseconds(500), maximum: .seconds(30))) { error, _ in
            switch error {
            case let error as HTTPError: isIdempotent(error.method) && retriedStatuses.contains(error.status)
            case let error as TransferError: isIdempotent(error.method) && error.isTransient
            default: false
            }
        }
    }

    private static let retriedStatuses: Set<Int> = [408, 429, 500, 502, 503, 504]

    private static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(method.uppercased())
    }
}
