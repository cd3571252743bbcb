import CommandLineSupport
import OperationKitTestSupport

@testable import OperationBenchmark

@Suite(.hangGuard) struct BenchmarkArgumentTests {
    @Test(
        "A mistake is answered with a sentence, the usage and status 2, and nothing is measured",
        arguments: [
            (["flat"], "“flat” is too much: expected options only"),
            (["--bogus"], "Unknown option “--bogus”: expected --only"),
            (["--only"], "--only is missing its value: expected one of queue, flat, chain"),
            (["--only", "heap"], "Unknown case “heap”: expected one of queue, flat, chain"),
            (["--count"], "--count is missing its value: expected a whole number from 1 to 1000000"),
            (["--count", "0"], "“0” is no value for --count: expected a whole number from 1"),
            (["--count=1e3"], "“1e3” is no value for --count"),
            (["--count", "99999999999999999999"], "is no value for --count"),
            (["--rounds", "4"], "“4” is no value for --rounds: expected a whole number from 5"),
            (["--json"], "--json is missing its value: expected a file"),
            (["--json="], "expected a file to write to"),
            (["--json", "/no/such/directory/report.json"], "“/no/such/directory/report.json” cannot be written"),
            (["--json", "/"], "“/” cannot be written"),
            (["--compare"], "--compare is missing its value: expected a file that --json wrote"),
            (["--compare", "/no/such/report.json"], "“/no/such/report.json” cannot be read"),
            (["--check=yes"], "--check takes no value"),
            (["--memory-probe", "x"], "expected one of compound, children"),
            (["--only", "life"], "Unknown case “life”: expected one of queue, flat, chain"),
            (["--instructions=yes"], "--instructions takes no value"),
            (["--instructions", "--only"], "or, with --instructions, of plain, creation"),
            (["--instructions", "--only", "flat"], "Unknown case “flat” for --instructions: expected one of plain"),
            (["--only", "flat", "--instructions"], "Unknown case “flat” for --instructions: expected one of plain"),
            (["--instructions", "--rounds", "4"], "“4” is no value for --rounds: expected a whole number from 5"),
            (["--instruction-probe", "flat"], "“flat” is no value for --instruction-probe: expected one of plain"),
        ])
    func mistakes(arguments: [String], sentence: String) async throws {
        let result = try await ProductProcess("OperationBenchmark", arguments).result()
        #expect(result.status == 2 && result.output == "")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("OperationBenchmark: ") && lines[0].contains(sentence))
        #expect(lines.last?.hasPrefix("usage: OperationBenchmark ") == true)
    }

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
