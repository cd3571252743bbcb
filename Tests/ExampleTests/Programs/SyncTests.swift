import OperationKitTestSupport

@Suite("Example: Sync", .hangGuard, .stopsServers)
struct SyncTests {
    /// A server with three pages.
    private func server(fails path: String = "") throws -> LoopbackServer {
        try LoopbackServer { request in
            switch request.path {
            case path: [.response(500)]
            case "/login": [.response(Data("token".utf8))]
            case "/pages/3": [.response(Data(#"{"items": ["c"]}"#.utf8))]
            case "/pages/2": [.response(Data(#"{"items": ["b"], "next": 3}"#.utf8))]
            case "/pages/1": [.response(Data(#"{"items": ["a"], "next": 2}"#.utf8))]
            default: [.response(Data(request.path.dropFirst().utf8))]
            }
        }
    }

    @Test("Steps run in order, as many pages as there are, and those that may together")
    func steps() async throws {
        let server = try server()
        let result = try await ProductProcess.run("Sync", server.url("").absoluteString)
        #expect(
            result.output.split(separator: "\n") == [
                "1 items", "2 items", "3 items", "3 uploads, profile, settings", "in sync",
            ])
        let requests = server.requests
        #expect(requests.prefix(4).map(\.path) == ["/login", "/pages/1", "/pages/2", "/pages/3"])
        #expect(
            Set(requests.dropFirst(4).dropLast().map(\.path)) == [
                "/profile", "/settings", "/items/a", "/items/b", "/items/c",
            ])
        #expect(
            requests.last?.path == "/notify"
                && requests.dropFirst().allSatisfy { $0.headers["authorization"] == "token" })
    }

    @Test("A step that fails ends the sync with its request")
    func failure() async throws {
        let server = try server(fails: "/login")
        let result = try await ProductProcess.run("Sync", server.url("").absoluteString)
        #expect(result.status == 1 && result.output.contains("500") && server.requests.count == 1)
    }
}
