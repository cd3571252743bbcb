import OperationKitTestSupport

@testable import OperationKitNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Where a download is put.
@Suite("Destinations of downloads", .hangGuard)
struct DownloadDestinationTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()
    private let content = Data(repeating: 7, count: 100_000)

    private var destination: URL { folder.url.appendingPathComponent("file") }

    @Test("An empty file is a file")
    func empty() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        defer { server.stop() }
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: destination))
        #expect(try Data(contentsOf: destination).isEmpty)
    }

    @Test(
        "A second operation with the same destination ends with an error, and the destination is free after the first one",
        arguments: [false, true])
    func destinationInUse(_ isLink: Bool) async throws {
        var other = destination
        if isLink {
            let link = folder.url.appendingPathComponent("link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.url)
            other = link.appendingPathComponent("file")
        }
        let (reached, gate) = (Gate(), Gate())
        let server = try LoopbackServer { [content] _ in
            reached.open()
            return [.wait(gate), .response(content)]
        }
        defer { server.stop() }
        let first = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(first)
        await reached.opened()
        let error = await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: other))
        }
        #expect(error?.localizedDescription.contains(other.path) == true)
        gate.open()
        try await first.finished()
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: other))
        #expect(try Data(contentsOf: destination) == content)
    }

    @Test("A destination is free again if other code finishes its operation")
    func finishedByOthers() async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer { [content] request in
            if request.path == "/new" { return [.response(content)] }
            reached.open()
            return [.wait(never)]
        }
        defer {
            never.open()
            server.stop()
        }
        // The transfer does not end by itself.
        let request = URLRequest(url: server.url(), timeoutInterval: 10_000)
        let first = DownloadTaskOperation(request, to: destination)
        queue.addOperation(first)
        await reached.opened()
        first.finish(withError: TestError.first)
        await #expect(throws: TestError.first) { try await first.finished() }
        while true {
            do {
                _ = try await queue.run(DownloadTaskOperation(server.url("/new"), to: destination))
                break
            } catch DownloadError.destinationInUse {
                await Task.yield()
            }
        }
        #expect(try Data(contentsOf: destination) == content)
    }

    @Test("A folder that cannot be written to is an error")
    func cannotWrite() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        defer { server.stop() }
        let missing = folder.url.appendingPathComponent("missing/file")
        let error = await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: missing))
        }
        #expect(error?.localizedDescription.contains(missing.path) == true)
    }

    @Test("A download whose part is removed while it comes is an error, and leaves the destination as it was")
    func removedPart() async throws {
        let gate = Gate()
        let server = try LoopbackServer { [content] _ in
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"
            return [.text(head), .bytes(content.prefix(50_000)), .wait(gate), .bytes(content.dropFirst(50_000))]
        }
        defer { server.stop() }
        try Data("old".utf8).write(to: destination)
        let operation = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(operation)
        await eventually("nothing comes") { operation.progress.completedUnitCount == 50_000 }
        try FileManager.default.removeItem(at: folder.url.appendingPathComponent("file.partial"))
        gate.open()
        let error = await #expect(throws: DownloadError.self) { try await operation.value }
        guard case .cannotWrite = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try String(contentsOf: destination, encoding: .utf8) == "old")
    }

    @Test(
        "What has the name of a part, and is no file, stays as it is, and nothing is sent",
        arguments: ["partial", "partial-note"], [false, true])
    func otherThings(named ending: String, isLink: Bool) async throws {
        let other = destination.appendingPathExtension(ending)
        let file = isLink ? folder.url.appendingPathComponent("mine") : other.appendingPathComponent("mine")
        if !isLink { try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false) }
        try Data("mine".utf8).write(to: file)
        if isLink { try FileManager.default.createSymbolicLink(at: other, withDestinationURL: file) }
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        defer { server.stop() }
        let error = await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: destination))
        }
        #expect(error?.localizedDescription.contains(other.lastPathComponent) == true)
        #expect(try Data(contentsOf: file) == Data("mine".utf8) && server.requests.isEmpty)
    }
}
