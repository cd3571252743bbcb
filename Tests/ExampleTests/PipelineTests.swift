import Foundation
import OperationKitTestSupport
import Testing

@Suite("Example: Pipeline", .hangGuard)
struct PipelineTests {
    private let folder = TemporaryFolder()

    @Test("Files are compressed, one failure stops nothing, and the report is drawn")
    func files() async throws {
        let paths = try ["a", "b"].map { try folder.file($0, "content of \($0)") }
        let report = folder.url.appendingPathComponent("report.svg").path
        let result = try await Example.run(
            "Pipeline", ["--report", report, paths[0], folder.url.appendingPathComponent("missing").path, paths[1]])
        #expect(result.status == 1)
        #expect(folder.names.contains("a.gz") && folder.names.contains("b.gz"))
        #expect(
            paths.allSatisfy { path in result.output.split(separator: "\n").contains { $0.hasSuffix(path + ".gz") } })
        #expect(result.output.split(separator: "\n").contains { $0.hasPrefix("compress ") && $0.contains("missing") })
        #expect(try String(contentsOfFile: report, encoding: .utf8).hasPrefix("<svg"))
        #expect(result.output.contains("operations"))
    }

    @Test("Help, and no files")
    func usage() async throws {
        let help = try await Example.run("Pipeline", ["--help"])
        #expect(help.status == 0 && help.output.hasPrefix("Usage: Pipeline"))
        #expect(try await Example.run("Pipeline", []).status == 64)
    }
}
