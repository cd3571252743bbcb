import OperationKitNetwork
import OperationKitTestSupport

@Suite("Errors of requests", .hangGuard, .stopsServers)
struct RequestErrorTests {
    private let queue = OperationQueue()
    private static let url = URL(string: "https://ada:secret@example.com/page?token=secret")!
    private static let unwritable = CocoaError(.fileWriteNoPermission)
    private static let tooLarge = CocoaError(.fileWriteUnknown, userInfo: [NSUnderlyingErrorKey: POSIXError(.EFBIG)])

    private static var errors: [(error: any Error, domain: String, code: Int, text: String, underlying: String?)] {
        let response = HTTPURLResponse(url: url, statusCode: 404, httpVersion: nil, headerFields: nil)!
        let file = URL(fileURLWithPath: "/tmp/page")
        return [
            (
                HTTPError(method: "GET", url: url, response: HTTPResponse(response)), "HTTPError", 404,
                "“GET https://example.com/page” was answered with status 404, \(HTTPURLResponse.localizedString(forStatusCode: 404)).",
                nil
            ),
            (
                TransferError(method: "PUT", url: url, code: .timedOut, message: "It took too long."), "TransferError",
                1,
                "“PUT https://example.com/page” failed: It took too long.", NSURLErrorDomain
            ),
            (
                DownloadError.destinationInUse(file), "DownloadError", 1,
                "“/tmp/page” is being downloaded by another operation.", nil
            ),
            (
                DownloadError.cannotWrite(file, error: unwritable), "DownloadError", 2,
                "“/tmp/page” could not be written: \(unwritable.localizedDescription)", NSCocoaErrorDomain
            ),
            (
                DownloadError.cannotWrite(file, error: tooLarge), "DownloadError", 2,
                "“/tmp/page” could not be written: File too large.", NSCocoaErrorDomain
            ),
        ]
    }

    @Test("An error names the request without its secrets, and has a domain, a code and the error of the system")
    func conversion() {
        for (error, domain, code, text, underlying) in Self.errors {
            let converted = error as NSError
            #expect(converted.domain == "OperationKit." + domain && converted.code == code)
            #expect(error.localizedDescription == text && converted.localizedDescription == text)
            #expect((converted.userInfo[NSUnderlyingErrorKey] as? NSError)?.domain == underlying)
        }
    }

    /// An error that is the cause of itself.
    private final class Circular: NSObject, CustomNSError, @unchecked Sendable {
        var errorUserInfo: [String: Any] { [NSUnderlyingErrorKey: self] }
    }

    @Test("Messages are short, and end, whatever they are about") func oddities() throws {
        let circular = DownloadError.cannotWrite(URL(fileURLWithPath: "/tmp/page"), error: Circular())
        #expect(circular.localizedDescription.hasPrefix("“/tmp/page” could not be written"))
        let long = try #require(URL(string: "https://example.com/" + String(repeating: "x", count: 10_000)))
        let name = try #require(DataTaskOperation(long).name)
        #expect(name.hasPrefix("GET https://example.com/xx") && name.hasSuffix("xx…") && name.count < 600)
        for text in ["data:,secret", "DATA:,secret"] {
            #expect(DataTaskOperation(try #require(URL(string: text))).name == "GET data:")
        }
    }

    @Test("The error of a child is spelled out with that of its request inside")
    func insideCompound() async {
        let child = ThrowingBlockOperation(name: "load") { throw Self.errors[1].error }
        let compound = CompoundOperation(name: "pages", operations: [child])
        try? await OperationQueue().run(compound)
        let underlying = (compound.error as NSError?)?.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(underlying?.domain == "OperationKit.TransferError")
        #expect(compound.error?.localizedDescription.contains(Self.errors[1].text) == true)
    }

    // MARK: - What is sent

    @Test(
        "A header field that would end before its end is an error that names it, and nothing is sent",
        arguments: [
            ("Authorization", "secret\n", "Authorization"), ("X", "secret\r", "X"), ("X", "\r\nsecret: y", "X"),
            ("X", "\0secret", "X"), ("X: y\r\nZ", "secret", #"X: y\r\nZ"#), ("X Y", "secret", "X Y"),
            ("X:", "secret", "X:"), ("Ü", "secret", "Ü"), ("", "secret", ""), ("X", "\t ", "X"),
        ])
    func badField(_ field: String, _ value: String, _ name: String) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        var request = URLRequest(url: server.url())
        // On Linux, `setValue` would ignore some of these.
        request.allHTTPHeaderFields = ["Accept": "good", field: value]
        let error = await #expect(throws: TransferError.self) { try await queue.run(DataTaskOperation(request)) }
        #expect(error?.code == .badURL && error?.message.contains("“\(name)”") == true)
        #expect(error?.localizedDescription.contains("secret") == false && server.requests.isEmpty)
    }

    @Test("A method that would end before its end is an error on one line, and nothing is sent")
    func badMethod() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        for method in ["GET /admin HTTP/1.1\r\nX: y\r\n\r\nGET", "GET\n", "GET\0", "GÉT", "(GET)", ""] {
            var request = URLRequest(url: server.url())
            request.httpMethod = method
            let operation = DataTaskOperation(request)
            let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
            #expect(error?.code == .badURL && error?.message.contains("its method") == true)
            for text in [operation.name, error?.localizedDescription] {
                #expect(text?.utf8.contains { $0 < 32 } == false)
            }
        }
        #expect(server.requests.isEmpty)
    }

    @Test("Any method and field that are tokens are sent, with any value on one line")
    func tokens() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        var request = URLRequest(url: server.url())
        request.httpMethod = "M-SEARCH.!#$%&'*+^_`|~9"
        request.setValue("a\tb: c", forHTTPHeaderField: "x-!#$%&'*+.^_`|~9")
        request.setValue("", forHTTPHeaderField: "empty")
        try await queue.run(DataTaskOperation(request))
        #expect(server.requests.map(\.method) == ["M-SEARCH.!#$%&'*+^_`|~9"])
        #expect(server.requests.first?.headers["x-!#$%&'*+.^_`|~9"] == "a\tb: c")
        #if os(Linux)
        #expect(server.requests.first?.headers["empty"]?.isEmpty == true)
        #endif
    }

    @Test("A request for a header has no body, for which the server would wait", arguments: 0..<3)
    func bodyOfHeader(_ kind: Int) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        var request = URLRequest(url: server.url())
        request.httpMethod = "HEAD"
        if kind == 0 { request.httpBody = Data("body".utf8) }
        if kind == 1 { request.httpBodyStream = InputStream(data: Data("body".utf8)) }
        let error = await #expect(throws: TransferError.self) {
            if kind < 2 {
                try await queue.run(DataTaskOperation(request))
            } else {
                try await queue.run(UploadTaskOperation(request, from: Data("body".utf8)))
            }
        }
        #expect(error?.message == "a request with the method HEAD has no body." && server.requests.isEmpty)
    }

    @Test("The scheme of a request, and of a redirection, may have capitals", arguments: ["HTTP", "Http"])
    func scheme(_ scheme: String) async throws {
        let server = try LoopbackServer { request in
            request.path == "/first"
                ? [.response(307, headers: ["Location": "\(scheme)://\(request.headers["host"] ?? "")/a%20b?c"])]
                : [.response(Data(request.path.utf8))]
        }
        let direct = try #require(URL(string: "\(scheme)://127.0.0.1:\(server.port)/a%20b?c#d"))
        var post = URLRequest(url: server.url("/first"))
        post.httpMethod = "POST"
        post.httpBody = Data("sent again".utf8)
        for request in [URLRequest(url: direct), URLRequest(url: server.url("/first")), post] {
            #expect(try await queue.run(DataTaskOperation(request)).text == "/a%20b?c")
        }
    }

    // MARK: - What comes

    #if os(Linux)
    @Test(
        "An answer that Foundation can't read is not tried again",
        arguments: [
            "200 OK\r\nETag:\"1\"", "200", "200 OK\r\nX: \u{e9}", "200 OK\r\nhello", "200 OK\r\nContent-Length: five",
            "200 OK\r\nContent-Encoding: other", "200 OK\r\nContent-Encoding: gzip",
            "200 OK\r\nContent-Encoding: zstd", "200 OK\r\nTransfer-Encoding: chunked", "99 Low", "200 OK\r\nX: \0",
            "200 OK" + String(repeating: "\r\nX: " + String(repeating: "x", count: 50_000), count: 7),
        ])
    func unreadable(_ header: String) async throws {
        // In Latin-1.
        let answer = "HTTP/1.1 \(header)\r\n\r\nhello".unicodeScalars.map { UInt8($0.value) }
        let server = try LoopbackServer { _ in [.bytes(Data(answer)), .close] }
        let retry = RetryOperation(RetryPolicy.http, name: "page") { _ in DataTaskOperation() }
        let error = await #expect(throws: TransferError.self) {
            try await OperationQueue().run(retry.with(input: URLRequest(url: server.url())))
        }
        #expect(error?.code == .cannotParseResponse && server.requests.count == 1)
        #expect(error?.message.hasPrefix("the answer can't be read: ") == true)
    }
    #endif
}
