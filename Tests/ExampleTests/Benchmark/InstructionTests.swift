import OperationKitTestSupport

@testable import OperationBenchmark

/// The mode that counts instructions: what it concludes, and how it is run, with scripts in place of the tools that count.
@Suite(.hangGuard) struct InstructionTests {
    @Test("Each case has a name of its own, and is compared with one that there is") func cases() {
        let names = InstructionCase.all.map(\.id)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil }, "\(names)")
        for item in InstructionCase.all {
            #expect(item.baseline.map { names.contains($0) && $0 != item.id } != false, "\(item.id)")
            #expect(0 < item.counts.few && item.counts.few < item.counts.many)
        }
    }

    @Test("The process of a case does what it is about, and prints nothing", arguments: InstructionCase.all.map(\.id))
    func probe(id: String) async throws {
        let arguments = InstructionProbe(id: id, count: 3).arguments
        let result = try await ProductProcess("OperationBenchmark", arguments).result()
        #expect(result.status == 0 && result.output == "" && result.errors == "")
    }

    @Test(
        "The count is found in the output of the tools",
        arguments: [
            (InstructionCounter.Tool.perf, "123456,,instructions:u,1000200,100.00,,\n", 123_456),
            (.perf, "A word of the program, instructions, say\n42,,instructions:u,9,100.00,,", 42),
            (.perf, "40,,cpu_core/instructions/u,9,80.00,,\n2,,cpu_atom/instructions/u,9,20.00,,\n", 42),
            (.perf, "42,,cpu_core/instructions/u,9,80.00,,\n<not counted>,,cpu_atom/instructions/u,0,0.00,,\n", 42),
            (.perf, "<not supported>,,instructions:u,0,100.00,,\n", nil),
            (.perf, "7,,cycles:u,9,100.00,,\n", nil),
            (.valgrind, "==31== Callgrind, a call-graph\n==31== Events    : Ir\n==31== Collected : 123456\n", 123_456),
            (.valgrind, "Collected : 8\n", nil),
        ] as [(InstructionCounter.Tool, String, Int?)])
    func counts(tool: InstructionCounter.Tool, output: String, count: Int?) {
        #expect(tool.count(in: output) == count)
    }

    @Test("What happens once does not count", arguments: [InstructionCase.Counts.ordinary, .composites])
    func difference(counts: InstructionCase.Counts) throws {
        let item = InstructionCase(id: "x", summary: "", counts: counts) { _ in }
        var probes: [InstructionProbe] = []
        let meter = InstructionMeter(rounds: 5) { probe in
            probes.append(probe)
            return 1_000_000 + 12 * probe.count
        }
        #expect(try meter.cost(of: item) == 12)
        // In this case threads do not meet.
        #expect(probes == [counts.few, counts.many].map { InstructionProbe(id: "x", count: $0) })
        let half = InstructionMeter(rounds: 5) { $0.count * 3 / 2 + ($0.count == counts.many ? 1 : 0) }
        #expect(try half.cost(of: item) == 2)
    }

    @Test("Where threads meet, the least of all rounds is taken, of few and of many") func least() throws {
        let item = InstructionCase(id: "x", summary: "", isRepeated: true) { _ in }
        var few = [50, 10, 30, 20, 40].map { 1000 + $0 }
        var many = [500_000, 400_000, 300_000, 101_010, 200_000]
        let meter = InstructionMeter(rounds: 5) { probe in
            probe.count == item.counts.few ? few.removeFirst() : many.removeFirst()
        }
        var texts: [String] = []
        #expect(try meter.cost(of: item) { texts.append($0) } == 10)
        #expect(few.isEmpty && many.isEmpty)
        #expect(texts.prefix(3) == ["round 1 of 5: 2,000", "round 1 of 5: 12,000", "round 2 of 5: 2,000"])
    }

    @Test("The table of instructions has a row for each case") func table() {
        let report = InstructionReport(
            machine: Samples.machine, tool: .valgrind, rounds: 5,
            results: [
                .init(id: "plain", summary: "a subclass", cost: 4_000, baseline: nil),
                .init(id: "life", summary: "its life", cost: 10_000, baseline: .init(id: "plain", cost: 4_000)),
                .init(id: "odd", summary: "more", cost: 10, baseline: .init(id: "none", cost: 0)),
            ])
        #expect(
            report.table == [
                "Instructions for each operation, step or item, counted by valgrind on Abacus, 2 cores, 8 GiB, Linux, "
                    + "Swift 6.2, release build. Where threads meet, the least of 5 rounds is taken.",
                "",
                "case   what        instructions     baseline  ratio",
                "plain  a subclass         4,000",
                "life   its life          10,000  plain 4,000  2.50×",
                "odd    more                  10       none 0",
            ])
    }

    // MARK: - As a process

    /// The only programs to be found.
    private let tools = TemporaryFolder()

    private func run(_ scripts: [String: String], _ arguments: String...) async throws -> ProductProcess.Result {
        for (name, script) in scripts { _ = try tools.script(name, "#!/bin/sh\n\(script)\n") }
        return try await ProductProcess(
            "OperationBenchmark", ["--instructions"] + arguments, environment: ["PATH": tools.path]
        ).result()
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
        #expect(result.status == 0 && result.lines[0].contains(", counted by \(tool) on "))
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
        #expect(result.status == 3 && result.output == "")
        #expect(result.errors.contains("OperationBenchmark: \(error.localizedDescription)"))
    }
}
