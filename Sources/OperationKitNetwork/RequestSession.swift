import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What is done with the answer of one request. All methods are called on the queue of the ``RequestSession``.
protocol TransferHandler: AnyObject, Sendable {
    /// Creates the task.
    ///
    /// - Parameters:
    ///   - session: The session.
    ///   - redirection: The request to which a server has redirected it, which sends the same body; `nil` for its own.
    /// - Returns: A task that has not begun.
    func makeTask(in session: URLSession, redirectedTo redirection: URLRequest?) -> URLSessionTask

    /// The answer begins.
    ///
    /// - Returns: Whether its body is wanted. If not, the task is cancelled.
    func received(_ response: URLResponse) -> Bool

    /// A part of the body has come.
    ///
    /// - Returns: Whether more is wanted. If not, the task is cancelled.
    func received(_ data: Data) -> Bool

    /// A part of the request's own body was sent.
    func sent(_ count: Int64, of total: Int64)

    /// The task has ended. Called once, last.
    func completed(with error: (any Error)?)
}

/// The session of all requests of the program.
///
/// There is one, and it is never invalidated: on Linux a session that ends while a request of it is cancelled ends the program. It has no
/// cache, because a cancellation during a look-up does the same. Neither the asynchronous functions nor the handlers of a session are
/// used: the first ones wait forever when they are cancelled, the second ones keep bodies in memory.
final class RequestSession: NSObject, @unchecked Sendable {
    static let shared = RequestSession()

    private let queue = OperationQueue()
    private(set) var session: URLSession!
    /// Used on the queue only.
    private var transfers: [Int: Running] = [:]

    private struct Running {
        let task: URLSessionTask
        let handler: any TransferHandler
        /// What the server has answered to a request without credentials.
        var refusal: URLResponse?
        var hasResponse = false
        /// Whether the rest is not wanted.
        var isStopped = false
        var isCancelled = false
        var redirectionCount = 0
        /// What follows the end of the task, which does not follow its redirection itself.
        var next: Result<URLRequest, URLError>?
    }

    /// As many as Foundation follows within one task.
    private static let mostRedirections = 20

    private override init() {
        super.init()
        queue.name = "OperationKit.requests"
        queue.maxConcurrentOperationCount = 1
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        // Those of one request would go along with all others to the host, in place of a `Cookie` that these have.
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        // A request that waits for a connection is idle, and would time out. Limits are those of queues and resources.
        #if canImport(FoundationNetworking)
        // No limit.
        configuration.httpMaximumConnectionsPerHost = 0
        #else
        configuration.httpMaximumConnectionsPerHost = 1_000
        #endif
        session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
    }

    /// Sends a request.
    func start(_ handler: any TransferHandler) {
        perform { $0.begin(handler) }
    }

    /// Calls a closure on the queue, in the order of these calls, and before what has come of answers: of a fast one there may be
    /// hundreds of megabytes.
    private func perform(_ body: @escaping @Sendable (RequestSession) -> Void) {
        let operation = BlockOperation { [self] in body(self) }
        operation.queuePriority = .veryHigh
        queue.addOperation(operation)
    }

    /// Sends a request. Called on the queue, also while the handler is told that the last one has completed.
    func begin(
        _ handler: any TransferHandler, redirectedTo redirection: URLRequest? = nil, count: Int = 0
    ) {
        let task = handler.makeTask(in: session, redirectedTo: redirection)
        transfers[task.taskIdentifier] = Running(task: task, handler: handler, redirectionCount: count)
        task.resume()
    }

    /// Stops a request that was sent. Does nothing once it has ended.
    func cancel(_ handler: any TransferHandler) {
        // Not on the thread of the caller: cancelling a task that ends at this moment ends the program on Linux.
        perform { session in
            guard let (identifier, transfer) = session.transfers.first(where: { $1.handler === handler }) else {
                return
            }
            session.transfers[identifier]?.isCancelled = true
            transfer.task.cancel()
        }
    }

    private func stop(_ task: URLSessionTask) {
        transfers[task.taskIdentifier]?.isStopped = true
        // The disposition `.cancel` of a response is ignored on Linux.
        task.cancel()
    }
}

extension RequestSession: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        defer { completionHandler(.allow) }
        guard let transfer = transfers[dataTask.taskIdentifier], transfer.next == nil, !response.isInformational
        else { return }
        transfers[dataTask.taskIdentifier]?.hasResponse = true
        if !transfer.handler.received(response) { stop(dataTask) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard let transfer = transfers[dataTask.taskIdentifier], transfer.next == nil else { return }
        if !transfer.isStopped, !transfer.isCancelled, !transfer.handler.received(data) { stop(dataTask) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        let total = task.requestBody.map { Int64($0.count) } ?? totalBytesExpectedToSend
        transfers[task.taskIdentifier]?.handler.sent(totalBytesSent, of: total)
    }

    /// Called on a thread of Foundation, when a connection that was used again turns out to be closed.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(task.requestBody?.again)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        switch challenge.protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodDefault:
            // The default handling waits forever on Linux. The task ends as cancelled now.
            transfers[task.taskIdentifier]?.refusal = challenge.failureResponse
            completionHandler(.rejectProtectionSpace, nil)
        default:
            completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        if transfers[task.taskIdentifier]?.isCancelled == true {
            #if !canImport(FoundationNetworking)
            completionHandler(nil)
            #endif
            // On Linux the task has ended, and an answer now would end the program.
            return
        }
        #if canImport(FoundationNetworking)
        // This call has waited for the queue until the limit of idle time was over. Foundation has ended the task, and
        // says so only by its response. An answer now would end the program.
        if let response = task.response, !response.isInformational {
            transfers[task.taskIdentifier]?.next = .failure(URLError(.timedOut))
            return task.cancel()
        }
        #endif
        var request = request
        // Linux takes a relative one for a path from the root on, and one without a host for a path on the same server.
        if let place = response.value(forHTTPHeaderField: "Location"), let base = response.url,
            let url = URL(string: place, relativeTo: base)?.absoluteURL
        {
            if url.host?.isEmpty != false || !["http", "https"].contains(url.scheme?.lowercased()) {
                transfers[task.taskIdentifier]?.next = .failure(URLError(.unsupportedURL))
                return completionHandler(nil)
            }
            request.url = url.withLowercaseScheme
        }
        // Linux sends them to any server that one names. There, a field may be set several times, in several spellings. A
        // `Host` is that of the first server.
        if response.url?.origin != request.url?.origin {
            for (field, _) in request.allHTTPHeaderFields ?? [:]
            where ["authorization", "cookie", "host"].contains(field.lowercased()) {
                request.setValue(nil, forHTTPHeaderField: field)
            }
        }
        transfers[task.taskIdentifier]?.redirectionCount += 1
        if task.hasBody { request = RequestBody.removed(from: request) }
        // Linux makes a GET of one with status 303.
        if task.originalRequest?.httpMethod == "HEAD" { request.httpMethod = "HEAD" }
        guard let first = task.originalRequest, task.hasBody, request.httpMethod == first.httpMethod else {
            return completionHandler(request)
        }
        // Linux leaves the body out. So the task ends with the redirection, and another one sends the body again.
        request.httpBody = task.requestBody?.data ?? first.httpBody
        if task.stream != nil {
            transfers[task.taskIdentifier]?.next = .failure(URLError(.requestBodyStreamExhausted))
        } else if transfers[task.taskIdentifier]?.redirectionCount ?? 0 > Self.mostRedirections {
            transfers[task.taskIdentifier]?.next = .failure(URLError(.httpTooManyRedirects))
        } else {
            transfers[task.taskIdentifier]?.next = .success(request)
        }
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        // Linux calls this on a thread of its own for a URL with data that can't be read, and then keeps the task for ever.
        guard OperationQueue.current === queue else {
            return perform {
                $0.urlSession(session, task: task, didCompleteWithError: error)
                task.cancel()
            }
        }
        guard let transfer = transfers.removeValue(forKey: task.taskIdentifier) else { return }
        if let next = transfer.next {
            switch next {
            case _ where transfer.isCancelled: transfer.handler.completed(with: URLError(.cancelled))
            case .success(let request):
                begin(transfer.handler, redirectedTo: request, count: transfer.redirectionCount)
            case .failure(let error): transfer.handler.completed(with: error)
            }
        } else if let refusal = transfer.refusal, (error as? URLError)?.code == .cancelled {
            if !transfer.hasResponse { _ = transfer.handler.received(refusal) }
            transfer.handler.completed(with: nil)
        } else {
            // What has come since a cancellation was dropped, so even all of it is no success.
            let cancellation = transfer.isCancelled ? URLError(.cancelled) : nil
            let unreadable = task.requestBody?.error ?? task.stream?.failure
            let isStopped = transfer.isStopped && !transfer.isCancelled
            transfer.handler.completed(with: isStopped ? nil : unreadable ?? error ?? cancellation)
        }
    }
}

extension URLResponse {
    /// Whether the answer is still to come. Linux reports early hints and others like an answer. After a change of the
    /// protocol, which no operation asks for, none comes.
    fileprivate var isInformational: Bool { (100..<200).contains(HTTPResponse(self).status) }
}

extension URLSessionTask {
    /// Whether it sends anything beside the header.
    fileprivate var hasBody: Bool {
        self is URLSessionUploadTask || originalRequest?.httpBody != nil || originalRequest?.httpBodyStream != nil
    }

    /// The stream of the user that it sends, which can be read only once.
    fileprivate var stream: InputStream? {
        self is URLSessionUploadTask || requestBody != nil ? nil : originalRequest?.httpBodyStream
    }
}

extension URL {
    /// What makes it the same server.
    fileprivate var origin: [String?] {
        let usual = ["http": 80, "https": 443][scheme?.lowercased() ?? ""]
        return [scheme?.lowercased(), host?.lowercased(), (port ?? usual).map(String.init)]
    }
}
