public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// What a server says about the body that it sends.
public struct HTTPResponse: Sendable {
    /// The response as Foundation has it.
    public let urlResponse: URLResponse

    /// Creates a response, for tests of code that uses one.
    public init(_ urlResponse: URLResponse) {
        self.urlResponse = urlResponse
    }

    /// The status; 200 where the scheme of the URL is not one of HTTP.
    public var status: Int { (urlResponse as? HTTPURLResponse)?.statusCode ?? 200 }

    /// The URL from which the body comes, which differs from that of the request after a redirection.
    public var url: URL? { urlResponse.url }

    /// Returns the value of a header field. Upper and lower case make no difference.
    public func value(forHTTPHeaderField field: String) -> String? {
        (urlResponse as? HTTPURLResponse)?.value(forHTTPHeaderField: field)
    }

    /// When the server has answered, by its own clock; `nil` if it does not say so.
    var date: Date? { value(forHTTPHeaderField: "Date").flatMap(HTTPDate.date) }

    /// Whether the body is sent in another form than it is received in, so that its length is not known.
    var isEncoded: Bool {
        guard let encoding = value(forHTTPHeaderField: "Content-Encoding") else { return false }
        return encoding.lowercased() != "identity"
    }
}

/// The dates of header fields.
enum HTTPDate {
    /// The forms that servers may send, the obsolete ones last: RFC 9110, 5.6.7.
    private static let formats = [
        "EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy",
    ]

    static func date(of text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        for format in formats {
            formatter.dateFormat = format
            if let date = formatter.date(from: text) { return date }
        }
        return nil
    }
}

/// What a server has answered.
public struct HTTPOutput: Sendable {
    /// The body.
    public let data: Data
    /// The status and the header fields.
    public let response: HTTPResponse

    /// Creates an output, for tests of code that uses one.
    public init(data: Data, response: HTTPResponse) {
        self.data = data
        self.response = response
    }

    /// The body as text. What is no UTF-8 is replaced.
    public var text: String { String(decoding: data, as: UTF8.self) }
}
