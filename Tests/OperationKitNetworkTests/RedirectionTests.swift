import OperationKitNetwork
import OperationKitTestSupport

@Suite("Redirections", .hangGuard, .stopsServers)
struct RedirectionTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()
    private let data = Data.sample

    enum Body: CaseIterable, Sendable { case data, file, request, download }

    /// An operation that sends the data, with a method.
    private func operation(_ body: Body, _ method: String, _ url: URL) throws -> AsyncOperation {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let file = folder.url.appendingPathComponent("source")
        switch body {
        case .data: return UploadTaskOperation(request, from: data)
        case .file:
            try data.write(to: file)
            return UploadTaskOperation(request, fromFile: file)
        case .request, .download:
            request.httpBody = data
            if body == .request { return DataTaskOperation(request) }
            return DownloadTaskOperation(request, to: folder.url.appendingPathComponent("answer"))
        }
    }

    /// A request whose body is a stream, and that says how long it is.
    private func streamed(to url: URL, _ method: String = "POST") -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBodyStream = InputStream(data: data)
        request.setValue("\(data.count)", forHTTPHeaderField: "Content-Length")
        return request
    }

    /// Redirects what is at `/first` with a status, and answers what comes with its method and the size of its body.
    private func server(_ status: Int, to place: String = "/second") throws -> LoopbackServer {
        try LoopbackServer { request in
            request.path == "/first"
                ? [.response(status, headers: ["Location": place], Data("moved".utf8))]
                : [.response(Data("\(request.method) \(request.body.count)".utf8))]
        }
    }

    @Test(
        "Where the method stays, the body is sent again to where a redirection leads",
        arguments: [("PUT", 301), ("PUT", 302), ("PUT", 307), ("POST", 307), ("POST", 308), ("PATCH", 308)],
        Body.allCases)
    func kept(_ request: (method: String, status: Int), _ body: Body) async throws {
        let server = try server(request.status)
        let operation = try operation(body, request.method, server.url("/first"))
        let all = Progress(totalUnitCount: 2)
        all.addChild(operation.progress, withPendingUnitCount: 1)
        try await queue.run(operation)
        #expect(all.completedUnitCount == 1)
        #expect(server.requests.map(\.path) == ["/first", "/second"])
        #expect(server.requests.allSatisfy { $0.method == request.method && $0.body == data })
        #expect(server.requests.allSatisfy { $0.headers["authorization"] != nil })
        #expect(server.requests.allSatisfy { $0.headers["content-type"] == "text/plain" })
        #expect(operation.progress.fractionCompleted == 1)
        let text: String?
        if let operation = operation as? RequestOperation<HTTPOutput> {
            text = try await operation.value.text
            #expect(try await operation.value.response.url == server.url("/second"))
        } else {
            text = try String(contentsOf: folder.url.appendingPathComponent("answer"), encoding: .utf8)
        }
        #expect(text == "\(request.method) 200000")
    }

    @Test(
        "A redirection that is relative leads to a place beside the first one",
        arguments: [("c", "/a/b/c"), ("../c", "/a/c"), ("?page=2", "/a/b/first?page=2"), ("/d", "/d")])
    func relative(_ location: String, _ place: String) async throws {
        let server = try LoopbackServer { request in
            request.path == "/a/b/first" ? [.response(302, headers: ["Location": location])] : [.response()]
        }
        let output = try await queue.run(DataTaskOperation(server.url("/a/b/first")))
        #expect(server.requests.map(\.path) == ["/a/b/first", place])
        #expect(output.response.url?.absoluteString == server.url(place).absoluteString)
    }

    @Test("Another server gets the body without the credentials")
    func otherServer() async throws {
        let other = try LoopbackServer { _ in [.response()] }
        let server = try server(307, to: other.url("/there").absoluteString)
        try await queue.run(try operation(.data, "POST", server.url("/first")))
        // On Linux, a request can have a field several times.
        var request = URLRequest(url: server.url("/first"))
        request.allHTTPHeaderFields = [
            "authorization": "secret", "AUTHORIZATION": "secret", "cookie": "secret", "HOST": "own",
        ]
        _ = try await queue.run(DataTaskOperation(request))
        let first = server.requests.last?.headers
        #expect(first?["authorization"] == "secret")
        #if os(Linux)
        #expect(first?["host"] == "own")
        #endif
        #expect(other.requests.map(\.body) == [data, Data()])
        #expect(other.requests.allSatisfy { $0.headers["authorization"] == nil && $0.headers["cookie"] == nil })
        #expect(other.requests.allSatisfy { $0.headers["host"] == "127.0.0.1:\(other.port)" })
    }

    @Test(
        "A redirection that leads to a GET has no body",
        arguments: [("POST", 301), ("POST", 302), ("POST", 303), ("PUT", 303)], Body.allCases)
    func dropped(_ request: (method: String, status: Int), _ body: Body) async throws {
        let server = try server(request.status)
        try await queue.run(try operation(body, request.method, server.url("/first")))
        #expect(server.requests.map(\.method) == [request.method, "GET"])
        #expect(server.requests.map(\.body.count) == [200_000, 0])
        #expect(server.requests.allSatisfy { $0.headers["authorization"] == "Bearer secret" })
    }

    @Test("A request for a header stays one wherever it is redirected", arguments: [301, 302, 303, 307, 308])
    func header(_ status: Int) async throws {
        let server = try LoopbackServer { request in
            if request.path == "/first" { return [.response(status, headers: ["Location": "/second"])] }
            let head = LoopbackServer.Step.text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            return request.method == "HEAD" ? [head] : [head, .text("hello")]
        }
        var request = URLRequest(url: server.url("/first"))
        request.httpMethod = "HEAD"
        let output = try await queue.run(DataTaskOperation(request))
        #expect(server.requests.map(\.method) == ["HEAD", "HEAD"] && output.data.isEmpty)
        #expect(output.response.url == server.url("/second"))
    }

    @Test("A redirection is followed after an informational answer, too")
    func informational() async throws {
        let server = try LoopbackServer { request in
            let hints = LoopbackServer.Step.text("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            return [hints, request.path == "/end" ? .response() : .response(302, headers: ["Location": "/end"])]
        }
        let output = try await queue.run(DataTaskOperation(server.url("/first")))
        #expect(output.response.status == 200 && server.requests.map(\.path) == ["/first", "/end"])
    }

    @Test("Redirections end if there are too many, and one that leads to a GET is followed by others")
    func chains() async throws {
        let server = try LoopbackServer { request in
            switch request.path {
            case "/post": [.response(307, headers: ["Location": "/see"])]
            case "/see": [.response(303, headers: ["Location": "/get"])]
            case "/get": [.response(307, headers: ["Location": "/end"])]
            case "/end": [.response(Data("\(request.method) \(request.body.count)".utf8))]
            default: [.response(308, headers: ["Location": request.path])]
            }
        }
        let post = try #require(operation(.data, "POST", server.url("/post")) as? UploadTaskOperation)
        #expect(try await queue.run(post).text == "GET 0")
        #expect(server.requests.map(\.body.count) == [200_000, 200_000, 0, 0])
        let loops = [try operation(.file, "PUT", server.url("/loop")), DataTaskOperation(server.url("/loop"))]
        for operation in loops {
            let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
            #expect(error?.code == .httpTooManyRedirects)
        }
        #expect(server.requests.count { $0.path == "/loop" && $0.method == "PUT" } == 21)
    }

    @Test("A redirection without a URL is an error that says so", arguments: [301, 302, 303, 307, 308], [nil, ""])
    func nowhere(_ status: Int, _ place: String?) async throws {
        let server = try LoopbackServer { _ in
            [.response(status, headers: place.map { ["Location": $0] } ?? [:], Data("moved".utf8))]
        }
        let destination = folder.url.appendingPathComponent("answer")
        for operation in [DataTaskOperation(server.url()), DownloadTaskOperation(server.url(), to: destination)] {
            let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
            #expect(error?.localizedDescription.hasSuffix("redirected to no URL.") == true)
        }
        #expect(folder.names.isEmpty)
    }

    @Test(
        "A redirection to what has no host, or is none of HTTP, is an error",
        arguments: [
            "mailto:a@b", "foo:bar", "http:///", "ftp://127.0.0.1:1/a", "foo://127.0.0.1/a", "file://localhost/a",
        ], ["GET", "POST"])
    func noHost(_ place: String, _ method: String) async throws {
        let server = try server(307, to: place)
        let url = server.url("/first")
        let first: AsyncOperation = method == "GET" ? DataTaskOperation(url) : try operation(.data, method, url)
        let error = await #expect(throws: TransferError.self) { try await queue.run(first) }
        #expect(error?.code == .unsupportedURL && error?.isTransient == false)
        #expect(error?.message == "its URL, or one to which it was redirected, is none of HTTP.")
        #expect(server.requests.count == 1)
    }

    @Test("A status from 300 to 399 that is no redirection is an answer", arguments: [300, 304, 399])
    func noRedirection(_ status: Int) async throws {
        let server = try LoopbackServer { _ in [.response(status)] }
        let output = try await folder.download(from: server)
        #expect(output.response.status == status && folder.names.isEmpty)
    }

    @Test("A stream is not sent twice: its redirection is an error that says so")
    func stream() async throws {
        let server = try server(307)
        let operation = DataTaskOperation(streamed(to: server.url("/first")))
        let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
        #expect(error?.code == .requestBodyStreamExhausted)
        #expect(
            error?.localizedDescription
                == "“POST \(server.url("/first"))” failed: it was redirected, and a stream can't be sent twice."
        )
        #expect(server.requests.count == 1)
    }

    @Test("A stream is not sent by a further attempt, which would send what is left of it")
    func streamOfAttempts() async throws {
        let server = try LoopbackServer { _ in [.response(503)] }
        let request = streamed(to: server.url(), "PUT")
        let operation = RetryOperation(.http) { _ in DataTaskOperation(request) }
        let error = await #expect(throws: (any Error).self) { try await queue.run(operation) }
        #expect((error as? TransferError)?.code == .requestBodyStreamExhausted, "\(error as Any)")
        #expect((error as? TransferError)?.message == "its stream was opened before, and can't be sent twice.")
        #expect(server.requests.count == 1)
    }

    @Test("A stream goes without the length that the request says, and nothing of it with a GET to which it leads")
    func lengthOfStream() async throws {
        let server = try server(303)
        #expect(try await queue.run(DataTaskOperation(streamed(to: server.url("/first")))).text == "GET 0")
        #if os(Linux)
        #expect(server.requests.map { $0.headers["content-length"] } == [nil, nil])
        #expect(server.requests.map { $0.headers["transfer-encoding"] } == ["chunked", nil])
        #endif
    }

    @Test("Cancelling a request at any moment of its redirections ends it", arguments: ["GET", "POST"])
    func cancelling(_ method: String) async throws {
        let never = Gate()
        let counts = Shared<[Substring: Int]>([:])
        let server = try LoopbackServer { request in
            let parts = request.path.split(separator: "/")
            counts.change { $0[parts[0], default: 0] += 1 }
            guard parts.count < 10 else { return [.wait(never)] }
            return [.response(307, headers: ["Location": request.path + "/more"])]
        }
        for round in 0..<TestExtent.choose(20, long: 2_000) {
            var request = URLRequest(url: server.url("/\(round)"))
            request.httpMethod = method
            if method == "POST" { request.httpBody = Data("hello".utf8) }
            let operation = DataTaskOperation(request)
            queue.addOperation(operation)
            await eventually("it was not sent") { counts.value["\(round)", default: 0] > round % 10 }
            operation.cancel()
            await #expect(throws: CancellationError.self) { try await operation.finished() }
        }
    }
}
