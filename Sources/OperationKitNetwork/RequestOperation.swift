public import OperationKit

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// What operations that send a request have in common: ``DataTaskOperation``, ``UploadTaskOperation`` and ``DownloadTaskOperation``.
///
/// Its ``/OperationKit/IOOperation/input`` is the request. It ends
///
/// | when | with |
/// |---|---|
/// | the server has answered with a status below 400, or one of ``acceptedStatuses`` | its output |
/// | it has answered with another status | ``HTTPError`` |
/// | there is no answer, or only a part of one | ``TransferError`` |
/// | its method, a header field or a body can't be sent as it is | ``TransferError``, and nothing was sent |
/// | it was cancelled | `CancellationError`, or the reason, such as a timeout |
///
/// Informational answers, those with a status below 200, are passed over.
///
/// Redirections are followed, about twenty at most. One to another server, which is another scheme, host or port, drops `Authorization`,
/// `Cookie` and `Host`: so one from `http` to `https` may end with status 401. Other header fields with secrets, such as `X-Api-Key`, go
/// along. Status 303 of any request but a HEAD, and 301 or 302 of a POST, lead to a GET without a body. Otherwise method and body stay: the
/// body is sent again from its beginning, which an `httpBodyStream` can't be, so that such a request ends with a ``TransferError``, as
/// does a further attempt, or another operation, with the same stream. So does a redirection without a URL.
///
/// On Linux, the `setValue` and `addValue` of a request ignore a value with a line break, which the operation can't see. An
/// environment variable such as `http_proxy` names a proxy there.
///
/// A request that the server wants credentials for ends with status 401: send an `Authorization` header field. The
/// `timeoutInterval` of the request is the longest time in which nothing comes, in whole seconds; `timeout` of the operation limits all of it.
///
/// The progress counts bytes, of the body that is sent by an ``UploadTaskOperation``, or else of the one that comes, if its length is known:
/// that of a body that is sent compressed is not. They don't go back when a redirection has the body sent again.
///
/// Other code that finishes the operation stops the transfer, which may use its file for a moment more. No thread waits for the network.
/// On Linux, a stream that waits holds up all requests, and Foundation keeps a processor busy for as long as a request on a new connection
/// waits for its answer. The class has no other subclasses than these.
public class RequestOperation<Output: Sendable>: IOOperation<URLRequest, Output>, @unchecked Sendable {
    private let lock = NSLock()
    private var statuses: Set<Int> = []
    /// The statuses as they were when the request was sent, so that a body that was begun is not given up; `nil` before.
    private var accepted: Set<Int>?
    private var transfer: (any TransferHandler)?

    init(_ request: URLRequest?, name: String?) {
        super.init()
        input = request
        self.name = name ?? request.map { RequestName.of($0.httpMethod, $0.url) }
    }

    /// The statuses of 400 or more that are no error. The default is none. Changes have no effect once the request is sent.
    public final var acceptedStatuses: Set<Int> {
        get { lock.withLock { statuses } }
        set { lock.withLock { statuses = newValue } }
    }

    /// Sends the request, when the library calls this method. Otherwise it does nothing.
    public final override func main(input request: URLRequest) {
        guard hasReachedMain, lock.withLock({ beginsWithStatuses() }), !isFinished else { return }
        if name == nil { name = RequestName.of(request.httpMethod, request.url) }
        do {
            // First: a change of a request without a URL ends the program.
            if let flaw = request.flaw { throw TransferError(.badURL, flaw, of: request) }
            // A task for data ends the program on Linux if it is one of a web socket.
            if ["ws", "wss"].contains(request.url?.scheme?.lowercased()) {
                throw TransferError(URLError(.unsupportedURL), of: request)
            }
            // Linux announces the body, for which the server waits, and does not send it.
            if request.httpMethod == "HEAD", sendsBody || request.hasBody {
                throw TransferError(URLError(.dataLengthExceedsMaximum), of: request)
            }
            if let stream = request.httpBodyStream { try open(stream, of: request) }
            var request = request
            request.url = request.url?.withLowercaseScheme
            request.timeoutInterval = Self.idleLimit(request.timeoutInterval)
            try send(request)
        } catch {
            finish(withError: error)
        }
    }

    /// Keeps a stream from other operations until the end, and opens it where that is safe: a stream that can't be opened would be sent as
    /// an empty body.
    private func open(_ stream: InputStream, of request: URLRequest) throws {
        // An earlier attempt may have read it, or another operation reads it now. What is left of it, or nothing, would count as the
        // body.
        guard let use = StreamUse(stream) else {
            throw TransferError(
                .requestBodyStreamExhausted, "its stream was opened before, and can't be sent twice.", of: request)
        }
        FinishObserver(self) { use.end() }
        use.openIfPossible()
        if let failure = stream.failure { throw TransferError(failure, of: request) }
    }

    /// - Returns: Whether it had not begun. Otherwise the statuses stay as they were then.
    private func beginsWithStatuses() -> Bool {
        if accepted != nil { return false }
        accepted = statuses
        return true
    }

    /// Stops the transfer. Don't call this method yourself.
    public final override func didCancel() {
        if let transfer = lock.withLock({ transfer }) { RequestSession.shared.cancel(transfer) }
    }

    /// Linux cuts it to whole seconds, zero is no time at all, and what is no number of milliseconds ends the program.
    private static func idleLimit(_ interval: TimeInterval) -> TimeInterval {
        let longest: TimeInterval = 1_000_000
        return interval.isNaN ? longest : min(max(1, interval.rounded(.up)), longest)
    }

    func send(_ request: URLRequest) throws {}

    /// Whether it sends another body than that of the request.
    var sendsBody: Bool { false }

    final func start(_ transfer: any TransferHandler) {
        lock.withLock { self.transfer = transfer }
        RequestSession.shared.start(transfer)
        // Also if other code finishes the operation.
        FinishObserver(self) { [weak self] in self?.didCancel() }
    }

    /// Ends the operation, away from the thread of the session.
    final func end(with result: Result<Output, any Error>) {
        lock.withLock { transfer = nil }
        DispatchQueue(label: "OperationKit.request").async { [self] in
            switch result {
            case .success(let output): finish(with: output)
            case .failure(let error): finish(withError: isCancelled ? CancellationError() : error)
            }
        }
    }

    final func progressed(to count: Int64, of total: Int64) {
        guard total > 0 else { return }
        let (progress, count) = (progress, min(count, total))
        // What is complete would count twice, and the next answer may be shorter than what came of the one before.
        if total < progress.totalUnitCount { progress.completedUnitCount = count }
        if progress.totalUnitCount != total { progress.totalUnitCount = total }
        progress.completedUnitCount = count
    }

    final func accepts(_ response: HTTPResponse) -> Bool {
        response.status < 400 || lock.withLock { accepted }?.contains(response.status) == true
    }
}

extension URLRequest {
    /// What is wrong with a request that would not be sent as it is; `nil` if nothing is.
    ///
    /// Linux sends methods, names and values with line breaks, and what follows in them counts as another field or request. It leaves
    /// out the rest of a value after a NUL character. The values may be secret.
    fileprivate var flaw: String? {
        if url == nil { return "it has no URL." }
        if !(httpMethod ?? "GET").isToken { return "its method is not valid." }
        for (field, value) in allHTTPHeaderFields ?? [:] {
            if !field.isToken { return "the name of its header field “\(field.onOneLine)” is not valid." }
            if value.unicodeScalars.contains(where: { "\0\n\r".unicodeScalars.contains($0) }) {
                return "the value of its header field “\(field)” has a line break or a NUL character."
            }
            // Linux leaves the field out, but for an empty value.
            if !value.isEmpty, value.allSatisfy({ $0 == " " || $0 == "\t" }) {
                return "the value of its header field “\(field)” is blank."
            }
        }
        return nil
    }
}

extension URLRequest {
    /// Whether it has a body of its own.
    var hasBody: Bool { httpBody?.isEmpty == false || httpBodyStream != nil }
}

extension String {
    /// Whether it can be a method or the name of a header field: RFC 9110, section 5.6.2.
    fileprivate var isToken: Bool {
        !isEmpty
            && unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || "0123456789!#$%&'*+-.^_`|~".unicodeScalars.contains($0))
            }
    }
}

extension URL {
    /// Linux refuses a scheme with capitals.
    var withLowercaseScheme: URL {
        guard let scheme, scheme != scheme.lowercased() else { return self }
        return URL(string: scheme.lowercased() + absoluteString.dropFirst(scheme.count)) ?? self
    }
}
