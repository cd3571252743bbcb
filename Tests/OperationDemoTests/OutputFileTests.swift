import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The files that `--svg` and `--trace` write, and the chart of `--mermaid`.
@Suite struct OutputFileTests {
    private static func text(_ directory: TemporaryDirectory, _ name: String) throws -> String {
        try String(contentsOf: directory.url.appendingPathComponent(name), encoding: .utf8)
    }

    private static func names(_ directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    }

    @Test("A scenario is drawn into both files, with both runs in one drawing") func scenario() async throws {
        let directory = try TemporaryDirectory()
        let result = try await DemoProcess.run(
            "tour", "--speed", "10", "--svg", "\(directory.path)/a.svg", "--trace", "\(directory.path)/a.json")
        #expect(result.status == 0 && result.errors == "" && result.output.contains("serial queue"))
        let svg = try Self.text(directory, "a.svg")
        for name in ["serial queue", "concurrent queue", "compound-3", "naive (work)"] { #expect(svg.contains(name)) }
        #expect(svg.hasPrefix("<svg") && XMLCheck.isComplete(svg))
        let trace = try JSONSerialization.jsonObject(with: Data(Self.text(directory, "a.json").utf8)) as? [String: Any]
        let events = try #require(trace?["traceEvents"] as? [[String: Any]])
        let slices = events.filter { $0["ph"] as? String == "X" }.compactMap { $0["name"] as? String }
        #expect(slices.filter { $0 == "async" }.count == 2)
        #expect(try Self.names(directory) == ["a.json", "a.svg"])
    }

    @Test("Files are drawn as what they were counted by, and the table stays the same") func files() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("a\n", to: "in/one")
        try directory.write("b\n", to: "in/two")
        let plain = try await DemoProcess.run("files", "\(directory.path)/in", "--mode", "serial")
        let drawn = try await DemoProcess.run(
            "files", "\(directory.path)/in", "--mode", "serial", "--svg", "\(directory.path)/out.svg")
        #expect(drawn.status == 0 && drawn.output == plain.output)
        #expect(try Self.text(directory, "out.svg").contains("/in/two"))
        let chart = try await DemoProcess.run("files", "\(directory.path)/in", "--mermaid")
        #expect(chart.status == 0 && chart.output.hasPrefix("gantt\n") && chart.output.contains("/in/one"))
        #expect(!chart.output.contains("total of"))
    }

    @Test("A chart for Mermaid is all that is printed") func mermaid() async throws {
        let result = try await DemoProcess.run("critical-path", "--mermaid", "--speed", "20")
        #expect(result.status == 0 && result.errors == "")
        #expect(result.output.hasPrefix("gantt\n    title critical-path"))
        #expect(result.lines.dropFirst().allSatisfy { $0.isEmpty || $0.hasPrefix("    ") })
        #expect(result.lines.contains { $0.contains("compile-core :done, crit") })
    }

    @Test(
        "A file that cannot be written is named with the reason before anything runs",
        arguments: [
            ("missing/a.svg", "No such file or directory"), ("directory", "Is a directory"),
            ("file/a.svg", "Not a directory"),
        ])
    func unwritable(name: String, reason: String) async throws {
        let directory = try TemporaryDirectory()
        try directory.write("x", to: "directory/x")
        try directory.write("x", to: "file")
        for arguments in [["async", "--svg"], ["async", "--trace"], ["files", directory.path, "--svg"]] {
            let process = try DemoProcess.start(arguments + ["\(directory.path)/\(name)"])
            let result = await process.result()
            #expect(result.status == 74)
            #expect(result.output == "")
            #expect(result.errors == "OperationDemo: cannot write “\(directory.path)/\(name)”: \(reason)\n")
        }
        #expect(try Self.names(directory) == ["directory", "file"])
    }

    #if os(Linux)
    @Test("A full disk is reported when the run has ended") func fullDisk() async throws {
        let result = try await DemoProcess.run("async", "--speed", "100", "--svg", "/dev/full")
        #expect(result.status == 74 && result.output.contains("async, concurrent queue"))
        #expect(result.errors == "OperationDemo: cannot write “/dev/full”: No space left on device\n")
    }
    #endif

    @Test("An existing file is replaced as a whole, and links stay links") func replacement() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(String(repeating: "old ", count: 100_000), to: "old.svg")
        for link in ["ln -s old.svg link.svg", "ln -s new.svg dangling.svg"] {
            _ = try await Shell.output(of: link, in: directory.url)
        }
        for name in ["link.svg", "dangling.svg"] {
            let result = try await DemoProcess.run("sync", "--speed", "100", "--svg", "\(directory.path)/\(name)")
            #expect(result.status == 0)
        }
        #expect(!(try Self.text(directory, "old.svg")).contains("old "))
        #expect(try Self.text(directory, "new.svg").contains("sync-1"))
        let links = try await Shell.output(of: "find . -type l | sort", in: directory.url)
        #expect(links == ["./dangling.svg", "./link.svg"])
    }

    @Test("Control-C leaves neither a file nor a change of one") func interruption() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("kept", to: "old.json")
        let process = try DemoProcess.start([
            "async", "--speed", "0.01", "--svg", "\(directory.path)/new.svg", "--trace", "\(directory.path)/old.json",
        ])
        #expect(await process.hasWritten("async: three correct"))
        process.interrupt()
        #expect(await process.result().status == 130)
        #expect(try Self.names(directory) == ["old.json"])
        #expect(try Self.text(directory, "old.json") == "kept")
    }

    @Test("After an interruption of `files`, what was done is drawn") func interruptedFiles() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("x", to: "in/small")
        try directory.writeHole(of: 1 << 40, to: "in/large")
        let process = try DemoProcess.start(["files", "\(directory.path)/in", "--svg", "\(directory.path)/out.svg"])
        process.when("/small") { _ in process.interrupt() }
        #expect(await process.result().status == 130)
        let svg = try Self.text(directory, "out.svg")
        #expect(svg.contains("/in/large") && XMLCheck.isComplete(svg))
    }
}

/// Whether a text is a document that was written to its end.
private enum XMLCheck {
    static func isComplete(_ text: String) -> Bool {
        text.hasSuffix("</svg>\n") || text.hasSuffix("</svg>")
    }
}
