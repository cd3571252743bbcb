import OperationKitTestSupport

@testable import OperationKitNetwork

@Suite("Downloads", .hangGuard, .stopsServers)
struct DownloadTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()
    private let content = Data.sample

    private var destination: URL { folder.destination }

    /// Answers with the content, in parts: `breaks` says after how many bytes each of the first answers breaks off.
    private func server(tag: @escaping @Sendable (Int) -> String?, breaks: [Int]) throws -> LoopbackServer {
        try LoopbackServer { [content] request in
            let tag = tag(request.number)
            let first = request.headers["if-range"] == tag ? request.firstByte ?? 0 : 0
            let rest = content[first...]
            var head = first > 0 ? "HTTP/1.1 206 Part\r\n" : "HTTP/1.1 200 OK\r\n"
            if first > 0 { head += "Content-Range: bytes \(first)-\(content.count - 1)/\(content.count)\r\n" }
            if let tag { head += "ETag: \(tag)\r\n" }
            head += "Content-Length: \(rest.count)\r\n\r\n"
            let isBroken = request.number <= breaks.count
            let body = isBroken ? rest.prefix(breaks[request.number - 1]) : rest
            return [.text(head), .bytes(Data(body))] + (isBroken ? [.close] : [])
        }
    }

    @Test("A download with the method HEAD has no file")
    func head() async throws {
        let server = try LoopbackServer { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n")] }
        var request = URLRequest(url: server.url())
        request.httpMethod = "HEAD"
        #expect(try await queue.run(DownloadTaskOperation(request, to: destination)).response.status == 200)
        #expect(folder.names.isEmpty)
    }

    @Test("A file is loaded, replaces the one that is there, and leaves nothing beside it")
    func download() async throws {
        let server = try server(tag: { _ in "\"1\"" }, breaks: [])
        try Data("old".utf8).write(to: destination)
        let operation = DownloadTaskOperation(server.url(), to: destination)
        let output = try await queue.run(operation)
        #expect(try Data(contentsOf: output.file) == content)
        #expect(folder.names == ["file"])
        #expect(operation.progress.fractionCompleted == 1)
    }

    @Test("The progress of an answer that is shorter than what came of the one before is not complete before its end")
    func shorterAnswer() async throws {
        let (gate, content) = (Gate(), Data(count: 400))
        let server = try LoopbackServer { request in
            if request.number == 1 {
                let headers = ["Content-Range": "bytes 0-499/1000", "ETag": "\"1\""]
                return [.response(206, headers: headers, Data(count: 500))]
            }
            let head = "HTTP/1.1 200 OK\r\nETag: \"2\"\r\nContent-Length: 400\r\n\r\n"
            return [.text(head), .bytes(content.prefix(40)), .wait(gate), .bytes(content.dropFirst(40))]
        }
        let operation = DownloadTaskOperation(server.url(), to: destination)
        let all = Progress(totalUnitCount: 2)
        all.addChild(operation.progress, withPendingUnitCount: 1)
        queue.addOperation(operation)
        await eventually("no second answer") { operation.progress.totalUnitCount == 400 }
        #expect(operation.progress.fractionCompleted < 1 && all.completedUnitCount == 0)
        gate.open()
        try await operation.finished()
        #expect(all.completedUnitCount == 1)
    }

    @Test("A download of unknown length that breaks off is an error, and leaves nothing")
    func unfinishedChunks() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), .close]
        }
        await folder.breakOff(server)
        #expect(folder.names.isEmpty)
    }

    @Test("A download that has broken off goes on where it stopped")
    func resumed() async throws {
        let server = try server(tag: { _ in "\"1\"" }, breaks: [100_000, 50_000])
        let policy = RetryPolicy(maximumAttempts: 3, backoff: .none)
        let url = server.url()
        let retry = RetryOperation(policy, name: "file") { [destination] _ in DownloadTaskOperation(to: destination) }
        _ = try await queue.run(retry.with(input: URLRequest(url: url)))
        #expect(try Data(contentsOf: destination) == content)
        #expect(server.requests.map { $0.headers["range"] } == [nil, "bytes=100000-", "bytes=150000-"])
        #expect(folder.names == ["file"])
    }

    @Test("A download starts over if the file has changed on the server")
    func changed() async throws {
        let server = try server(tag: { "\"\($0)\"" }, breaks: [100_000])
        await folder.breakOff(server)
        #expect(folder.names == ["file.partial", "file.partial-note"])
        try await folder.download(content, from: server)
        #expect(server.requests[1].headers["range"] == "bytes=100000-")
    }

    @Test("A download from elsewhere that fails leaves what has come from the first place", arguments: [nil, 404])
    func otherPlace(_ status: Int?) async throws {
        let server = try server(tag: { _ in "\"1\"" }, breaks: [100_000])
        let mirror = try LoopbackServer { _ in [status.map { .response($0) } ?? .close] }
        for place in [server, mirror] {
            await #expect(throws: (any Error).self) {
                try await queue.run(DownloadTaskOperation(place.url(), to: destination))
            }
        }
        try await folder.download(content, from: server)
        #expect(server.requests.last?.headers["range"] == "bytes=100000-")
    }

    @Test(
        "Without a way to recognize the file nothing is kept of a download that has broken off",
        arguments: [nil, "W/\"1\""])
    func notResumable(_ tag: String?) async throws {
        let server = try server(tag: { _ in tag }, breaks: [100_000])
        await folder.breakOff(server)
        #expect(folder.names.isEmpty)
    }

    /// The head of an answer with the bytes from `first` to `last` of the content.
    private func head(
        _ first: Int, _ last: Int, tag: String? = "\"1\"", hasTotal: Bool = true, more: String = ""
    ) -> LoopbackServer.Step {
        let range = "Content-Range: bytes \(first)-\(last)/\(hasTotal ? "\(content.count)" : "*")\r\n"
        return .text("HTTP/1.1 206 Part\r\n\(range)\(tag.map { "ETag: \($0)\r\n" } ?? "")\(more)\r\n")
    }

    @Test(
        "Of a server that sends less than was asked for, and says once how long all of it is, a download asks for the rest",
        arguments: [true, false], [true, false])
    func partOfTheRest(_ isResumed: Bool, hasTotals: Bool) async throws {
        let server = try LoopbackServer { [content] request in
            if isResumed, request.number == 1 {
                return [.head(content.count), .bytes(content.prefix(30_000)), .close]
            }
            let first = request.firstByte ?? 0
            let part = content[first..<min(first + 80_000, content.count)]
            let hasTotal = hasTotals || request.number == (isResumed ? 2 : 1)
            let length = "Content-Length: \(part.count)\r\n"
            return [head(first, part.endIndex - 1, hasTotal: hasTotal, more: length), .bytes(Data(part))]
        }
        if isResumed {
            await folder.breakOff(server)
        }
        let operation = DownloadTaskOperation(server.url(), to: destination)
        _ = try await queue.run(operation)
        #expect(try Data(contentsOf: destination) == content)
        #expect(operation.progress.fractionCompleted == 1 && folder.names == ["file"])
        let ranges = isResumed ? [nil, 30_000, 110_000, 190_000] : [nil, 80_000, 160_000]
        #expect(server.requests.map { $0.headers["range"] } == ranges.map { $0.map { "bytes=\($0)-" } })
    }

    @Test("A part that ends before its range does is an error, and the next download goes on")
    func shortRange() async throws {
        let server = try LoopbackServer { [content] request in
            let first = request.firstByte ?? 0
            let head = head(first, content.count - 1, more: "Connection: close\r\n")
            return [head, .bytes(Data(content[first...].prefix(request.number < 3 ? 50_000 : .max))), .close]
        }
        for _ in 0..<2 {
            let error = await folder.breakOff(server)
            #expect(error?.isTransient == true)
            #expect(error?.localizedDescription.hasSuffix("only a part of the file came.") == true)
        }
        try await folder.download(content, from: server)
        #expect(server.requests.map { $0.headers["range"] } == [nil, "bytes=50000-", "bytes=100000-"])
    }

    @Test(
        "A part whose rest can't be asked for, that was not asked for, or is longer than it says, is an error",
        arguments: [(0, 4, nil), (5, 9, "\"1\""), (0, 2, "\"1\"")] as [(Int, Int, String?)])
    func oddParts(_ first: Int, _ last: Int, _ tag: String?) async throws {
        let server = try LoopbackServer { _ in
            [head(first, last, tag: tag, more: "Content-Length: 5\r\n"), .text("hello")]
        }
        try Data("old".utf8).write(to: destination)
        let error = await folder.breakOff(server)
        #expect(error?.code == (tag == nil ? .networkConnectionLost : .cannotParseResponse))
        #expect(try String(contentsOf: destination, encoding: .utf8) == "old")
        #expect(server.requests.count == 1)
    }

    @Test("A request with a range of its own loads that range, from its beginning after a break")
    func ownRange() async throws {
        let server = try LoopbackServer { [content] request in
            let head = head(1_000, 1_999, more: "Content-Length: 1000\r\n")
            return request.number == 1
                ? [head, .bytes(content[1_000..<1_500]), .close] : [head, .bytes(content[1_000..<2_000])]
        }
        var request = URLRequest(url: server.url())
        request.setValue("bytes=1000-1999", forHTTPHeaderField: "Range")
        // Left by a download of the whole.
        let note = try JSONEncoder().encode(PartialFile.Note(origin: server.url(), validator: "\"1\""))
        try note.write(to: folder.url.appendingPathComponent("file.partial-note"))
        try Data("half".utf8).write(to: folder.url.appendingPathComponent("file.partial"))
        await #expect(throws: TransferError.self) {
            try await queue.run(DownloadTaskOperation(request, to: destination))
        }
        #expect(folder.names.isEmpty)
        _ = try await queue.run(DownloadTaskOperation(request, to: destination))
        #expect(try Data(contentsOf: destination) == content[1_000..<2_000])
        #expect(server.requests.allSatisfy { $0.headers["range"] == "bytes=1000-1999" })
    }

    @Test("A status of 400 or more leaves the destination as it was")
    func errorStatus() async throws {
        let server = try LoopbackServer { _ in [.response(404, Data("none".utf8))] }
        try Data("old".utf8).write(to: destination)
        let error = await #expect(throws: HTTPError.self) {
            try await folder.download(from: server)
        }
        #expect(error?.body == Data("none".utf8))
        #expect(try String(contentsOf: destination, encoding: .utf8) == "old")
        #expect(folder.names == ["file"])
    }

    @Test(
        "A server that has no file to send leaves the one that is there, and the part of one",
        arguments: [204, 205, 300, 304])
    func nothingToSend(_ status: Int) async throws {
        let server = try LoopbackServer { _ in
            switch status {
            case 205: [.response(205, headers: ["ETag": "\"2\""])]
            case 300: [.response(300, Data("choose".utf8))]
            default: [.text("HTTP/1.1 \(status) Reason\r\nETag: \"2\"\r\n\r\n")]
            }
        }
        try Data("old".utf8).write(to: destination)
        try Data("half".utf8).write(to: folder.url.appendingPathComponent("file.partial"))
        var request = URLRequest(url: server.url())
        request.setValue("\"2\"", forHTTPHeaderField: "If-None-Match")
        for _ in 0..<2 {
            let output = try await queue.run(DownloadTaskOperation(request, to: destination))
            #expect(output.response.status == status)
            #expect(try String(contentsOf: output.file, encoding: .utf8) == "old")
        }
        #expect(folder.names == ["file", "file.partial"])
        #expect(server.requests.count == 2)
    }

    @Test("A cancelled download keeps what has come, and the next one goes on")
    func cancelled() async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer { [content] request in
            if let first = request.firstByte { return [.rest(of: content, from: first)] }
            reached.open()
            return [.head(content.count), .bytes(content.prefix(50_000)), .wait(never)]
        }
        let first = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(first)
        await reached.opened()
        while first.progress.completedUnitCount < 50_000 { await Task.yield() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.finished() }
        try await folder.download(content, from: server)
        #expect(server.requests.last?.headers["range"] == "bytes=50000-")
    }

    @Test(
        "The time after which to come back is read in seconds and as a date",
        arguments: [
            ("120", Duration.seconds(120)), (" 7 ", .seconds(7)), ("0", .zero), ("-5", .zero),
            ("1e300", .seconds(86_400)), ("soon", nil), ("nan", nil),
            ("Thu, 01 Jan 1970 00:01:00 GMT", .seconds(60)), ("Thursday, 01-Jan-70 00:02:00 GMT", .seconds(120)),
            ("Thu Jan  1 00:03:00 1970", .seconds(180)), ("Thu Jan 1", nil), ("Wed, 31 Dec 1969 23:00:00 GMT", .zero),
        ])
    func retryAfter(_ text: String, _ expected: Duration?) {
        #expect(RetryAfter.duration(of: text, at: Date(timeIntervalSince1970: 0)) == expected)
    }
}
