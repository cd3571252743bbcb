import OperationKitTestSupport

@Suite("Example: Pipeline", .hangGuard)
struct PipelineTests {
    private let folder = TemporaryFolder()

    @Test("Files are compressed, one failure stops nothing, and the report is drawn")
    func files() async throws {
        let paths = try ["a", "b"].map { try folder.file($0, "content of \($0)") }
        let report = folder.url.appendingPathComponent("report.svg").path
        let result = try await ProductProcess.run(
            "Pipeline", "--report", report, paths[0], folder.url.appendingPathComponent("missing").path, paths[1])
        #expect(result.status == 1)
        #expect(folder.names == ["a", "a.gz", "b", "b.gz", "report.svg"])
        #expect(
            paths.allSatisfy { path in result.output.split(separator: "\n").contains { $0.hasSuffix(path + ".gz") } })
        #expect(result.output.split(separator: "\n").contains { $0.hasPrefix("compress ") && $0.contains("missing") })
        #expect(try String(contentsOfFile: report, encoding: .utf8).hasPrefix("<svg"))
        #expect(result.output.contains("operations"))
    }

    @Test("Control-C ends the tools, which leave nothing half done")
    func interrupted() async throws {
        // Takes long to be read, and no room on the disk.
        try folder.hole("long", size: 1 << 34)
        let process = try ProductProcess("Pipeline", [try folder.file("first", "text"), folder.path + "/long"])
        await process.hasWritten("first.gz")
        await process.interrupt()
        let result = try await process.result()
        #expect(result.status == 130 && result.output.contains("operations"))
        #expect(folder.names == ["first", "first.gz", "long"])
    }

    @Test("A report that can't be written is said, after the work")
    func noReport() async throws {
        let file = try folder.file("a", "text")
        let result = try await ProductProcess.run("Pipeline", "--report", "/missing/x.svg", file)
        #expect(result.status == 1 && result.output.contains("not drawn in /missing/x.svg: "))
        #expect(folder.names.contains("a.gz"))
    }
}
