import OperationKitTestSupport

@testable import OperationKitNetwork

/// What Foundation gets wrong on Linux.
@Suite("Bodies of requests", .hangGuard, .stopsServers)
struct RequestBodyTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    private func upload(
        _ count: Int, to server: LoopbackServer, _ method: String = "PUT"
    ) throws -> UploadTaskOperation {
        var request = URLRequest(url: server.url())
        request.httpMethod = method
        return UploadTaskOperation(request, fromFile: try file(count))
    }

    private func file(_ count: Int) throws -> URL {
        let file = folder.url.appendingPathComponent("source")
        try Data(repeating: 7, count: count).write(to: file)
        return file
    }

    @Test(
        "The header says how long the file is, and of what type only if the request does", arguments: ["PUT", "POST"])
    func header(method: String) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        for count in [0, 1, 100_000] {
            try await queue.run(upload(count, to: server, method))
            let request = try #require(server.requests.last)
            #expect(request.headers["content-length"] == "\(count)" && request.body.count == count)
            #expect(request.headers["transfer-encoding"] == nil && request.headers["content-type"] == nil)
        }
    }

    #if os(Linux)
    @Test("The file that is looked at is the one that is sent", arguments: ["a%2Fb", "a%00"])
    func oddName(_ name: String) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let other = folder.url.appendingPathComponent("a")
        if name == "a%2Fb" {
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
            try Data("other".utf8).write(to: other.appendingPathComponent("b"))
        } else {
            try Data("other".utf8).write(to: other)
        }
        try Data("this".utf8).write(to: URL(fileURLWithPath: folder.path + "/" + name))
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        let file = try #require(URL(string: "file://\(folder.path)/\(name)"))
        try await queue.run(UploadTaskOperation(request, fromFile: file))
        #expect(server.requests.map(\.body) == [Data("this".utf8)])
    }
    #endif

    @Test("An upload can be cancelled, or expire, at any moment of its beginning", arguments: [false, true])
    func cancelled(byTimeout: Bool) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        for round in 0..<TestExtent.choose(60, long: 2_000) {
            let upload = try upload(1_000, to: server)
            let moment = Duration.microseconds(round % 40 * 50 + 1)
            if byTimeout { upload.timeout = moment }
            queue.addOperation(upload)
            if !byTimeout {
                try await Task.sleep(for: moment)
                upload.cancel()
            }
            try? await upload.finished()
        }
    }

    @Test("A server that stops reading in the middle of a file is an error")
    func refused() async throws {
        let server = try LoopbackServer(reading: .heads) { _ in [.reset] }
        for _ in 0..<TestExtent.choose(5, long: 100) {
            let upload = try upload(8 << 20, to: server)
            let error = await #expect(throws: TransferError.self) { try await queue.run(upload) }
            #expect(error?.isTransient == true)
        }
    }

    @Test("A stream of a file has as many bytes as the file had, also when it begins again")
    func grown() throws {
        let file = try file(10)
        let body = try #require(RequestBody(.file(file)))
        try Data(count: 20).write(to: file)
        for stream in [body, try #require(body.again)] {
            stream.open()
            defer { stream.close() }
            var buffer = [UInt8](repeating: 0, count: 100)
            #expect(unsafe stream.read(&buffer, maxLength: buffer.count) == 10)
            #expect(!stream.hasBytesAvailable && stream.count == 10)
            #expect(unsafe stream.read(&buffer, maxLength: buffer.count) == 0)
            #expect(stream.error == nil)
        }
    }

    @Test("A stream of a file that has become shorter ends with an error, for which no server waits")
    func shrunk() throws {
        let file = try file(10)
        let body = try #require(RequestBody(.file(file)))
        try Data(count: 4).write(to: file)
        let again = try #require(body.again)
        again.open()
        defer { again.close() }
        var buffer = [UInt8](repeating: 0, count: 100)
        #expect(unsafe again.read(&buffer, maxLength: buffer.count) == 4)
        #expect(body.error == nil && again.hasBytesAvailable)
        #expect(unsafe again.read(&buffer, maxLength: buffer.count) == -1)
        // A task knows the first one.
        #expect(body.error?.code == .cannotOpenFile && body.error?.userInfo[NSUnderlyingErrorKey] == nil)
    }

    @Test("A file that can't be read when it is sent is an error with the words of the system, and is not tried again")
    func unreadable() async throws {
        let source = folder.url.appendingPathComponent("source")
        let server = try LoopbackServer { _ in
            try? FileManager.default.removeItem(at: source)
            return [.response(307, headers: ["Location": "/other"])]
        }
        let upload = try upload(1_000, to: server)
        let error = try #require(await #expect(throws: TransferError.self) { try await queue.run(upload) })
        #expect(error.code == .cannotOpenFile)
        #expect(error.message == "its file could not be read: No such file or directory.")
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.domain == NSPOSIXErrorDomain && cause?.code == Int(ENOENT))
        #expect(!RetryPolicy.http.shouldRetry(error, 1))
    }

    // MARK: - Streams of the user

    /// Foundation opens it, and not the operation.
    private final class UserStream: InputStream {}

    private func streamed(_ stream: InputStream, to server: LoopbackServer) -> URLRequest {
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        request.httpBodyStream = stream
        return request
    }

    @Test("Of several operations that send one stream at the same time, one does", arguments: [false, true])
    func sharedStream(_ isSubclass: Bool) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let data = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        for _ in 0..<5 {
            let count = server.requests.count
            let request = streamed(isSubclass ? UserStream(data: data) : InputStream(data: data), to: server)
            let requests = (0..<4).map { _ in DataTaskOperation(request) }
            try? await queue.run(CompoundOperation(operations: requests, maxConcurrentOperationCount: 4))
            #expect(server.requests.dropFirst(count).map(\.body) == [data])
            let errors = requests.compactMap { $0.error as? TransferError }
            #expect(errors.map(\.code) == Array(repeating: .requestBodyStreamExhausted, count: 3))
        }
    }

    #if os(Linux)
    @Test(
        "A stream that can't be opened or read is an error with its cause, and is not tried again",
        arguments: [false, true])
    func brokenStream(_ isFolder: Bool) async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let path = isFolder ? folder.url.path : folder.url.appendingPathComponent("missing").path
        let request = streamed(try #require(InputStream(fileAtPath: path)), to: server)
        let retry = RetryOperation(RetryPolicy.http) { _ in DataTaskOperation(request) }
        let error = try #require(await #expect(throws: TransferError.self) { try await queue.run(retry) })
        #expect(error.code == .cannotOpenFile && error.message.hasPrefix("its stream could not be read: "))
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.domain == NSPOSIXErrorDomain && cause?.code == Int(isFolder ? EISDIR : ENOENT))
        #expect(retry.attemptCount == 1 && (isFolder || server.requests.isEmpty))
    }

    @Test("A URL with data that can't be read is an error that is not tried again, and nothing of it is kept")
    func unreadableData() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let url = try #require(URL(string: "data:image/png;base64"))
        let requests = (0..<300).map { DataTaskOperation($0 % 3 == 0 ? url : server.url()) }
        try? await queue.run(CompoundOperation(operations: requests, maxConcurrentOperationCount: 16))
        for (index, request) in requests.enumerated() {
            let error = request.error as? TransferError
            #expect(error?.code == (index % 3 == 0 ? .badURL : nil) && error?.isTransient != true)
        }
        let isKept = await withCheckedContinuation { continuation in
            RequestSession.shared.session.getAllTasks { tasks in
                continuation.resume(returning: tasks.contains { $0.originalRequest?.url == url })
            }
        }
        #expect(!isKept)
    }

    @Test("A file of the system that says that it is empty is sent with what it holds, or is an error")
    func unknownSize() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        var request = URLRequest(url: server.url())
        request.httpMethod = "PUT"
        let version = URL(fileURLWithPath: "/proc/version")
        try await queue.run(UploadTaskOperation(request, fromFile: version))
        #expect(try server.requests.map(\.body) == [Data(contentsOf: version)] && server.requests[0].body.count > 0)
        let memory = UploadTaskOperation(request, fromFile: URL(fileURLWithPath: "/proc/self/mem"))
        let error = await #expect(throws: TransferError.self) { try await queue.run(memory) }
        #expect(error?.code == .cannotOpenFile && error?.message.contains("could not be read") == true)
        #expect(server.requests.count == 1)
    }
    #endif

    @Test("A file that becomes shorter while it is sent is an error soon")
    func shrinking() async throws {
        let hasShrunk = Gate()
        // The server does not read the body before, which is more than the system keeps for it.
        let server = try LoopbackServer(reading: .heads) { _ in [.wait(hasShrunk), .drain] }
        let upload = try upload(32 << 20, to: server)
        upload.start()
        await eventually("nothing is sent") { upload.progress.completedUnitCount > 0 }
        unsafe #expect(truncate(folder.url.appendingPathComponent("source").path, 1) == 0)
        hasShrunk.open()
        let error = await #expect(throws: TransferError.self) { try await upload.value }
        #expect(error?.code == .cannotOpenFile && error?.message.contains("became shorter") == true)
    }

    @Test("A file that grows is sent as it was at one moment")
    func growing() async throws {
        let hasGrown = Gate()
        let server = try LoopbackServer { _ in [.wait(hasGrown), .response()] }
        let upload = try upload(1_000, to: server)
        upload.start()
        let handle = try FileHandle(forWritingTo: folder.url.appendingPathComponent("source"))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(count: 1_000))
        hasGrown.open()
        #expect(try await upload.value.response.status == 200)
        #expect([1_000, 2_000].contains(server.requests.first?.body.count))
    }

    enum Body: CaseIterable { case data, file, request }

    @Test(
        "What is sent on a connection that the server has just closed is sent from its beginning again",
        arguments: Body.allCases)
    func closedConnection(_ body: Body) async throws {
        let file = folder.url.appendingPathComponent("source")
        let hasClosed = Shared(false)
        let server = try LoopbackServer { request in
            if !request.isOnUsedConnection || hasClosed.value { return [.response(request.body)] }
            hasClosed.value = true
            // The header has been sent: a file that grows now does not count.
            if body == .file { try? Data(count: 200_000).write(to: file) }
            return [.close]
        }
        var post = URLRequest(url: server.url())
        post.httpMethod = "POST"
        var count = 0
        // A request that follows immediately may find the connection still busy, and take another one.
        while !hasClosed.value, count < 100 {
            count += 1
            let operation: RequestOperation<HTTPOutput>
            switch body {
            case .data: operation = UploadTaskOperation(post, from: Data(count: 100_000))
            case .file: operation = try upload(100_000, to: server)
            case .request:
                post.httpBody = Data(count: 100_000)
                operation = DataTaskOperation(post)
            }
            #expect(try await queue.run(operation).data.count == 100_000)
        }
        #expect(server.requests.map(\.body.count) == Array(repeating: 100_000, count: count + 1) && hasClosed.value)
    }
}
