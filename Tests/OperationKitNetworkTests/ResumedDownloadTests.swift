import OperationKitTestSupport

@testable import OperationKitNetwork

/// Downloads that go on, and servers that answer to that in odd ways.
@Suite("Resumed downloads", .hangGuard, .stopsServers)
struct ResumedDownloadTests {
    private let folder = TemporaryFolder()
    private let content = Data.sample

    private var destination: URL { folder.destination }

    /// A server whose first answer breaks off after 50,000 bytes.
    private func server(
        _ fields: [String] = ["ETag: \"1\""],
        then answer: @escaping @Sendable (LoopbackServer.Request) -> [LoopbackServer.Step]
    ) throws -> LoopbackServer {
        try LoopbackServer { [content] request in
            guard request.number == 1 else { return answer(request) }
            let lines = ["HTTP/1.1 200 OK"] + fields + ["Content-Length: \(content.count)", "", ""]
            return [.text(lines.joined(separator: "\r\n")), .bytes(content.prefix(50_000)), .close]
        }
    }

    /// Downloads again, which loads all of it, and asks for these bytes.
    private func complete(_ server: LoopbackServer, asking ranges: [Int?]) async throws {
        try await folder.download(content, from: server)
        #expect(server.requests.dropFirst().map { $0.headers["range"] } == ranges.map { $0.map { "bytes=\($0)-" } })
        #expect(folder.names == ["file"])
    }

    // MARK: - Parts

    @Test("A part that came from another address is not added to") func otherAddress() async throws {
        let server = try server { [content] _ in [.response(headers: ["ETag": "\"1\""], content)] }
        await folder.breakOff(server)
        try await OperationQueue().run(DownloadTaskOperation(server.url("/other"), to: destination))
        #expect(try Data(contentsOf: destination) == content && server.requests.last?.headers["range"] == nil)
    }

    @Test("Only a GET asks for the rest, and a HEAD leaves the part", arguments: ["HEAD", "POST"])
    func otherMethod(_ method: String) async throws {
        let server = try server { _ in [.response(headers: ["ETag": "\"1\""])] }
        await folder.breakOff(server)
        var request = URLRequest(url: server.url())
        request.httpMethod = method
        try await OperationQueue().run(DownloadTaskOperation(request, to: destination))
        #expect(server.requests.last?.headers["range"] == nil)
        #expect(folder.names == (method == "HEAD" ? ["file.partial", "file.partial-note"] : ["file"]))
    }

    @Test("What has come of the answer to a POST is not added to")
    func brokenPost() async throws {
        let server = try server { [content] _ in [.response(headers: ["ETag": "\"1\""], content)] }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        let operation = DownloadTaskOperation(request, to: destination)
        await #expect(throws: TransferError.self) { try await OperationQueue().run(operation) }
        #expect(folder.names.isEmpty)
    }

    @Test("A part that answers a POST is an error, and the part of a GET is left by one that answers a HEAD")
    func partOfOtherMethods() async throws {
        let server = try server { _ in
            [.response(206, headers: ["ETag": "\"1\"", "Content-Range": "bytes 0-9/20"], Data(count: 10))]
        }
        await folder.breakOff(server)
        for method in ["HEAD", "POST"] {
            var request = URLRequest(url: server.url())
            request.httpMethod = method
            let operation = DownloadTaskOperation(request, to: destination)
            _ = try? await OperationQueue().run(operation)
            #expect((operation.error == nil) == (method == "HEAD"), "\(operation.error as Any)")
            #expect(folder.names == (method == "HEAD" ? ["file.partial", "file.partial-note"] : []))
        }
        #expect(server.requests.count == 3)
    }

    @Test("The rest of a file is added also if the server calls it a whole one", arguments: [100_000, 200_000])
    func restAsWhole(_ size: Int) async throws {
        let server = try server { [content] request in
            let first = request.firstByte ?? 0
            let part = content[first..<min(first + size, content.count)]
            let range = "bytes \(first)-\(part.endIndex - 1)/\(content.count)"
            return [.response(headers: ["Content-Range": range, "ETag": "\"1\""], Data(part))]
        }
        await folder.breakOff(server)
        try await complete(server, asking: size == 100_000 ? [50_000, 150_000] : [50_000])
    }

    @Test(
        "A whole file that is said to be another part, or does not have the length of that, is loaded from its beginning",
        arguments: [200, 206], ["bytes 0-199999/200000", "bytes 60000-199999/200000", "bytes 50000-199999/200000", "?"])
    func wholeAsPart(_ status: Int, _ range: String) async throws {
        let server = try server { [content] request in
            let isResumed = request.headers["range"] != nil
            let fields = ["Content-Range": range, "ETag": "\"1\""]
            return [.response(isResumed ? status : 200, headers: fields, content)]
        }
        await folder.breakOff(server)
        try await complete(server, asking: [50_000, nil])
    }

    @Test(
        "A part that the server cannot complete, or that is none of the file, is thrown away, and the download starts over",
        arguments: [
            (416, "0-4/5", "1", 5), (416, "*/50001", "1", 5), (416, "*/50000", "2", 5), (206, "0-4/5", "1", 5),
            (206, "50000-199999/200000", "2", 150_000),
        ])
    func refusedRange(_ status: Int, _ range: String, _ tag: String, _ count: Int) async throws {
        let server = try server { [content] request in
            if request.headers["range"] == nil { return [.response(content)] }
            let fields = ["Content-Range": "bytes \(range)", "ETag": "\"\(tag)\""]
            return [.response(status, headers: fields, Data(count: count))]
        }
        await folder.breakOff(server)
        try await complete(server, asking: [50_000, nil])
    }

    @Test("Of a file that is another one with each part, the download starts over once")
    func changingFile() async throws {
        let count = Shared(0)
        let server = try server { request in
            count.change { $0 += 1 }
            let first = request.headers["range"] == nil ? 0 : 10
            let fields = ["Content-Range": "bytes \(first)-\(first + 9)/20", "ETag": "\"\(count.value)\""]
            return [.response(206, headers: fields, Data(count: 10))]
        }
        await folder.breakOff(server)
        let error = await #expect(throws: TransferError.self) { try await folder.download(from: server) }
        #expect(error?.message == "the file changes while it is loaded, or its parts do not fit.")
        #expect(count.value == 3)
    }

    @Test("Nothing is left of a part that was thrown away, if the server has no other file")
    func nothingLeft() async throws {
        let server = try server { [.response($0.headers["range"] == nil ? 304 : 416)] }
        await folder.breakOff(server)
        #expect(try await folder.download(from: server).response.status == 304)
        #expect(folder.names.isEmpty)
    }

    // MARK: - Dates

    private static let (changed, later) = ("Thu, 01 Jan 1970 00:01:00 GMT", "Thu, 01 Jan 1970 00:01:01 GMT")

    @Test(
        "A date recognizes a file if there is no entity tag, and if the file was at least a second old",
        arguments: [
            ([], later, changed), (["ETag: \"1\""], changed, "\"1\""), ([], changed, nil), ([], nil, nil),
            ([], "today", nil), (["ETag: W/\"1\""], later, nil),
        ] as [([String], String?, String?)])
    func dates(_ fields: [String], _ date: String?, _ validator: String?) async throws {
        let fields = fields + ["Last-Modified: \(Self.changed)"] + (date.map { ["Date: \($0)"] } ?? [])
        let server = try server(fields) { [content] _ in [.response(content)] }
        await folder.breakOff(server)
        #expect(folder.names == (validator == nil ? [] : ["file.partial", "file.partial-note"]))
        try await complete(server, asking: [validator == nil ? nil : 50_000])
        #expect(server.requests.last?.headers["if-range"] == validator)
    }

    @Test("A part of a file that was changed a moment ago is not added to what there was before")
    func changedNow() async throws {
        let server = try server(["Last-Modified: \(Self.changed)", "Date: \(Self.later)"]) { [content] request in
            guard request.headers["range"] != nil else { return [.response(content)] }
            let range = "bytes 50000-\(content.count - 1)/\(content.count)"
            let fields = ["Content-Range": range, "Last-Modified": Self.later, "Date": Self.later]
            return [.response(206, headers: fields, Data(count: content.count - 50_000))]
        }
        await folder.breakOff(server)
        try await complete(server, asking: [50_000, nil])
    }

    // MARK: - Informational answers

    // Not stored: LeakSanitizer does not recognize the addresses in such values.
    private static var hints: LoopbackServer.Step { .text("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") }
    private static var otherProtocol: LoopbackServer.Step {
        .text("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nhello")
    }

    @Test(
        "What comes before an answer, or in place of one, leaves the part as it was",
        arguments: [hints, otherProtocol])
    func informational(_ step: LoopbackServer.Step) async throws {
        let server = try server { [content] request in
            if request.number == 2 { return [step, .close] }
            return [Self.hints, Self.hints, .rest(of: content, from: 50_000)]
        }
        await folder.breakOff(server)
        await folder.breakOff(server)
        try await complete(server, asking: [50_000, 50_000])
    }

    #if os(Linux)
    @Test(
        "Where the files of all users belong to another one, a part is taken, and goes on",
        .enabled(if: geteuid() == 0, "Only the administrator can create files for others."))
    func otherOwner() throws {
        #expect(unsafe chmod(folder.url.path, 0o777) == 0)
        let symbol = unsafe unsafeBitCast(dlsym(nil, "setfsuid"), to: (@convention(c) (uid_t) -> Int32)?.self)
        let setOwner = try #require(symbol)
        _ = setOwner(1)
        defer { _ = setOwner(0) }
        let url = URL(string: "https://example.com/file")
        let first = try PartialFile(for: destination, of: url)
        try first.begin(validator: "\"1\"")
        try first.append(content)
        first.stop()
        let second = try PartialFile(for: destination, of: url)
        #expect(second.length == content.count && second.validator == "\"1\"")
        second.stop()
        #expect(folder.names == ["file.partial", "file.partial-note"])
    }
    #endif
}
