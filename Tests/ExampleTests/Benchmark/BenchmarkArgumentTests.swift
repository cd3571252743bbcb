import CommandLineSupport
import OperationKitTestSupport

@testable import OperationBenchmark

@Suite(.hangGuard) struct BenchmarkArgumentTests {
    @Test(
        "What is only for times is refused where instructions are counted",
        arguments: [
            ["--count", "10"], ["--json", "report.json"], ["--compare", "report.json"], ["--check"],
            ["--memory-probe", "children"], ["--instruction-probe", "life"],
        ])
    func mistakesWithInstructions(option: [String]) {
        let message = "\(option[0]) is not for --instructions: expected --only, --rounds or --markdown."
        for arguments in [["--instructions"] + option, option + ["--instructions"]] {
            #expect(throws: UsageError(message: message)) { try ArgumentParser.parse(arguments) }
        }
        // The first one is named.
        #expect(throws: UsageError(message: message)) {
            try ArgumentParser.parse(option + ["--instructions", "--check", "--only=flat"])
        }
    }

    @Test("Help and list are answered on standard output") func information() async throws {
        let help = try await ProductProcess.run("OperationBenchmark", "--help", "--bogus")
        #expect(help.status == 0 && help.errors == "")
        let options = [
            "--only", "--count", "--rounds", "--json", "--compare", "--markdown", "--check", "--instructions", "--list",
            "--help",
        ]
        for option in options { #expect(help.output.contains("  \(option)")) }
        for argument in [MemoryProbe.argument, InstructionProbe.argument] { #expect(!help.output.contains(argument)) }

        let list = try await ProductProcess.run("OperationBenchmark", "--list")
        #expect(list.status == 0)
        let heading = try #require(list.lines.firstIndex(of: "With --instructions:"))
        let names = list.lines[..<heading].filter { !$0.isEmpty && !$0.hasPrefix(" ") }
        #expect(names.map { $0.split(separator: " ")[0] } == Case.all.map { Substring($0.id) })
        #expect(list.lines.count { $0.hasPrefix("    timed: ") } == Case.all.count)
        let instructionNames = list.lines[(heading + 1)...].compactMap { $0.split(separator: " ").first }
        #expect(instructionNames == InstructionCase.all.map { Substring($0.id) })
    }

    @Test("Options carry their values after a space or an equals sign") func options() throws {
        var options = Options()
        (options.only, options.count, options.rounds) = (["chain", "flat"], 10, 7)
        (options.json, options.compared) = ("report.json", "earlier.json")
        (options.isMarkdown, options.isCheck) = (true, true)
        let arguments = [
            "--only", "chain", "--count=10", "--rounds", "7", "--json=report.json", "--compare=earlier.json",
            "--markdown", "--check", "--only=flat",
        ]
        #expect(try ArgumentParser.parse(arguments) == .run(options))
        #expect(options.cases.map(\.id) == ["flat", "chain"])
        #expect(try ArgumentParser.parse([]) == .run(Options()))
        #expect(Options().cases.map(\.id) == Case.all.map(\.id))
        let probe = MemoryProbe(kind: .children, count: 5)
        #expect(try ArgumentParser.parse(["--memory-probe", "children", "--count", "5"]) == .probe(probe))
    }

    @Test("Where instructions are counted, there are cases, rounds and a form") func instructionOptions() throws {
        var options = InstructionOptions()
        (options.only, options.rounds, options.isMarkdown) = (["queue", "life"], 9, true)
        let arguments = ["--only", "queue", "--instructions", "--markdown", "--rounds=9", "--only=life"]
        #expect(try ArgumentParser.parse(arguments) == .instructions(options))
        #expect(options.cases.map(\.id) == ["life", "queue"])
        #expect(try ArgumentParser.parse(["--instructions"]) == .instructions(InstructionOptions()))
        #expect(InstructionOptions().cases.map(\.id) == InstructionCase.all.map(\.id))
        let probe = InstructionProbe(id: "life", count: 5)
        #expect(try ArgumentParser.parse(probe.arguments) == .instructionProbe(probe))
    }
}
