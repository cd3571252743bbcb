public import Foundation
public import OperationKit

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A status of 400 or more, with which a server has answered.
///
/// A `Retry-After` of the server is the delay of a retry: see `RetryAfterProviding`.
public struct HTTPError: Error, Sendable {
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
}

extension HTTPError: RetryAfterProviding {
    /// The time until the moment that the server has named, in seconds or as a date; `nil` if it has named none.
    public var retryAfter: Duration? {
        guard let text = response.value(forHTTPHeaderField: "Retry-After") else { return nil }
        return RetryAfter.duration(of: text, at: Date())
    }
}

/// The header field that says when to come back.
enum RetryAfter {
    /// A day, in seconds. A program waits no longer, whatever the server says.
    private static let longest: Double = 86_400
    /// The forms of a date that servers may send, the obsolete ones last: RFC 9110, 5.6.7.
    private static let dateFormats = [
        "EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy",
    ]

    static func duration(of text: String, at now: Date) -> Duration? {
        let text = text.trimmingCharacters(in: .whitespaces)
        if let seconds = Double(text), seconds.isFinite { return .seconds(min(max(seconds, 0), longest)) }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        for format in dateFormats {
            formatter.dateFormat = format
            guard let date = formatter.date(from: text) else { continue }
            return .seconds(min(max(date.timeIntervalSince(now), 0), longest))
        }
        return nil
    }
}

extension HTTPError: LocalizedError, CustomNSError, ReportedError {
    package func text(depth: Int) -> String {
        "“\(RequestName.of(method, url))” was answered with status \(status), \(phrase)."
    }

    private var phrase: String { HTTPURLResponse.localizedString(forStatusCode: status) }

    package var numericCode: Int { status }
}

/// How requests are written in names and messages: without a query, a user and a password, which may be secret.
enum RequestName {
    static func of(_ method: String?, _ url: URL?) -> String {
        guard let url, var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return method ?? "GET"
        }
        components.user = nil
        components.password = nil
        components.query = nil
        components.fragment = nil
        return "\(method ?? "GET") \(components.string ?? "")"
    }
}
