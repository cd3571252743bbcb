import OperationKitProcess
import OperationKitTestSupport

@testable import OperationDemo

/// `files`, as the executable does it.
@Suite(.hangGuard) struct FilesTests {
    private let folder = TemporaryFolder()

    /// The rows of the output: numbers, then the path. The total has no checksum.
    private struct Row: Hashable {
        let numbers: [Int]
        let name: String

        init?(_ line: String) {
            let columns = line.split(separator: " ")
            let numbers = columns.prefix { Int($0) != nil }
            guard numbers.count >= 3 else { return nil }
            self.numbers = numbers.compactMap { Int($0) }
            name = columns.dropFirst(numbers.count).joined(separator: " ")
        }
    }

    private static func rows(_ result: ProductProcess.Result) -> [Row] {
        result.lines.prefix { $0 != "" }.compactMap(Row.init)
    }

    @Test("The counts of the sources agree with those of the system", arguments: ["serial", "concurrent"])
    func counts(mode: String) async throws {
        let sources = BuildProducts.repository.appendingPathComponent("Sources/OperationKitTimelines").path
        let result = try await ProductProcess.run("OperationDemo", "files", sources, "--mode", mode)
        #expect(result.status == 0 && result.errors == "" && !result.output.contains("\u{1B}"))

        let find = "find '\(sources)' -type f -exec"
        var expected: [String: [Int]] = [:]
        for line in try await shell("\(find) wc -l -w -c {} \\;") + shell("\(find) cksum {} \\;") {
            let columns = line.split(separator: " ")
            expected[String(columns.last ?? ""), default: []] += columns.dropLast().prefix(3).compactMap { Int($0) }
        }
        // Of the checksum and the size, the first one.
        for name in expected.keys { expected[name]?.removeLast() }

        let rows = Self.rows(result)
        let counted = Dictionary(uniqueKeysWithValues: rows.dropLast().map { ($0.name, $0.numbers) })
        #expect(!counted.isEmpty && counted == expected)

        let total = try #require(rows.last)
        #expect(total.name == "total of \(expected.count) files")
        #expect(total.numbers == (0..<3).map { column in expected.values.map { $0[column] }.reduce(0, +) })
    }

    @Test("Links, pipes and cycles are not files") func noFiles() async throws {
        try folder.file("sub/file", "one line\n")
        _ = try await shell("ln -s . cycle; ln -s .. sub/up; ln -s file sub/link; mkfifo pipe")
        let result = try await ProductProcess.run("OperationDemo", "files", folder.path)
        #expect(result.status == 0)
        #expect(Self.rows(result).map(\.name) == ["\(folder.path)/sub/file", "total of 1 file"])
    }

    /// A path that is too long to be opened stands for what cannot be read: it keeps the superuser out, too.
    @Test("What cannot be read is reported by name, and the rest is counted") func unreadable() async throws {
        try folder.file("readable", "still counted\n")
        let name = String(repeating: "n", count: 200)
        // Each level is put around the ones before: no command gets a path that is too long.
        _ = try await shell(
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do "
                + "mkdir next; if [ -d \(name) ]; then mv \(name) next; fi; mv next \(name); done")
        let result = try await ProductProcess.run("OperationDemo", "files", folder.path)
        #expect(result.status == 1)
        #expect(Self.rows(result).map(\.name) == ["\(folder.path)/readable", "total of 1 file"])
        _ = try await shell("rm -rf \(name)")
        #expect(result.errors.hasPrefix("OperationDemo: cannot read “\(folder.path)/\(name)/"))
        #expect(result.errors.split(separator: "\n").count == 1)
    }

    @Test("Control-C stops reading, prints what was done and ends with status 130") func interruption() async throws {
        try folder.file("small", "done before\n")
        // Far more than can be read before the interruption comes.
        try folder.hole("large", size: 1 << 40)
        let process = try ProductProcess("OperationDemo", ["files", folder.path])
        await process.hasWritten("/small")
        await process.interrupt()
        let result = try await process.result()
        #expect(result.status == 130 && result.errors.contains("interrupted"))
        #expect(Self.rows(result).map(\.name) == ["\(folder.path)/small", "total of 1 file"])
    }

    /// Runs a line of shell in the folder, for what the system's own tools say, and returns the lines that it prints.
    private func shell(_ line: String) async throws -> [String] {
        let shell = ProcessOperation("/bin/sh", ["-c", "export LC_ALL=C.UTF-8; \(line)"], directory: folder.url)
        return try await OperationQueue().run(shell).text.split(separator: "\n").map(String.init)
    }
}
