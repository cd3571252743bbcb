import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationBenchmark

/// The executable as it is run. What it measures does not matter here, only that it does.
@Suite struct RunTests {
    private static func temporaryFile() -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent("OperationBenchmarkTests-\(UUID().uuidString)")
    }

    @Test("A case is measured and reported") func oneCase() async throws {
        let file = Self.temporaryFile()
        try Data(repeating: UInt8(ascii: "x"), count: 1 << 16).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let result = try await BenchmarkProcess.run("--count", "200", "--only", "flat", "--json", file.path)
        #expect(result.status == 0)

        let report = try JSONDecoder().decode(Report.self, from: Data(contentsOf: file))
        #expect(report.format == 1)
        #expect(report.count == 200)
        #expect(report.rounds == 5)
        #expect(report.machine == Machine.current)
        #expect(report.cases.map(\.id) == ["flat"])
        let experiments = report.cases[0].experiments
        #expect(
            experiments.compactMap(\.growth).map { $0.points.map(\.size) }
                == Array(repeating: [2, 20, 200, 2000], count: 3))
        let comparisons = experiments.flatMap(\.comparisons)
        for width in [1, 2, 8] {
            for size in ["200", "2,000"] {
                #expect(comparisons.contains { $0.what == "\(size) children, width \(width)" && $0.goal == 0.5 })
            }
        }
        for statistics in experiments.flatMap(\.sides).map(\.cost) + comparisons.map(\.ratio) {
            #expect(0 < statistics.min && statistics.min <= statistics.median && statistics.median <= statistics.max)
        }

        // What is shown is what was reported.
        #expect(result.lines.dropLast() == Table(report: report).lines[...])
    }

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
        let file = Self.temporaryFile()
        defer { try? FileManager.default.removeItem(at: file) }
        let result = try await BenchmarkProcess.run(
            "--count=20", "--rounds=6", "--json=\(file.path)", "--markdown", "--check")

        let report = try JSONDecoder().decode(Report.self, from: Data(contentsOf: file))
        #expect(result.status == (report.meetsGoals ? 0 : 1))
        #expect(report.rounds == 6)
        #expect(report.cases.map(\.id) == Case.all.map(\.id))
        let memory = report.cases.filter { $0.experiments.contains { $0.quantity == .bytes } }
        #expect(memory.map(\.id) == ["memory", "timeouts"])
        #expect(result.lines.dropLast() == Markdown(report: report).lines[...])
    }
}
