import OperationKitTestSupport

@testable import OperationKitNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Downloads that go on, and servers that answer to that in odd ways.
@Suite("Resumed downloads", .hangGuard)
struct ResumedDownloadTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()
    private let content = Data.sample

    private var destination: URL { folder.url.appendingPathComponent("file") }

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

    private func breakOff(_ server: LoopbackServer) async {
        await #expect(throws: TransferError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: destination))
        }
    }

    /// Downloads again, which loads all of it, and asks for these bytes.
    private func complete(_ server: LoopbackServer, asking ranges: [Int?]) async throws {
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: destination))
        #expect(try Data(contentsOf: destination) == content)
        #expect(server.requests.dropFirst().map { $0.headers["range"] } == ranges.map { $0.map { "bytes=\($0)-" } })
        #expect(folder.names == ["file"])
    }

    // MARK: - Parts

    @Test("The rest of a file is added also if the server calls it a whole one", arguments: [100_000, 200_000])
    func restAsWhole(_ size: Int) async throws {
        let server = try server { [content] request in
            let first = request.headers["range"].flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
            let part = content[first..<min(first + size, content.count)]
            let range = "bytes \(first)-\(part.endIndex - 1)/\(content.count)"
            return [.response(headers: ["Content-Range": range, "ETag": "\"1\""], Data(part))]
        }
        defer { server.stop() }
        await breakOff(server)
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
        defer { server.stop() }
        await breakOff(server)
        try await complete(server, asking: [50_000, nil])
    }
}
