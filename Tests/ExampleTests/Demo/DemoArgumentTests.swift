import OperationKitTestSupport

@testable import OperationDemo

@Suite(.hangGuard) struct DemoArgumentTests {
    @Test(
        "A mistake is answered with a sentence, the usage and status 64",
        arguments: [
            (
                ["nonsense"],
                "expected one of tour, sync, naive, async, compound, cancel, errors, chain, waterfall, glue, policies, collection, critical-path, files"
            ),
            (["--bogus"], "Unknown option “--bogus”: expected --mode"),
            (["-x"], "Unknown option “-x”"),
            (["tour", "sync"], "“sync” is too much"),
            (["files"], "expected a directory"),
            (["files", "a", "b"], "“b” is too much"),
            (["files", "no/such/directory"], "expected a directory that exists"),
            (["files", ".", "--mode", "both"], "expected --mode serial or --mode concurrent"),
            (["--mode"], "--mode is missing its value: expected serial, concurrent or both"),
            (["--mode", "parallel"], "“parallel” is no value for --mode: expected serial, concurrent or both"),
            (["--width", "0"], "expected a whole number from 1 to 256"),
            (["--width=2.5"], "expected a whole number from 1 to 256"),
            (["--width", "99999999999999999999"], "expected a whole number from 1 to 256"),
            (["--speed", "0"], "expected a number from 0.01 to 1000"),
            (["--speed", "-1"], "expected a number from 0.01 to 1000"),
            (["--speed", "nan"], "expected a number from 0.01 to 1000"),
            (["--speed", "inf"], "expected a number from 0.01 to 1000"),
            (["--speed", ""], "expected a number from 0.01 to 1000"),
            (["--list=all"], "--list takes no value"),
            (["--interactive", "tour"], "expected no scenario with --interactive"),
            (["--interactive", "--mode", "both"], "expected --mode serial or --mode concurrent"),
            (["--interactive"], "expects a terminal"),
            (["--svg"], "--svg is missing its value: expected a file to write"),
            (["--trace="], "expected a file to write"),
            (["--svg", "a", "--trace", "a"], "expected different files"),
            (["--mermaid=x"], "--mermaid takes no value"),
            (["--mermaid", "--log"], "expected no --log"),
            (["files", ".", "--log"], "expected no --log"),
            (["--interactive", "--svg", "a"], "expected no --svg, --trace, --mermaid or --log"),
            (["--", "--help"], "Unknown scenario “--help”"),
        ])
    func mistakes(arguments: [String], sentence: String) async throws {
        let result = try await ProductProcess("OperationDemo", arguments).result()
        #expect(result.status == 64 && result.output == "")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == 5 && lines[0].hasPrefix("OperationDemo: ") && lines[0].contains(sentence))
        #expect(lines[1].hasPrefix("usage: OperationDemo "))
    }

    @Test("Help, version and list are answered on standard output") func information() async throws {
        let help = try await ProductProcess.run("OperationDemo", "--help")
        #expect(help.status == 0 && help.errors == "")
        let options = [
            "--mode", "--width", "--speed", "--svg", "--trace", "--mermaid", "--log", "--no-color", "--interactive",
            "--list", "--help", "--version",
        ]
        for option in options { #expect(help.output.contains("  \(option)")) }
        for line in help.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }

        let version = try await ProductProcess.run("OperationDemo", "--version")
        #expect(version.status == 0 && version.output == "OperationDemo 0.1.0\n")

        let list = try await ProductProcess.run("OperationDemo", "--list")
        let names = list.output.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) }
        #expect(list.status == 0 && names == Scenario.allCases.map(\.rawValue))
    }

    @Test("Options may stand anywhere, with their values after a space or an equals sign") func options() throws {
        var options = Options()
        (options.mode, options.width, options.speed) = (.concurrent, 8, 2.5)
        (options.allowsColor, options.showsLog, options.svg) = (false, true, "drawing.svg")
        let arguments = [
            "--mode=concurrent", "async", "--width", "8", "--no-color", "--speed=2.5", "--log", "--svg", "drawing.svg",
        ]
        #expect(try ArgumentParser.parse(arguments) == .scenario(.async, options))
        #expect(try ArgumentParser.parse([]) == .scenario(.tour, Options()))
        #expect(try ArgumentParser.parse(["--interactive"]) == .interactive(Options()))
    }
}
