public import Foundation
import OperationKit

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// An operation that sends a request, and whose output is the answer.
///
/// ```swift
/// import FoundationNetworking
///
/// let page = DataTaskOperation(URL(string: "https://example.com/news")!)
/// page.timeout = .seconds(30)
/// print(try await OperationQueue().run(page).text)
/// ```
///
/// See ``RequestOperation`` for how it ends. The body is kept in memory, and nothing limits its size: use a ``DownloadTaskOperation`` for one
/// that is large. What a server sends compressed may take its full size in memory, also where it is an error.
public final class DataTaskOperation: RequestOperation<HTTPOutput>, @unchecked Sendable {
    /// Creates an operation.
    ///
    /// - Parameters:
    ///   - request: The request; `nil` if it is set, or bound, later.
    ///   - name: The name of the operation. The default is the method and the URL, without its query.
    public override init(_ request: URLRequest? = nil, name: String? = nil) {
        super.init(request, name: name)
    }

    /// Creates an operation that gets what is at a URL.
    public convenience init(_ url: URL, name: String? = nil) {
        self.init(URLRequest(url: url), name: name)
    }

    override func send(_ request: URLRequest) throws {
        start(BodyTransfer(request, for: self))
    }
}

/// An operation that sends data or a file, and whose output is the answer.
///
/// ```swift
/// import FoundationNetworking
///
/// var request = URLRequest(url: URL(string: "https://example.com/photos")!)
/// request.httpMethod = "POST"
/// let upload = UploadTaskOperation(request, fromFile: URL(fileURLWithPath: "photo.jpeg"))
/// OperationQueue().addOperation(upload)
/// ```
///
/// See ``RequestOperation`` for how it ends. A file is read while it is sent, so its size does not matter. One that
/// is said to be empty, as those of `/proc` are, is read before.
public final class UploadTaskOperation: RequestOperation<HTTPOutput>, @unchecked Sendable {
    private let source: RequestBody.Source

    /// Creates an operation that sends a file. What is no file, or can't be read, ends it with a ``TransferError``. A URL without a scheme
    /// is a path.
    public init(_ request: URLRequest? = nil, fromFile file: URL, name: String? = nil) {
        source = .file(file.asFile)
        super.init(request, name: name)
    }

    /// Creates an operation that sends data.
    public init(_ request: URLRequest? = nil, from data: Data, name: String? = nil) {
        source = .data(data)
        super.init(request, name: name)
    }

    override var sendsBody: Bool { true }

    override func send(_ request: URLRequest) throws {
        start(BodyTransfer(request, for: self, sending: try body(of: request)))
    }

    private func body(of request: URLRequest) throws -> RequestBody.Source {
        guard case .file(let file) = source else { return source }
        guard let size = Self.size(of: file) else {
            throw TransferError(.fileDoesNotExist, "“\(file.place)” is no file that can be read.", of: request)
        }
        guard size == 0 else { return source }
        // Those of the system, as in `/proc`, say that they are empty.
        do {
            let data = try Data(contentsOf: file)
            return data.isEmpty ? source : .data(data)
        } catch {
            throw TransferError(URLError.unreadableFile(error), of: request)
        }
    }

    /// The size that a file is said to have; `nil` if it is none that can be read.
    private static func size(of file: URL) -> Int? {
        guard file.isFileURL, let attributes = file.attributes,
            attributes[.type] as? FileAttributeType == .typeRegular,
            FileManager.default.isReadableFile(atPath: file.path)
        else { return nil }
        return attributes[.size] as? Int
    }
}

/// A transfer whose answer is kept in memory. What changes belongs to the queue of the session.
final class BodyTransfer: TransferHandler, @unchecked Sendable {
    private let request: URLRequest
    private let operation: RequestOperation<HTTPOutput>
    /// A body from elsewhere, whose progress counts.
    private let source: RequestBody.Source?
    private var response: HTTPResponse?
    private var body = Data()
    /// How much of the request's own body was sent at most.
    private var sent: Int64 = 0

    init(
        _ request: URLRequest, for operation: RequestOperation<HTTPOutput>, sending source: RequestBody.Source? = nil
    ) {
        self.request = request
        self.operation = operation
        self.source = source
    }

    func makeTask(in session: URLSession, redirectedTo redirection: URLRequest?) -> URLSessionTask {
        let request = redirection ?? request
        return source.map { session.task(for: request, sending: $0) } ?? session.task(for: request)
    }

    func received(_ response: URLResponse) -> Bool {
        self.response = HTTPResponse(response)
        body = Data()
        return true
    }

    func received(_ data: Data) -> Bool {
        body.append(data)
        // The rest of a long page about an error is not kept.
        if let response, !operation.accepts(response) { return body.count < HTTPError.longestBody }
        if source == nil, let response, !response.isEncoded {
            operation.progressed(to: Int64(body.count), of: response.urlResponse.expectedContentLength)
        }
        return true
    }

    func sent(_ count: Int64, of total: Int64) {
        // A redirection has it sent again. A progress that is complete twice counts twice in the one around it.
        guard source != nil, count > sent else { return }
        sent = count
        operation.progressed(to: count, of: total)
    }

    func completed(with error: (any Error)?) {
        if let error {
            operation.end(with: .failure(TransferError(error, of: request)))
        } else if let response {
            operation.end(
                with: operation.accepts(response)
                    ? .success(HTTPOutput(data: body, response: response))
                    : .failure(HTTPError(request, response, body)))
        } else {
            operation.end(with: .failure(TransferError(URLError(.badServerResponse), of: request)))
        }
    }
}

extension HTTPError {
    /// How much of a body is kept.
    static let longestBody = 4_096

    init(_ request: URLRequest, _ response: HTTPResponse, _ body: Data) {
        self.init(
            method: request.httpMethod ?? "GET", url: request.url, response: response,
            body: body.prefix(Self.longestBody))
    }
}
