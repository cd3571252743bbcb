import OperationKitNetwork
import OperationKitTestSupport

#if canImport(FoundationNetworking)
// What every file of these tests needs.
@_exported public import FoundationNetworking
#endif

extension TemporaryFolder {
    /// Where tests download to.
    var destination: URL { url.appendingPathComponent("file") }

    @discardableResult
    func download(from server: LoopbackServer) async throws -> DownloadOutput {
        try await OperationQueue().run(DownloadTaskOperation(server.url(), to: destination))
    }

    /// Downloads a file, which has to be this one.
    func download(
        _ content: Data, from server: LoopbackServer, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        try await download(from: server)
        let isSame = try Data(contentsOf: destination) == content
        #expect(isSame, sourceLocation: location)
    }

    /// Downloads a file that does not come to its end.
    @discardableResult
    func breakOff(_ server: LoopbackServer, _ location: SourceLocation = #_sourceLocation) async -> TransferError? {
        await #expect(throws: TransferError.self, sourceLocation: location) { try await download(from: server) }
    }
}

extension LoopbackServer.Step {
    /// The head of an answer with a whole file, which has an entity tag.
    static func head(_ count: Int, tag: String = "\"1\"") -> Self {
        .text("HTTP/1.1 200 OK\r\nETag: \(tag)\r\nContent-Length: \(count)\r\n\r\n")
    }

    /// The bytes of a file from one on.
    static func rest(of content: Data, from first: Int) -> Self {
        let range = "bytes \(first)-\(content.count - 1)/\(content.count)"
        return .response(206, headers: ["Content-Range": range, "ETag": "\"1\""], Data(content[first...]))
    }
}
