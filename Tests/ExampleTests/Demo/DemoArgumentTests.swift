import OperationKitTestSupport

@testable import OperationDemo

@Suite(.hangGuard) struct DemoArgumentTests {
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
