public import Foundation
public import OperationKit

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A status of 400 or more, with which a server has answered.
///
/// A `Retry-After` of the server is the delay of a retry: see `RetryAfterProviding`.
public struct HTTPError: Sendable, LocalizedError, CustomNSError, ReportedError {
    /// The method of the request.
    public let method: String
    /// The URL of the request.
    public let url: URL?
    /// The status and the header fields.
    public let response: HTTPResponse
    /// The beginning of the body, at most 4 KiB.
    public let body: Data

    /// Creates an error, for tests of code that handles one.
    public init(method: String, url: URL?, response: HTTPResponse, body: Data = Data()) {
        self.method = method
        self.url = url
        self.response = response
        self.body = body
    }

    /// The status.
    public var status: Int { response.status }

    package func text(depth: Int) -> String {
        "“\(RequestName.of(method, url))” was answered with status \(status), \(phrase)."
    }

    private var phrase: String { HTTPURLResponse.localizedString(forStatusCode: status) }

    package var numericCode: Int { status }
}

extension HTTPError: RetryAfterProviding {
    /// The time until the moment that the server has named, in seconds or as a date, but a day at most; `nil` if it has named
    /// none. A date is compared with the `Date` of the answer. Without that, the clock of this machine counts.
    public var retryAfter: Duration? {
        guard let text = response.value(forHTTPHeaderField: "Retry-After") else { return nil }
        return RetryAfter.duration(of: text, at: response.date ?? Date())
    }
}

/// The header field that says when to come back.
enum RetryAfter {
    /// A day, in seconds. A program waits no longer, whatever the server says.
    private static let longest: Double = 86_400

    static func duration(of text: String, at now: Date) -> Duration? {
        let text = text.trimmingCharacters(in: .whitespaces)
        if let seconds = Double(text), seconds.isFinite { return .seconds(min(max(seconds, 0), longest)) }
        return HTTPDate.date(of: text).map { .seconds(min(max($0.timeIntervalSince(now), 0), longest)) }
    }
}

/// How requests are written in names and messages: without a query, a user and a password, which may be secret, and shortened.
enum RequestName {
    private static let longest = 500

    static func of(_ method: String?, _ url: URL?) -> String {
        let method = (method ?? "GET").onOneLine
        guard let url, var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return method
        }
        components.user = nil
        components.password = nil
        components.query = nil
        components.fragment = nil
        let isData = components.scheme?.lowercased() == "data"
        let text = "\(method) " + (isData ? "data:" : components.string ?? "")
        let start = Substring(text.unicodeScalars.prefix(longest))
        return start.endIndex < text.endIndex ? start + "…" : text
    }
}

// MARK: - Trying again

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
    /// which method the request had, so it is not tried again; the `timeoutInterval` of a request is. Nor is an operation tried again
    /// that does not get what it requires, as with a `CircuitOpenError`.
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
