import OperationKitTestSupport

@Suite("Examples: use", .hangGuard)
struct UsageTests {
    @Test(
        "A program says how it is used, if it is asked to, and what is wrong with its arguments",
        arguments: [
            ("Builder", ["--help"], 0, "Usage: Builder"), ("Downloader", ["--help"], 0, "Usage: Downloader"),
            ("Pipeline", ["--help"], 0, "Usage: Pipeline"), ("Sync", ["--help"], 0, "Usage: Sync"),
            ("Builder", ["/missing"], 64, "There is no file “/missing” to read."),
            ("Downloader", [], 64, "Usage: Downloader"),
            ("Downloader", ["/missing"], 64, "There is nothing to read in “/missing”."),
            ("Downloader", ["http://[bad"], 64, "“http://[bad” is no URL."),
            ("Downloader", ["http://127.0.0.1:bad/x"], 64, "“http://127.0.0.1:bad/x” is no URL."),
            ("Pipeline", [], 64, "Usage: Pipeline"), ("Sync", ["nonsense"], 64, "Usage: Sync"),
        ])
    func usage(program: String, arguments: [String], status: Int32, beginning: String) async throws {
        let result = try await ProductProcess(program, arguments).result()
        #expect(result.status == status && result.output.hasPrefix(beginning))
    }
}
