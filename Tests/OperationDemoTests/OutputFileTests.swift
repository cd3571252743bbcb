import OperationKitTestSupport

@testable import OperationDemo

/// The files that `--svg` and `--trace` write, and the chart of `--mermaid`.
@Suite(.hangGuard) struct OutputFileTests {
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
        #expect(svg.hasPrefix("<svg") && svg.trimmingCharacters(in: .newlines).hasSuffix("</svg>"))
        let trace = try JSONSerialization.jsonObject(with: Data(Self.text(directory, "a.json").utf8)) as? [String: Any]
        let events = try #require(trace?["traceEvents"] as? [[String: Any]])
        let slices = events.filter { $0["ph"] as? String == "X" }.compactMap { $0["name"] as? String }
        #expect(slices.filter { $0 == "async" }.count == 2)
        #expect(try Self.names(directory) == ["a.json", "a.svg"])
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
}
