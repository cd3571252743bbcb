import OperationKitTestSupport

@testable import OperationDemo

/// The files that `--svg` and `--trace` write, and the chart of `--mermaid`.
@Suite(.hangGuard) struct OutputFileTests {
    private let folder = TemporaryFolder()

    private func text(_ name: String) throws -> String {
        try String(contentsOf: folder.url.appendingPathComponent(name), encoding: .utf8)
    }

    @Test("A scenario is drawn into both files, with both runs in one drawing") func scenario() async throws {
        let result = try await ProductProcess.run(
            "OperationDemo", "tour", "--speed=10", "--svg=\(folder.path)/a.svg", "--trace=\(folder.path)/a.json")
        #expect(result.status == 0 && result.errors == "" && result.output.contains("serial queue"))
        let svg = try text("a.svg")
        for name in ["serial queue", "concurrent queue", "compound-3", "naive (work)"] { #expect(svg.contains(name)) }
        #expect(svg.hasPrefix("<svg") && svg.trimmingCharacters(in: .newlines).hasSuffix("</svg>"))
        let trace = try JSONSerialization.jsonObject(with: Data(text("a.json").utf8)) as? [String: Any]
        let events = try #require(trace?["traceEvents"] as? [[String: Any]])
        let slices = events.filter { $0["ph"] as? String == "X" }.compactMap { $0["name"] as? String }
        #expect(slices.filter { $0 == "async" }.count == 2)
        #expect(folder.names == ["a.json", "a.svg"])
    }

    @Test(
        "A file that cannot be written is named with the reason before anything runs",
        arguments: [
            ("missing/a.svg", "No such file or directory"), ("directory", "Is a directory"),
            ("file/a.svg", "Not a directory"),
        ])
    func unwritable(name: String, reason: String) async throws {
        try folder.file("directory/x", "x")
        try folder.file("file", "x")
        for arguments in [["async", "--svg"], ["async", "--trace"], ["files", folder.path, "--svg"]] {
            let path = "\(folder.path)/\(name)"
            let result = try await ProductProcess("OperationDemo", arguments + [path]).result()
            #expect(result.status == 74 && result.output == "")
            #expect(result.errors == "OperationDemo: cannot write “\(path)”: \(reason)\n")
        }
        #expect(folder.names == ["directory", "file"])
    }

    @Test("Control-C leaves neither a file nor a change of one") func interruption() async throws {
        try folder.file("old.json", "kept")
        let process = try ProductProcess(
            "OperationDemo",
            ["async", "--speed", "0.01", "--svg", "\(folder.path)/new.svg", "--trace", "\(folder.path)/old.json"])
        await process.hasWritten("async: three correct")
        await process.interrupt()
        #expect(try await process.result().status == 130)
        #expect(folder.names == ["old.json"])
        #expect(try text("old.json") == "kept")
    }
}
