import OperationKitTestSupport

@testable import OperationBenchmark

/// The mode that counts instructions as it is run, with scripts in place of the tools that count.
@Suite(.hangGuard) struct InstructionRunTests {
    /// The only programs to be found.
    private let tools = TemporaryFolder()

    private func run(_ scripts: [String: String], _ arguments: String...) async throws -> ProductProcess.Result {
        for (name, script) in scripts { _ = try tools.script(name, "#!/bin/sh\n\(script)\n") }
        return try await BenchmarkProcess.run(
            arguments: ["--instructions"] + arguments, environment: ["PATH": tools.url.path])
    }

    private static let failing = "exit 1"
    /// Pretends that operations cost 12 instructions, and the rest of a process 700. The last argument is their number.
    private static let perf = #"""
        for number; do :; done
        if [ "$number" = true ]; then number=0; fi
        echo "$((700 + 12 * number)),,instructions:u,9,100.00,," >&2
        """#
    private static let perfWithoutCounter = "echo '<not supported>,,instructions:u,0,100.00,,' >&2"
    /// The same with 34 instructions.
    private static let valgrind = #"""
        for number; do :; done
        echo "==1== Collected : $((700 + 34 * number))" >&2
        """#

    @Test(
        "perf counts where it can, or else valgrind",
        arguments: [
            (["perf": perf, "valgrind": valgrind], "perf", "12"),
            (["perf": perf], "perf", "12"),
            (["perf": perfWithoutCounter, "valgrind": valgrind], "valgrind", "34"),
            (["perf": failing, "valgrind": valgrind], "valgrind", "34"),
            (["valgrind": valgrind], "valgrind", "34"),
        ])
    func choice(scripts: [String: String], tool: String, cost: String) async throws {
        let result = try await run(scripts, "--markdown", "--only", "life")
        #expect(result.status == 0)
        #expect(result.lines[0].contains(", counted by \(tool) on "))
        let row = result.lines.dropLast().last ?? ""
        #expect(row.hasPrefix("| life | ") && row.hasSuffix(" | \(cost) | creation \(cost) | 1.00× |"), "\(row)")
    }

    @Test(
        "A count that fails is told by the exit status",
        arguments: [
            (failing, InstructionCounterError.failed(.valgrind, status: 1)),
            ("echo '==1== Events : Ir' >&2", .notCounted(.valgrind)),
        ])
    func failure(script: String, error: InstructionCounterError) async throws {
        let result = try await run(["valgrind": script], "--only", "life")
        #expect(result.status == 3)
        #expect(result.output == "")
        #expect(result.errors.contains("OperationBenchmark: \(error.localizedDescription)"))
    }
}
