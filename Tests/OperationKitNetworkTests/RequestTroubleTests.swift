import OperationKitTestSupport

@testable import OperationKitNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Servers, requests and files that are out of order, and requests among other operations.
@Suite("Requests in trouble", .hangGuard)
struct RequestTroubleTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    private func destination(_ name: String = "file") -> URL { folder.url.appendingPathComponent(name) }

    // MARK: - Odd requests and answers

    @Test(
        "Any limit of idle time is taken", arguments: [0, -1, .nan, .infinity, 1e300, .leastNonzeroMagnitude])
    func idleLimits(_ limit: TimeInterval) async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        defer { server.stop() }
        let request = URLRequest(url: server.url(), timeoutInterval: limit)
        #expect(try await queue.run(DataTaskOperation(request)).text == "hello")
    }

    @Test("A redirection to another server does not take the credentials with it")
    func credentials() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let other = server.url("/other").absoluteString
        let first = try LoopbackServer { request in
            switch request.path {
            case "/other": [.response(302, headers: ["Location": other])]
            case "/here": [.response(302, headers: ["Location": "/there"])]
            default: [.response()]
            }
        }
        defer {
            server.stop()
            first.stop()
        }
        for path in ["/other", "/here"] {
            var request = URLRequest(url: first.url(path))
            request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
            _ = try await queue.run(DataTaskOperation(request))
        }
        #expect(server.requests.map { $0.headers["authorization"] } == [nil])
        #expect(first.requests.map(\.path) == ["/other", "/here", "/there"])
        #expect(first.requests.allSatisfy { $0.headers["authorization"] == "Bearer secret" })
    }

    @Test("Of a page about an error only the beginning is loaded")
    func longErrorPage() async throws {
        let never = Gate()
        let server = try LoopbackServer { _ in
            let head = "HTTP/1.1 500 Reason\r\nContent-Length: 1000000000\r\n\r\n"
            return [.text(head), .bytes(Data(repeating: 120, count: 10_000)), .wait(never)]
        }
        defer { server.stop() }
        for operation in [DataTaskOperation(server.url()), DataTaskOperation(server.url())] {
            let error = await #expect(throws: HTTPError.self) { try await queue.run(operation) }
            #expect(error?.body == Data(repeating: 120, count: 4_096))
        }
        let download = DownloadTaskOperation(server.url(), to: destination())
        let error = await #expect(throws: HTTPError.self) { try await queue.run(download) }
        #expect(error?.body.count == 4_096 && folder.names.isEmpty)
    }

    // MARK: - Files

    @Test("A destination that can't be that of a file is an error before anything is sent")
    func badDestinations() async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        defer { server.stop() }
        let web = try #require(URL(string: "https://example.com\(folder.url.path)/web"))
        #expect(unsafe mkfifo(destination("pipe").path, 0o600) == 0)
        let link = destination("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: destination("pipe"))
        for place in [folder.url, web, destination("pipe"), link] {
            let error = await #expect(throws: DownloadError.self) {
                try await queue.run(DownloadTaskOperation(server.url(), to: place))
            }
            #expect(error?.localizedDescription.contains(place.path) == true)
        }
        let long = destination(String(repeating: "n", count: 250))
        await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: long))
        }
        #expect(server.requests.isEmpty && folder.names == ["link", "pipe"])
        let types = try ["link", "pipe"].map { name in
            try FileManager.default.attributesOfItem(atPath: destination(name).path)[.type] as? FileAttributeType
        }
        #expect(types == [.typeSymbolicLink, .typeUnknown])
    }

    @Test("A destination stays in use until its download ends, however many others were refused")
    func destinationStaysInUse() async throws {
        let (reached, gate) = (Gate(), Gate())
        let server = try LoopbackServer { _ in
            reached.open()
            return [.wait(gate), .response(Data("hello".utf8))]
        }
        defer { server.stop() }
        let first = DownloadTaskOperation(server.url(), to: destination())
        queue.addOperation(first)
        await reached.opened()
        for _ in 0..<3 {
            await #expect(throws: DownloadError.self) {
                try await queue.run(DownloadTaskOperation(server.url(), to: destination()))
            }
        }
        gate.open()
        _ = try await first.value
        #expect(server.requests.count == 1)
    }

    @Test("A file that is sent compressed is stored as it is, and is not resumed")
    func compressed() async throws {
        let gzip = try #require(Data(base64Encoded: Self.hello))
        let server = try LoopbackServer { _ in
            [.response(headers: ["Content-Encoding": "gzip", "ETag": "\"1\""], gzip)]
        }
        defer { server.stop() }
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: destination()))
        #expect(try String(contentsOf: destination(), encoding: .utf8) == String(repeating: "hello ", count: 100))
        #expect(server.requests.first?.headers["accept-encoding"] == "identity")
        #expect(try await queue.run(DataTaskOperation(server.url())).data.count == 600)
    }

    /// “hello ” a hundred times.
    private static let hello = "H4sIAAAAAAACA8tIzcnJV8gYJUdJqpIA8zGiDVgCAAA="

    @Test("A server that sends a part of another file is not believed")
    func partOfAnother() async throws {
        let server = try LoopbackServer { request in
            if request.number == 1 {
                return [.text("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 10\r\n\r\nfirst"), .close]
            }
            if request.headers["range"] != nil {
                let headers = ["ETag": "\"2\"", "Content-Range": "bytes 5-9/10"]
                return [.response(206, headers: headers, Data("other".utf8))]
            }
            return [.response(Data("the second".utf8))]
        }
        defer { server.stop() }
        await #expect(throws: TransferError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: destination()))
        }
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: destination()))
        #expect(try String(contentsOf: destination(), encoding: .utf8) == "the second")
        #expect(server.requests.count == 3 && folder.names == ["file"])
    }

    // MARK: - Cancelling at each stage

    enum Stage: CaseIterable, Sendable {
        case sent, inHead, inBody, resumed, startingOver, waitingToRetry, uploading, uploaded
    }

    @Test("Cancelling ends a transfer at every stage, and its destination is free", arguments: Stage.allCases)
    func stages(_ stage: Stage) async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer(reading: stage == .uploading ? .heads : .requests) { request in
            let full = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 100\r\n\r\nhalf"
            switch stage {
            case .resumed, .startingOver:
                if request.number == 1 { return [.text(full), .close] }
                if stage == .startingOver, request.headers["range"] != nil { return [.response(416)] }
            case .waitingToRetry:
                reached.open()
                return [.response(503, headers: ["Retry-After": "1000"])]
            default: break
            }
            reached.open()
            return switch stage {
            case .inHead: [.text("HTTP/1.1 200 OK\r\nContent-Le"), .wait(never)]
            case .inBody: [.text(full), .wait(never)]
            default: [.wait(never)]
            }
        }
        defer { server.stop() }
        let (url, file) = (server.url(), destination())
        if stage == .resumed || stage == .startingOver {
            await #expect(throws: TransferError.self) {
                try await queue.run(DownloadTaskOperation(url, to: file))
            }
        }
        var request = URLRequest(url: url)
        let operation: AsyncOperation
        switch stage {
        case .waitingToRetry:
            let retry = RetryOperation(.http, name: "retry") { _ in DownloadTaskOperation(to: file) }
            operation = retry.with(input: request)
        case .uploading, .uploaded:
            request.httpMethod = "PUT"
            // More than the buffers of a connection hold.
            operation = UploadTaskOperation(request, from: Data(count: 1 << 25))
        default: operation = DownloadTaskOperation(request, to: file)
        }
        queue.addOperation(operation)
        await reached.opened()
        if stage == .waitingToRetry {
            await eventually(operation.debugDescription) { operation.debugDescription.contains("begins in") }
        }
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        let local = try LoopbackServer { _ in [.response(Data("whole".utf8))] }
        defer { local.stop() }
        _ = try await queue.run(DownloadTaskOperation(local.url(), to: file))
        #expect(try String(contentsOf: file, encoding: .utf8) == "whole")
    }

    @Test("A cancellation at any moment of a download that starts over ends it")
    func cancelledStartingOver() async throws {
        let never = Gate()
        let server = try LoopbackServer { request in
            if request.path.hasPrefix("/first") {
                return [.text("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 100\r\n\r\nhalf"), .close]
            }
            return request.headers["range"] == nil ? [.wait(never)] : [.response(416)]
        }
        defer { server.stop() }
        for round in 0..<TestExtent.choose(20, long: 200) {
            let file = destination("\(round)")
            let note = try JSONEncoder().encode(PartialFile.Note(origin: server.url("/"), validator: "\"1\""))
            try note.write(to: destination("\(round).partial-note"))
            try Data("half".utf8).write(to: destination("\(round).partial"))
            let operation = DownloadTaskOperation(server.url("/"), to: file)
            queue.addOperation(operation)
            let count = round + 1
            await eventually("it was not sent") { server.requests.count { $0.headers["range"] != nil } == count }
            operation.cancel()
            await #expect(throws: CancellationError.self) { try await operation.finished() }
        }
    }

    // MARK: - Together with others

    @Test("No more requests are at a host than its limit says")
    func limitPerHost() async throws {
        let (working, most, enough) = (Shared(0), Shared(0), Gate())
        let server = try LoopbackServer { _ in
            let count = working.change {
                $0 += 1; return $0
            }
            most.change { $0 = max($0, count) }
            if count == 4 { enough.open() }
            enough.pass()
            working.change { $0 -= 1 }
            return [.response(Data("hello".utf8))]
        }
        defer { server.stop() }
        let hosts = KeyedConcurrencyLimit("host", 4)
        let requests = (0..<24).map { server.url("/\($0)") }.map { url in
            let operation = DataTaskOperation(url)
            operation.require(hosts[url.host])
            return operation
        }
        for request in requests { queue.addOperation(request) }
        for request in requests { try await request.finished() }
        #expect(most.value == 4)
    }

    @Test("Macros, waterfalls, workflows and compounds have requests as their steps, under their URLs")
    func steps() async throws {
        let server = try LoopbackServer { request in [.response(Data("\(request.method) \(request.path)".utf8))] }
        defer { server.stop() }
        let (first, base) = (server.url("/first"), server.url("").absoluteString)
        let macro = MacroOperation(DataTaskOperation())
            .then(IOBlockOperation<HTTPOutput, String>(name: "text") { $0.text })
        #expect(try await queue.run(macro.with(input: URLRequest(url: first))) == "GET /first")

        let fall = Waterfall<URL, URL>(name: "fall").thenRun { DataTaskOperation($0) }.then { $0.text }
        #expect(try await queue.run(fall.with(input: first)) == "GET /first")

        let recorder = EventRecorder()
        let flow = WorkflowOperation(name: "flow") { flow in
            async let a = flow.run(DataTaskOperation(URL(string: base + "/a?secret")!), progress: 0.5)
            async let b = flow.run(DataTaskOperation(URL(string: base + "/b")!))
            return try await a.text + b.text
        }
        flow.addObserver(recorder)
        #expect(try await queue.run(flow) == "GET /a?secretGET /b")
        #expect(Set(recorder.names) == ["flow", "GET \(base)/a", "GET \(base)/b"])

        let all = CompoundOperation(name: "all", operations: (0..<4).map { DataTaskOperation(server.url("/\($0)")) })
        let progress = all.progress
        try await queue.run(all)
        #expect(progress.fractionCompleted == 1)
    }

    #if os(Linux)
    @Test(
        "A file of any length is loaded in bounded memory",
        .enabled(if: !keepsFreedMemory, "A sanitizer keeps what is freed, or needs memory itself."))
    func boundedMemory() async {
        await #expect(processExitsWith: .success) {
            let megabytes = TestExtent.choose(64, long: 1_024)
            let block = Data(repeating: 7, count: 1 << 20)
            let folder = TemporaryFolder()
            let part = folder.url.appendingPathComponent("file.partial").path
            // No faster than the file grows: Foundation keeps what comes before the delegate has taken the last.
            let written: @Sendable (Int) -> Bool = { megabytes in
                let size = try? FileManager.default.attributesOfItem(atPath: part)[.size] as? Int
                return size ?? 0 >= megabytes << 20
            }
            let server = try LoopbackServer { request in
                let count = request.path == "/small" ? 1 : megabytes
                return [.text("HTTP/1.1 200 OK\r\nContent-Length: \(count << 20)\r\n\r\n")]
                    + (0..<count).flatMap { sent -> [LoopbackServer.Step] in
                        [.until { sent <= 16 || written(sent - 16) }, .bytes(block)]
                    }
            }
            _ = try await OperationQueue().run(
                DownloadTaskOperation(server.url("/small"), to: folder.url.appendingPathComponent("first")))
            let before = peakMegabytes()
            let output = try await OperationQueue().run(
                DownloadTaskOperation(server.url(), to: folder.url.appendingPathComponent("file")))
            let size = try FileManager.default.attributesOfItem(atPath: output.file.path)[.size] as? Int
            let grown = peakMegabytes() - before
            TestExtent.report("\(megabytes) MB to a file: the peak has grown by \(grown) MB")
            try FileManager.default.removeItem(at: folder.url)
            exit(size == megabytes << 20 && grown < 48 ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif
}
