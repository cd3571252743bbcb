import OperationKitTestSupport

@testable import OperationKitNetwork

/// Servers, requests and files that are out of order, and requests among other operations.
@Suite("Requests in trouble", .hangGuard, .stopsServers)
struct RequestTroubleTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    private func destination(_ name: String = "file") -> URL { folder.url.appendingPathComponent(name) }

    // MARK: - Odd requests and answers

    @Test(
        "Any limit of idle time is taken", arguments: [0, -1, .nan, .infinity, 1e300, .leastNonzeroMagnitude])
    func idleLimits(_ limit: TimeInterval) async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        let request = URLRequest(url: server.url(), timeoutInterval: limit)
        // On a busy machine, nothing may come for the second that the least limit is.
        #expect(try await queue.run(RetryOperation(.http) { _ in DataTaskOperation(request) }).text == "hello")
    }

    @Test("Of a page about an error only the beginning is loaded")
    func longErrorPage() async throws {
        let never = Gate()
        let server = try LoopbackServer { _ in
            let head = "HTTP/1.1 500 Reason\r\nContent-Length: 1000000000\r\n\r\n"
            return [.text(head), .bytes(Data(repeating: 120, count: 10_000)), .wait(never)]
        }
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
        let web = try #require(URL(string: "https://example.com\(folder.url.path)/web"))
        #expect(unsafe mkfifo(destination("pipe").path, 0o600) == 0)
        let link = destination("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: destination("pipe"))
        let loop = destination("loop")
        try FileManager.default.createSymbolicLink(at: loop, withDestinationURL: loop)
        for place in [folder.url, web, destination("pipe"), link, loop] {
            let error = await #expect(throws: DownloadError.self) {
                try await queue.run(DownloadTaskOperation(server.url(), to: place))
            }
            #expect(error?.localizedDescription.contains(place.path) == true)
        }
        let long = destination(String(repeating: "n", count: 250))
        await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: long))
        }
        #expect(server.requests.isEmpty && folder.names == ["link", "loop", "pipe"])
        let types = try folder.names.map { name in
            try FileManager.default.attributesOfItem(atPath: destination(name).path)[.type] as? FileAttributeType
        }
        #expect(types == [.typeSymbolicLink, .typeSymbolicLink, .typeUnknown])
    }

    @Test("What is sent compressed comes as what it was before, and a file is asked for as it is")
    func compressed() async throws {
        // “hello ” a hundred times.
        let gzip = try #require(Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8gYJUdJqpIA8zGiDVgCAAA="))
        let server = try LoopbackServer { _ in
            [.response(headers: ["Content-Encoding": "gzip", "ETag": "\"1\""], gzip)]
        }
        try await folder.download(from: server)
        #expect(try String(contentsOf: destination(), encoding: .utf8) == String(repeating: "hello ", count: 100))
        #expect(server.requests.first?.headers["accept-encoding"] == "identity")
        let operation = DataTaskOperation(server.url())
        #expect(try await queue.run(operation).text == String(repeating: "hello ", count: 100))
        #expect(operation.progress.fractionCompleted == 1)
        #expect(operation.progress.totalUnitCount != Int64(gzip.count))
    }

    // MARK: - Cancelling at each stage

    enum Stage: CaseIterable, Sendable {
        case sent, inHead, inBody, resumed, startingOver, waitingToRetry, uploading, uploaded

        static let ofAnyRequest = [Stage.sent, .inHead, .inBody]
    }

    @Test(
        "Cancelling ends a transfer at every stage, and its destination is free",
        arguments: Stage.allCases.map { ($0, true) } + Stage.ofAnyRequest.map { ($0, false) })
    func stages(_ stage: Stage, isToFile: Bool) async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer(reading: stage == .uploading ? .heads : .requests) { request in
            let half = [LoopbackServer.Step.head(100), .text("half")]
            switch stage {
            case .resumed, .startingOver:
                if request.number == 1 { return half + [.close] }
                if stage == .startingOver, request.headers["range"] != nil { return [.response(416)] }
            case .waitingToRetry:
                reached.open()
                return [.response(503, headers: ["Retry-After": "1000"])]
            default: break
            }
            reached.open()
            return switch stage {
            case .inHead: [.text("HTTP/1.1 200 OK\r\nContent-Le"), .wait(never)]
            case .inBody: half + [.wait(never)]
            default: [.wait(never)]
            }
        }
        let (url, file) = (server.url(), destination())
        if stage == .resumed || stage == .startingOver { await folder.breakOff(server) }
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
        default: operation = isToFile ? DownloadTaskOperation(request, to: file) : DataTaskOperation(request)
        }
        queue.addOperation(operation)
        await reached.opened()
        if stage == .waitingToRetry {
            await eventually(operation.debugDescription) { operation.debugDescription.contains("begins in") }
        }
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        let local = try LoopbackServer { _ in [.response(Data("whole".utf8))] }
        _ = try await queue.run(DownloadTaskOperation(local.url(), to: file))
        #expect(try String(contentsOf: file, encoding: .utf8) == "whole")
    }

    @Test("A cancellation at any moment of a download that starts over ends it")
    func cancelledStartingOver() async throws {
        let never = Gate()
        let server = try LoopbackServer { request in
            if request.path.hasPrefix("/first") {
                return [.head(100), .text("half"), .close]
            }
            return request.headers["range"] == nil ? [.wait(never)] : [.response(416)]
        }
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
