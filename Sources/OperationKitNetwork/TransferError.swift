public import Foundation
public import OperationKit

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that did not get its answer, or only a part of it.
///
/// An upload whose file could not be read, or became shorter while it was sent, ends with the code `cannotOpenFile`. Like
/// a ``DownloadError``, it is not tried again by the policy ``OperationKit/RetryPolicy/http``. If the file could not be
/// read, the underlying error is that of the system.
public struct TransferError: Sendable, LocalizedError, CustomNSError, ReportedError {
    /// The method of the request.
    public let method: String
    /// The URL of the request.
    public let url: URL?
    /// What went wrong, as Foundation calls it.
    public let code: URLError.Code
    /// What went wrong, in words.
    public let message: String
    /// Why a file could not be read.
    private var cause: (any Error)?

    /// Creates an error, for tests of code that handles one.
    public init(method: String, url: URL?, code: URLError.Code, message: String) {
        self.method = method
        self.url = url
        self.code = code
        self.message = message
    }

    /// Whether the same request may get its answer later: there was no connection, or it broke off, or it took too long.
    ///
    /// A host whose name is not found is none of these. On Linux, that is also what a machine without a network finds.
    public var isTransient: Bool {
        switch code {
        case .unknown, .timedOut, .cannotConnectToHost, .networkConnectionLost, .badServerResponse,
            .notConnectedToInternet:
            true
        default: false
        }
    }

    package func text(depth: Int) -> String { "“\(RequestName.of(method, url))” failed: \(message)" }

    package var underlyingError: (any Error)? { cause ?? NSError(domain: NSURLErrorDomain, code: code.rawValue) }
}

extension TransferError {
    /// The error with which a task of a session has ended.
    init(_ error: any Error, of request: URLRequest) {
        let words = error.localizedDescription
        let code = Self.code(error.foundationCode, words)
        let cause = code == .cannotOpenFile ? (error as? URLError)?.userInfo[NSUnderlyingErrorKey] as? any Error : nil
        let source = request.httpBodyStream == nil ? "file" : "stream"
        let message = cause.map { "its \(source) could not be read: \($0.systemText)" }
        self.init(
            method: request.httpMethod ?? "GET", url: request.url, code: code,
            message: message ?? Self.explanation(code, words, request))
        self.cause = cause
    }

    /// What is wrong with a request or its answer, found by an operation itself.
    init(_ code: URLError.Code, _ message: String, of request: URLRequest) {
        self.init(method: request.httpMethod ?? "GET", url: request.url, code: code, message: message)
    }

    /// What Foundation for Linux says, in the words of the library under it, of an answer that it can't read.
    private static let unreadable = [
        "HTTP/0.9", "Unsupported HTTP", "Unsupported response code", "Failed writing header", "Header without colon",
        "Nul byte in header", "Too large response headers", "Invalid Content-Length", "in chunked-encoding",
        "Unrecognized content encoding", "processing content unencoding", "bad HTTP Content or Transfer-Encoding",
    ]

    /// On Linux, Foundation has one code for all that fails while a connection becomes secure, for what breaks off and for
    /// what can't be read, and blames the URL for some of that.
    private static func code(_ code: URLError.Code, _ words: String) -> URLError.Code {
        if unreadable.contains(where: words.contains) { return .cannotParseResponse }
        guard code == .unknown else { return code }
        if words.contains("SSL certificate") || words.contains("SSL: no alternative certificate") {
            return .serverCertificateUntrusted
        }
        return words.contains("SSL routines") ? .secureConnectionFailed : code
    }

    /// What Foundation says, or more where that is too little.
    private static func explanation(_ code: URLError.Code, _ words: String, _ request: URLRequest) -> String {
        let sentence = words.asSentence
        return switch code {
        case .badURL: "its URL is not valid."
        case .unsupportedURL: "its URL, or one to which it was redirected, is none of HTTP."
        case .dataLengthExceedsMaximum: "a request with the method \(request.httpMethod ?? "GET") has no body."
        case .timedOut:
            "nothing came for too long: the limit is \(Duration.seconds(request.timeoutInterval).shortText)."
        case .networkConnectionLost: "the connection was reset."
        case .cannotParseResponse: "the answer can't be read: \(sentence)"
        case .badServerResponse: "the server closed the connection, or redirected to no URL."
        case .cannotOpenFile: "its file became shorter while it was sent."
        case .httpTooManyRedirects: "it was redirected too often."
        case .requestBodyStreamExhausted: "it was redirected, and a stream can't be sent twice."
        default: sentence
        }
    }
}

extension Error {
    /// Its code, also where Linux has not made a `URLError` of it.
    fileprivate var foundationCode: URLError.Code {
        let error = self as NSError
        return error.domain == NSURLErrorDomain ? URLError.Code(rawValue: error.code) ?? .unknown : .unknown
    }
}

extension URLError {
    /// The error of a file that became shorter or, with a cause, could not be read.
    static func unreadableFile(_ cause: (any Error)?) -> URLError {
        URLError(.cannotOpenFile, userInfo: cause.map { [NSUnderlyingErrorKey: $0] } ?? [:])
    }
}

extension Error {
    /// The words of the system for it, or for the error under it. Foundation may say no more than its number.
    var systemText: String {
        var error = self as NSError
        // An error may be the cause of itself.
        for _ in 0..<16 where error.domain != NSPOSIXErrorDomain {
            if let next = error.userInfo[NSUnderlyingErrorKey] as? any Error { error = next as NSError }
        }
        guard error.domain == NSPOSIXErrorDomain else { return localizedDescription }
        return unsafe String(cString: strerror(Int32(error.code))) + "."
    }
}
