import OperationKitTestSupport

@Suite("Example: Downloader", .hangGuard, .stopsServers)
struct DownloaderTests {
    private let folder = TemporaryFolder()

    @Test("Files are downloaded, at most four at a time from a host, and one that fails stops no other")
    func files() async throws {
        let (working, peak, four) = (Shared(0), Shared(0), Gate())
        let server = try LoopbackServer { request in
            if request.path == "/missing" { return [.response(404, Data())] }
            let count = working.change { count in
                count += 1
                return count
            }
            peak.change { $0 = max($0, count) }
            if count == 4 { four.open() }
            four.pass()
            working.change { $0 -= 1 }
            return [.response(Data("content of \(request.path)".utf8))]
        }
        let names = (1...12).map { "/\($0)" }
        let list = try folder.file(
            "list", (names.dropFirst() + ["/missing"]).map { server.url($0).absoluteString }.joined(separator: "\n"))
        let result = try await ProductProcess.run(
            "Downloader", "--to", folder.path, server.url("/1").absoluteString, list)
        #expect(result.status == 1)
        #expect(result.output.contains("missing") && result.output.contains("404"))
        #expect(result.output.contains("[########################################]"))
        #expect(peak.value == 4)
        #expect(folder.names.count { $0.hasPrefix("127.0.0.1_") } == 12)
        #expect(try String(contentsOfFile: folder.path + "/127.0.0.1_7", encoding: .utf8) == "content of /7")
    }

    @Test("A request that a server refuses for the moment is sent again")
    func retry() async throws {
        let server = try LoopbackServer { request in
            request.number == 1 ? [.response(503, headers: ["Retry-After": "0"])] : [.response(Data("late".utf8))]
        }
        let result = try await ProductProcess.run("Downloader", "--to", folder.path, server.url("/a").absoluteString)
        #expect(result.status == 0 && result.output.contains("1 files are here."))
        #expect(server.requests.count == 2)
    }

    @Test("A folder that is not there fails the download")
    func missing() async throws {
        let server = try LoopbackServer { _ in [.response(Data("hello".utf8))] }
        let folder = try await ProductProcess.run("Downloader", "--to", "/missing", server.url("/a").absoluteString)
        #expect(folder.status == 1 && folder.output.contains("could not be written"))
    }
}
