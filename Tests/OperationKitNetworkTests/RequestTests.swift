import OperationKitNetwork
import OperationKitTestSupport

@Suite("Requests", .hangGuard, .stopsServers)
struct RequestTests {
    private let queue = OperationQueue()

    private func request(_ url: URL, _ method: String = "GET", timeout: TimeInterval = 60) -> URLRequest {
        var request = URLRequest(url: url, timeoutInterval: timeout)
        request.httpMethod = method
        return request
    }

    // MARK: - Answers

    @Test("The answer of a server is the output")
    func answer() async throws {
        let server = try LoopbackServer { request in
            [.response(headers: ["X-Path": request.path, "Content-Type": "text/plain"], Data("hello".utf8))]
        }
        let output = try await queue.run(DataTaskOperation(server.url("/news?page=1")))
        #expect(output.text == "hello")
        #expect(output.response.status == 200)
        #expect(output.response.value(forHTTPHeaderField: "x-path") == "/news?page=1")
        #expect(server.requests.map(\.method) == ["GET"])
    }

    @Test("An operation that sends a request keeps the contract of operations")
    func contract() async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        let report = await OperationContract.report(rounds: 32) { DataTaskOperation(server.url()) }
        #expect(report.violations.isEmpty, "\(report)")
    }

    @Test("An operation is called by its method and its URL, without what may be secret")
    func name() throws {
        let url = try #require(URL(string: "https://user:word@example.com/news?token=1#top"))
        #expect(DataTaskOperation(url).name == "GET https://example.com/news")
        #expect(DataTaskOperation(request(url, "POST"), name: "send").name == "send")
    }

    @Test(
        "A status of 400 or more is an error with the beginning of the body, unless it is accepted",
        arguments: [400, 404, 500, 599])
    func errorStatus(_ status: Int) async throws {
        let server = try LoopbackServer { _ in [.response(status, Data(repeating: 120, count: 10_000))] }
        let error = await #expect(throws: HTTPError.self) { try await queue.run(DataTaskOperation(server.url())) }
        #expect(error?.status == status)
        #expect(error?.body == Data(repeating: 120, count: 4_096))
        #expect(error?.localizedDescription.contains("status \(status)") == true)
        #expect(error?.errorCode == status)
        let accepting = DataTaskOperation(server.url())
        accepting.acceptedStatuses = [status]
        #expect(try await queue.run(accepting).data.count == 10_000)
    }

    @Test(
        "A request that wants credentials ends with its status and its body",
        arguments: [#"Basic realm="x""#, #"Digest realm="x", nonce="1""#])
    func unauthorized(_ challenge: String) async throws {
        let body = Data("who are you?".utf8)
        let server = try LoopbackServer { _ in [.response(401, headers: ["WWW-Authenticate": challenge], body)] }
        let error = await #expect(throws: HTTPError.self) { try await queue.run(DataTaskOperation(server.url())) }
        #expect(error?.status == 401 && error?.body == body)
        let operation = DataTaskOperation(server.url())
        operation.acceptedStatuses = [401]
        #expect(try await queue.run(operation).data == body)
        let folder = TemporaryFolder()
        let download = DownloadTaskOperation(server.url(), to: folder.url.appendingPathComponent("file"))
        download.acceptedStatuses = [401]
        #expect(try Data(contentsOf: await queue.run(download).file) == body)
    }

    @Test("A body in chunks is put together")
    func chunks() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")]
        }
        #expect(try await queue.run(DataTaskOperation(server.url())).text == "hello world")
    }

    // MARK: - Faults

    enum Fault: CaseIterable, Sendable {
        case shortBody, unfinishedChunks, emptyReply, reset, garbage

        var steps: [LoopbackServer.Step] {
            switch self {
            case .shortBody: [.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"), .close]
            case .unfinishedChunks: [.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), .close]
            case .emptyReply: [.close]
            case .reset: [.reset]
            case .garbage: [.text("this is no HTTP at all\r\n\r\n"), .close]
            }
        }
    }

    @Test("An answer that breaks off, or is none, is an error that names the request", arguments: Fault.allCases)
    func faults(_ fault: Fault) async throws {
        let server = try LoopbackServer { _ in fault.steps }
        let error = await #expect(throws: TransferError.self) {
            try await queue.run(DataTaskOperation(server.url("/x")))
        }
        #expect(
            error?.localizedDescription.hasPrefix("“GET http://127.0.0.1:\(server.port)/x” failed: ") == true)
        #expect(error?.isTransient == (fault != .garbage), "\(error?.code.rawValue as Any)")
        #expect((error?.code == .cannotParseResponse) == (fault == .garbage))
        #expect((error?.message.hasPrefix("the answer can't be read: ") == true) == (fault == .garbage))
    }

    @Test("A connection that is refused, a host that does not exist and a bad URL are errors")
    func noServer() async throws {
        let cases: [(String, URLError.Code)] = [
            ("http://127.0.0.1:9/", .cannotConnectToHost), ("http://no-such-host.invalid/", .cannotFindHost),
            ("unknown://host/", .unsupportedURL), ("http://127.0.0.1:99999/", .badURL),
            ("ws://127.0.0.1:9/", .unsupportedURL), ("WSS://127.0.0.1:9/", .unsupportedURL),
        ]
        for (text, code) in cases {
            let url = try #require(URL(string: text))
            let error = await #expect(throws: TransferError.self) { try await queue.run(DataTaskOperation(url)) }
            #expect(error?.code == code)
        }
        var none = URLRequest(url: URL(fileURLWithPath: "/"))
        none.url = nil
        let operation = DataTaskOperation(none)
        let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
        #expect(error?.code == .badURL)
    }

    @Test("A missing request is an error")
    func missingInput() async throws {
        await #expect(throws: IOOperationError.self) { try await queue.run(DataTaskOperation()) }
    }

    @Test("Calling `main(input:)` sends nothing, and a status that is accepted too late is an error")
    func tooLate() async throws {
        let (reached, answer) = (Gate(), Gate())
        let server = try LoopbackServer { request in
            reached.open()
            return [.wait(answer), .response(404)]
        }
        let operation = DataTaskOperation(server.url())
        queue.addOperation(operation)
        await reached.opened()
        operation.main(input: URLRequest(url: server.url("/second")))
        operation.acceptedStatuses = [404]
        operation.main(input: URLRequest(url: server.url("/second")))
        answer.open()
        await #expect(throws: HTTPError.self) { try await operation.finished() }
        await #expect(throws: HTTPError.self) { try await queue.run(DataTaskOperation(server.url("/third"))) }
        #expect(server.requests.map(\.path) == ["/", "/third"])
    }

    // MARK: - Cancelling

    @Test("Requests that are cancelled at any moment all end")
    func cancelledAnywhere() async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        let operations = (0..<TestExtent.choose(200, long: 5_000)).map { _ in DataTaskOperation(server.url()) }
        queue.maxConcurrentOperationCount = 8
        for (index, operation) in operations.enumerated() {
            queue.addOperation(operation)
            if index % 3 == 0 { DispatchQueue.global().async { operation.cancel() } }
        }
        for operation in operations {
            do {
                #expect(try await operation.value.text == "hello")
            } catch {
                #expect(error.isCancellation)
            }
        }
    }

    @Test("A request in which nothing comes for too long ends, also if it allows less than a second")
    func idle() async throws {
        let never = Gate()
        let server = try LoopbackServer { $0.number == 1 ? [.response(Data())] : [.wait(never)] }
        // Foundation on Linux keeps a processor busy while a request waits on a new connection.
        try await queue.run(DataTaskOperation(request(server.url())))
        let operation = DataTaskOperation(request(server.url(), timeout: 0.5))
        let error = await #expect(throws: TransferError.self) { try await queue.run(operation) }
        #expect(error?.code == .timedOut && error?.message == "nothing came for too long: the limit is 1 s.")
    }

    // MARK: - Uploads

    @Test("Data and files are sent, with their bytes as progress")
    func uploads() async throws {
        let server = try LoopbackServer { request in [.response(201, Data("\(request.body.count)".utf8))] }
        let (folder, data) = (TemporaryFolder(), Data(repeating: 5, count: 300_000))
        let file = folder.url.appendingPathComponent("source")
        try data.write(to: file)
        let post = request(server.url(), "POST")
        for upload in [UploadTaskOperation(post, from: data), UploadTaskOperation(post, fromFile: file)] {
            let output = try await queue.run(upload)
            #expect(output.text == "300000")
            #expect(output.response.status == 201)
            #expect(upload.progress.fractionCompleted == 1)
        }
        #expect(server.requests.allSatisfy { $0.method == "POST" && $0.body == data })
    }

    @Test("A GET that is to send data is an error that says so")
    func uploadWithGet() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let upload = UploadTaskOperation(URLRequest(url: url), from: Data(count: 1))
        let error = await #expect(throws: TransferError.self) { try await queue.run(upload) }
        #expect(error?.localizedDescription.hasSuffix("a request with the method GET has no body.") == true)
    }

    @Test(
        "A file that does not exist, or is a folder, a device, or on another machine, is an error",
        arguments: ["file:///missing", "/missing", "file:///", "/dev/zero", "https://example.com/etc/hosts"])
    func missingFile(_ place: String) async throws {
        let upload = UploadTaskOperation(
            request(try #require(URL(string: "http://127.0.0.1:9/")), "POST"),
            fromFile: try #require(URL(string: place)))
        let error = await #expect(throws: TransferError.self) { try await queue.run(upload) }
        #expect(error?.code == .fileDoesNotExist)
        let name = place.replacingOccurrences(of: "file://", with: "")
        #expect(error?.localizedDescription.hasSuffix("“\(name)” is no file that can be read.") == true)
    }

    @Test("URLs without a scheme are paths, of files that are sent and of destinations")
    func paths() async throws {
        let server = try LoopbackServer { request in [.response(request.body)] }
        let folder = TemporaryFolder()
        let source = try #require(URL(string: try folder.file("source", "hello")))
        let upload = UploadTaskOperation(request(server.url(), "POST"), fromFile: source)
        #expect(try await queue.run(upload).text == "hello")
        let destination = try #require(URL(string: folder.url.appendingPathComponent("a%20b").path))
        var post = request(server.url(), "POST")
        post.httpBody = Data("hello".utf8)
        let output = try await queue.run(DownloadTaskOperation(post, to: destination))
        #expect(output.file == folder.url.appendingPathComponent("a b"))
        #expect(try String(contentsOf: output.file, encoding: .utf8) == "hello")
    }

    // MARK: - Many

    @Test("Requests with a limit and failures among them are all accounted for")
    func many() async throws {
        let count = TestExtent.choose(150, long: 3_000)
        let server = try LoopbackServer { request in
            Int(request.path.dropFirst())! % 3 == 0 ? [.response(500)] : [.response(Data(request.path.utf8))]
        }
        let results = try await queue.mapToResults(1...count, limit: 8) { number in
            try await OperationQueue().run(DataTaskOperation(server.url("/\(number)"))).text
        }
        for (index, result) in results.enumerated() {
            let number = index + 1
            switch result {
            case .success(let text): #expect(text == "/\(number)" && number % 3 != 0)
            case .failure(let error): #expect((error as? HTTPError)?.status == 500 && number % 3 == 0)
            }
        }
    }
}
