import OperationKitTestSupport

@testable import OperationDemo

@Suite(.hangGuard) struct ArgumentTests {
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
        let result = await (try DemoProcess.start(arguments)).result()
        #expect(result.status == 64)
        #expect(result.output == "")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == 5)
        #expect(lines.first?.hasPrefix("OperationDemo: ") == true)
        #expect(lines.first?.contains(sentence) == true)
        #expect(lines[1].hasPrefix("usage: OperationDemo "))
    }

    @Test("Help, version and list are answered on standard output") func information() async throws {
        let help = try await DemoProcess.run("--help")
        #expect(help.status == 0)
        #expect(help.errors == "")
        let options = [
            "--mode", "--width", "--speed", "--svg", "--trace", "--mermaid", "--log", "--no-color", "--interactive",
            "--list", "--help", "--version",
        ]
        for option in options { #expect(help.output.contains("  \(option)")) }
        for line in help.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }

        let version = try await DemoProcess.run("--version")
        #expect(version.status == 0)
        #expect(version.output == "OperationDemo 0.1.0\n")

        let list = try await DemoProcess.run("--list")
        #expect(list.status == 0)
        let names = list.output.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) }
        #expect(names == Scenario.allCases.map(\.rawValue))
    }

    @Test("Options may stand anywhere, with their values after a space or an equals sign") func options() throws {
        var options = Options()
        options.mode = .concurrent
        options.width = 8
        options.speed = 2.5
        options.allowsColor = false
        options.showsLog = true
        options.svg = "drawing.svg"
        let arguments = [
            "--mode=concurrent", "async", "--width", "8", "--no-color", "--speed=2.5", "--log", "--svg", "drawing.svg",
        ]
        #expect(try ArgumentParser.parse(arguments) == .scenario(.async, options))
        #expect(try ArgumentParser.parse([]) == .scenario(.tour, Options()))
        #expect(try ArgumentParser.parse(["--interactive"]) == .interactive(Options()))
    }
}
