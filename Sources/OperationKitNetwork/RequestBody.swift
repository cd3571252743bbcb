import Foundation
import OperationKit

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The body of a request on Linux: data, or the content of a file, as a stream that knows its length and can begin again.
///
/// Foundation sends neither data nor a file again on a new connection if the server has just closed the one that was to be used again, and
/// the request waits until it times out. If the connection is lost, or the task cancelled, while a part of a file is being read, an upload task
/// ends the program. A stream is read by the transfer itself. If the server closes while the header is being sent, the first part of the
/// new stream may still be lost, and the request waits: this was seen once in a thousand requests to such a server.
///
/// A file is sent with the length that it had at first, which the header of the request announces.
final class RequestBody: InputStream {
    enum Source: Sendable {
        case data(Data)
        case file(URL)

        fileprivate var count: Int {
            switch self {
            case .data(let data): return data.count
            // One that is gone has no size. The attempt to read it says why.
            case .file(let file): return file.attributes?[.size] as? Int ?? 1
            }
        }
    }

    private let source: Source
    let count: Int
    private let lock = NSLock()
    private var left: Int
    /// That of all that begin again, because a task knows only the first one.
    private let fault: Locked<URLError?>

    convenience init?(_ source: Source) {
        self.init(source, count: source.count, fault: Locked(nil))
    }

    private init?(_ source: Source, count: Int, fault: Locked<URLError?>) {
        (self.source, self.count, self.fault, left) = (source, count, fault, count)
        switch source {
        case .data(let data): super.init(data: data)
        case .file(let file): super.init(url: file)
        }
    }

    /// What was wrong with a file: it has become shorter, or could not be read, which has a cause.
    var error: URLError? { fault.withLock { $0 } }

    /// The same from the beginning on.
    var again: RequestBody? { RequestBody(source, count: count, fault: fault) }

    var data: Data? { if case .data(let data) = source { data } else { nil } }

    // MARK: - Reading

    override var hasBytesAvailable: Bool { lock.withLock { left > 0 } }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let wanted = lock.withLock { min(left, maxLength) }
        if wanted == 0 { return 0 }
        let count = unsafe super.read(buffer, maxLength: wanted)
        guard count > 0 else {
            let fault = URLError.unreadableFile(count < 0 ? streamError ?? URLError(.unknown) : nil)
            self.fault.withLock { $0 = fault }
            // An error ends the request. Otherwise the server would wait for what is missing.
            return -1
        }
        lock.withLock { left -= count }
        return count
    }

    // MARK: - Headers

    // A field that is blank is left out, as is what would stand there: that parts of unknown length come, and that they are a form.
    private static let blank = " "
    private static let (length, encoding, type) = ("Content-Length", "Transfer-Encoding", "Content-Type")

    /// The request with this body.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - isForm: Whether it is a form if it does not say what it is.
    /// - Returns: The request with the body.
    func body(of request: URLRequest, isForm: Bool) -> URLRequest {
        var request = request
        request.httpBody = nil
        request.httpBodyStream = self
        request.setValue(String(count), forHTTPHeaderField: Self.length)
        request.setValue(Self.blank, forHTTPHeaderField: Self.encoding)
        if !isForm, request.value(forHTTPHeaderField: Self.type) == nil {
            request.setValue(Self.blank, forHTTPHeaderField: Self.type)
        }
        return request
    }

    /// The request with a stream of the user. Linux sends parts of unknown length, also where the request has a length, which would
    /// contradict that; and a stream may have another one.
    static func withoutLength(_ request: URLRequest) -> URLRequest {
        var request = request
        request.setValue(nil, forHTTPHeaderField: length)
        return request
    }

    /// The request without the body and what was set for it.
    static func removed(from request: URLRequest) -> URLRequest {
        var request = request
        request.httpBodyStream = nil
        for field in [length, encoding] { request.setValue(nil, forHTTPHeaderField: field) }
        if request.value(forHTTPHeaderField: type) == blank { request.setValue(nil, forHTTPHeaderField: type) }
        return request
    }
}

/// The use of a stream by the one operation that sends it.
struct StreamUse: @unchecked Sendable {
    private static let current = Locked<[ObjectIdentifier: StreamUse]>([:])

    private let stream: InputStream

    /// - Returns: `nil` if the stream was opened before, or another operation uses it.
    init?(_ stream: InputStream) {
        self.stream = stream
        let own = self
        let isFree = Self.current.withLock { uses in
            let isFree = uses[ObjectIdentifier(stream)] == nil
            if isFree { uses[ObjectIdentifier(stream)] = own }
            return isFree
        }
        if !isFree { return nil }
        if stream.streamStatus != .notOpen {
            end()
            return nil
        }
    }

    /// Opens it on Linux, where a session can send a stream that is open. One of another class may not expect that.
    func openIfPossible() {
        #if canImport(FoundationNetworking)
        if type(of: stream) == InputStream.self { stream.open() }
        #endif
    }

    /// Makes it free for others, to which it is of use only if it was not opened.
    func end() {
        // Released after unlocking; it may be of a class of the user.
        let use = Self.current.withLock { $0.removeValue(forKey: ObjectIdentifier(stream)) }
        withExtendedLifetime(use) {}
    }
}

extension InputStream {
    /// Why it could not be opened or read, if that is so. On Linux, only a stream with that status may be asked for its error.
    var failure: URLError? { streamStatus == .error ? .unreadableFile(streamError) : nil }
}

extension URL {
    /// What is known of the file, also behind a symbolic link; `nil` if there is none.
    var attributes: [FileAttributeKey: Any]? {
        try? FileManager.default.attributesOfItem(atPath: resolvingSymlinksInPath().path)
    }
}

extension URLSession {
    /// Makes a task for a request with its own body.
    func task(for request: URLRequest) -> URLSessionTask {
        #if canImport(FoundationNetworking)
        // Foundation refuses a GET with data.
        if let data = request.httpBody, !data.isEmpty, request.httpMethod != "GET",
            let body = RequestBody(.data(data))
        {
            return dataTask(with: body.body(of: request, isForm: true))
        }
        if request.httpBodyStream != nil { return dataTask(with: RequestBody.withoutLength(request)) }
        #endif
        return dataTask(with: request)
    }

    /// Makes a task for a request with a body from elsewhere.
    func task(for request: URLRequest, sending source: RequestBody.Source) -> URLSessionTask {
        #if canImport(FoundationNetworking)
        if request.httpMethod != "GET", let body = RequestBody(source) {
            return dataTask(with: body.body(of: request, isForm: false))
        }
        #endif
        return switch source {
        case .data(let data): uploadTask(with: request, from: data)
        case .file(let file): uploadTask(with: request, fromFile: file)
        }
    }
}

extension URLSessionTask {
    /// The body that it sends, on Linux.
    var requestBody: RequestBody? { originalRequest?.httpBodyStream as? RequestBody }
}
