import OperationKitTestSupport

@testable import OperationBenchmark

/// The executable as it is run. What it measures does not matter here, only that it does.
@Suite(.hangGuard) struct RunTests {
    private let folder = TemporaryFolder()

    /// Every write to it fails, on Linux.
    private static let fullDevice = "/dev/full"
    private static let hasFullDevice = FileManager.default.fileExists(atPath: fullDevice)

    @Test(
        "Output that is lost is told by the exit status",
        arguments: [["--help"], ["--list"], ["--count", "20", "--only", "chain"]], [">&-", ">\(fullDevice)"])
    func lostOutput(arguments: [String], redirection: String) async throws {
        guard Self.hasFullDevice || redirection == ">&-" else { return }
        let result = try await BenchmarkProcess.run(arguments: arguments, redirection: redirection)
        #expect(result.status == 3)
        #expect(result.errors.contains("OperationBenchmark: Standard output cannot be written."))
    }

    @Test("All cases are measured, and the status of `--check` says whether a goal was missed")
    func allCases() async throws {
        let file = folder.url.appendingPathComponent("report.json")
        let result = try await BenchmarkProcess.run(
            "--count=5", "--rounds=6", "--json=\(file.path)", "--markdown", "--check")

        let report = try JSONDecoder().decode(Report.self, from: Data(contentsOf: file))
        #expect(result.status == (report.meetsGoals ? 0 : 1))
        #expect(report.rounds == 6)
        #expect(report.cases.map(\.id) == Case.all.map(\.id))
        let memory = report.cases.filter { $0.experiments.contains { $0.quantity == .bytes } }
        #expect(memory.map(\.id) == ["memory", "timeouts"])
        #expect(result.lines.dropLast() == Markdown(report: report).lines[...])
    }
}
