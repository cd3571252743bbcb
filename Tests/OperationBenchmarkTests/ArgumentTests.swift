import OperationKitTestSupport
import Testing

@testable import OperationBenchmark

@Suite struct ArgumentTests {
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
            (["--check=yes"], "--check takes no value"),
            (["--memory-probe", "x"], "expected one of compound, children"),
        ])
    func mistakes(arguments: [String], sentence: String) async throws {
        let result = try await BenchmarkProcess.run(arguments: arguments)
        #expect(result.status == 2)
        #expect(result.output == "")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("OperationBenchmark: ") == true)
        #expect(lines.first?.contains(sentence) == true)
        #expect(lines.last?.hasPrefix("usage: OperationBenchmark ") == true)
    }

    @Test("Help and list are answered on standard output") func information() async throws {
        let help = try await BenchmarkProcess.run("--help", "--bogus")
        #expect(help.status == 0)
        #expect(help.errors == "")
        let options = ["--only", "--count", "--rounds", "--json", "--markdown", "--check", "--list", "--help"]
        for option in options { #expect(help.output.contains("  \(option)")) }
        #expect(!help.output.contains(MemoryProbe.argument))

        let list = try await BenchmarkProcess.run("--list")
        #expect(list.status == 0)
        let names = list.lines.filter { !$0.isEmpty && !$0.hasPrefix(" ") }.map { $0.split(separator: " ")[0] }
        #expect(names.map(String.init) == Case.all.map(\.id))
        #expect(list.lines.count { $0.hasPrefix("    timed: ") } == Case.all.count)
    }

    @Test("Options carry their values after a space or an equals sign") func options() throws {
        var options = Options()
        options.only = ["chain", "flat"]
        options.count = 10
        options.rounds = 7
        options.json = "report.json"
        options.isMarkdown = true
        options.isCheck = true
        let arguments = [
            "--only", "chain", "--count=10", "--rounds", "7", "--json=report.json", "--markdown", "--check",
            "--only=flat",
        ]
        #expect(try ArgumentParser.parse(arguments) == .run(options))
        #expect(options.cases.map(\.id) == ["flat", "chain"])
        #expect(try ArgumentParser.parse([]) == .run(Options()))
        #expect(Options().cases.map(\.id) == Case.all.map(\.id))
        let probe = MemoryProbe(kind: .children, count: 5)
        #expect(try ArgumentParser.parse(["--memory-probe", "children", "--count", "5"]) == .probe(probe))
    }
}
