public import Foundation
import OperationKit

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A file that was loaded.
public struct DownloadOutput: Sendable {
    /// The file.
    public let file: URL
    /// The status and the header fields of the last answer.
    public let response: HTTPResponse
}

/// An operation that loads a file, and goes on where an earlier one has stopped.
///
/// ```swift
/// let url = URL(string: "https://example.com/film.mp4")!
/// let film = RetryOperation(.http, name: "film") { _ in
///     DownloadTaskOperation(url, to: URL(fileURLWithPath: "film.mp4"))
/// }
/// OperationQueue().addOperation(film.with(input: URLRequest(url: url)))
/// ```
///
/// The body is written to a file beside the destination, whose name ends in `.partial`, in bounded memory. When all of it has come, that file
/// takes the place of the destination. If the download breaks off or is cancelled, what has come is kept, provided that the server says by
/// an `ETag` or a `Last-Modified` how to recognize the file. The next operation with the same URL and destination asks for the rest. If the
/// file on the server has changed, it starts over. A body that the server sends compressed, without being asked to, is stored as it was
/// before, and can't be resumed.
///
/// Two operations must not load to the same destination at the same time: the second one ends with ``DownloadError/destinationInUse(_:)``.
///
/// See ``RequestOperation`` for how it ends.
public final class DownloadTaskOperation: RequestOperation<DownloadOutput>, @unchecked Sendable {
    /// Where the file is put. A file that is there is replaced at the end.
    public let destination: URL

    /// Creates an operation.
    ///
    /// - Parameters:
    ///   - request: The request; `nil` if it is set, or bound, later.
    ///   - destination: Where the file is put.
    ///   - name: The name of the operation. The default is the method and the URL, without its query.
    public init(_ request: URLRequest? = nil, to destination: URL, name: String? = nil) {
        self.destination = destination
        super.init(request, name: name)
    }

    /// Creates an operation that loads what is at a URL.
    public convenience init(_ url: URL, to destination: URL, name: String? = nil) {
        self.init(URLRequest(url: url), to: destination, name: name)
    }

    override func send(_ request: URLRequest) throws {
        start(FileTransfer(request, for: self, try PartialFile(for: destination, of: request.url)))
    }
}

/// What went wrong with the file of a download.
public enum DownloadError: Error, Sendable {
    /// Another operation loads to the same destination. Code 1.
    case destinationInUse(URL)
    /// The file could not be written. `error` is that of the system. Code 2.
    case cannotWrite(URL, error: any Error)
}

extension DownloadError: LocalizedError, CustomNSError {
    /// A sentence that names the file.
    public var errorDescription: String? {
        switch self {
        case .destinationInUse(let file): "“\(file.path)” is being downloaded by another operation."
        case .cannotWrite(let file, let error): "“\(file.path)” could not be written: \(error.localizedDescription)"
        }
    }

    /// `OperationKit.DownloadError`.
    public static var errorDomain: String { "OperationKit.DownloadError" }

    /// The code that is documented at each case.
    public var errorCode: Int {
        switch self {
        case .destinationInUse: 1
        case .cannotWrite: 2
        }
    }

    /// The description, and the error of the system.
    public var errorUserInfo: [String: Any] {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: errorDescription ?? ""]
        if case .cannotWrite(_, let error) = self { userInfo[NSUnderlyingErrorKey] = error as NSError }
        return userInfo
    }
}

/// A transfer whose answer is written to a file. What changes belongs to the queue of the session.
final class FileTransfer: TransferHandler, @unchecked Sendable {
    private let request: URLRequest
    private let operation: DownloadTaskOperation
    private let file: PartialFile
    private var response: HTTPResponse?
    /// Of an answer that is an error.
    private var errorBody = Data()
    private var failure: (any Error)?
    /// Whether the part that is there does not fit what the server has.
    private var startsOver = false
    private var received: Int64 = 0
    private var expected: Int64 = -1

    init(_ request: URLRequest, for operation: DownloadTaskOperation, _ file: PartialFile) {
        self.request = request
        self.operation = operation
        self.file = file
    }

    func makeTask(in session: URLSession) -> URLSessionTask {
        var request = request
        // Ranges are those of what is sent, so it must not be compressed.
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if file.length > 0, let validator = file.validator {
            request.setValue("bytes=\(file.length)-", forHTTPHeaderField: "Range")
            request.setValue(validator, forHTTPHeaderField: "If-Range")
        }
        return session.dataTask(with: request)
    }

    func received(_ response: URLResponse) -> Bool {
        let response = HTTPResponse(response)
        self.response = response
        received = 0
        // The length of what is sent, which the session decodes.
        expected = response.isEncoded ? -1 : response.urlResponse.expectedContentLength
        do {
            switch response.status {
            case 206 where file.length > 0:
                let range = response.value(forHTTPHeaderField: "Content-Range") ?? ""
                // Some servers answer to `Range`, but not to `If-Range`.
                let isSame = response.validator == nil || response.validator == file.validator
                startsOver = !isSame || !range.hasPrefix("bytes \(file.length)-")
            case 416 where file.length > 0:
                startsOver = true
            case _ where operation.accepts(response):
                try file.begin(validator: response.validator)
            default: break
            }
        } catch {
            failure = error
        }
        return failure == nil && !startsOver
    }

    func received(_ data: Data) -> Bool {
        guard let response else { return false }
        guard operation.accepts(response) else {
            errorBody.append(data.prefix(HTTPError.longestBody - errorBody.count))
            return errorBody.count < HTTPError.longestBody
        }
        do {
            try file.append(data)
        } catch {
            failure = error
            return false
        }
        received += Int64(data.count)
        if expected >= 0 { operation.progressed(to: file.length, of: file.length - received + expected) }
        return true
    }

    func sent(_ count: Int64, of total: Int64) {}

    func completed(with error: (any Error)?) {
        if startsOver, !operation.isCancelled {
            startsOver = false
            do {
                try file.begin(validator: nil)
                return RequestSession.shared.startAgain(self)
            } catch {
                failure = error
            }
        }
        do {
            if let error = failure { throw error }
            if let error { throw TransferError(error, of: request) }
            guard let response, !startsOver else { throw TransferError(URLError(.badServerResponse), of: request) }
            guard operation.accepts(response) else { throw HTTPError(request, response, errorBody) }
            if expected >= 0, received != expected { throw TransferError(URLError(.unknown), of: request) }
            try file.moveToDestination()
            operation.end(with: .success(DownloadOutput(file: operation.destination, response: response)))
        } catch {
            file.stop()
            operation.end(with: .failure(error))
        }
    }
}

extension HTTPResponse {
    /// Whether the body is sent in another form than it is received in, although that was not asked for.
    fileprivate var isEncoded: Bool {
        guard let encoding = value(forHTTPHeaderField: "Content-Encoding") else { return false }
        return encoding.lowercased() != "identity"
    }

    /// What recognizes the same file later: an entity tag that is not weak, or else the date of its last change.
    fileprivate var validator: String? {
        if isEncoded { return nil }
        if let tag = value(forHTTPHeaderField: "ETag"), !tag.hasPrefix("W/") { return tag }
        return value(forHTTPHeaderField: "Last-Modified")
    }
}
