import OperationKitTestSupport

@testable import OperationDemo

/// `files`, as the executable does it.
@Suite(.hangGuard) struct FilesTests {
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
        let result = try await DemoProcess.run("files", sources, "--mode", mode)
        #expect(result.status == 0)
        #expect(result.errors == "")
        #expect(!result.output.contains("\u{1B}"))

        let find = "find '\(sources)' -type f -exec"
        let counts = try await Shell.output(of: "\(find) wc -l -w -c {} \\;", in: BuildProducts.repository)
        let checksums = try await Shell.output(of: "\(find) cksum {} \\;", in: BuildProducts.repository)
        var expected: [String: [Int]] = [:]
        for line in counts {
            let columns = line.split(separator: " ")
            expected[String(columns[3])] = columns.prefix(3).compactMap { Int($0) }
        }
        for line in checksums {
            let columns = line.split(separator: " ")
            expected[String(columns[2]), default: []].append(Int(columns[0]) ?? -1)
        }

        let rows = Self.rows(result)
        let counted = Dictionary(uniqueKeysWithValues: rows.dropLast().map { ($0.name, $0.numbers) })
        #expect(!counted.isEmpty)
        #expect(counted == expected)

        let total = try #require(rows.last)
        #expect(total.name == "total of \(expected.count) files")
        #expect(total.numbers == (0..<3).map { column in expected.values.map { $0[column] }.reduce(0, +) })
    }

    @Test("Links, pipes and cycles are not files") func noFiles() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("one line\n", to: "sub/file")
        _ = try await Shell.output(
            of: "ln -s . cycle; ln -s .. sub/up; ln -s file sub/link; mkfifo pipe", in: directory.url)
        let result = try await DemoProcess.run("files", directory.path)
        #expect(result.status == 0)
        #expect(Self.rows(result).map(\.name) == ["\(directory.path)/sub/file", "total of 1 file"])
    }

    /// A path that is too long to be opened stands for what cannot be read: it keeps the superuser out, too.
    @Test("What cannot be read is reported by name, and the rest is counted") func unreadable() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("still counted\n", to: "readable")
        let name = String(repeating: "n", count: 200)
        // Each level is put around the ones before: no command gets a path that is too long.
        _ = try await Shell.output(
            of: "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do "
                + "mkdir next; if [ -d \(name) ]; then mv \(name) next; fi; mv next \(name); done", in: directory.url)

        let result = try await DemoProcess.run("files", directory.path)
        #expect(result.status == 1)
        #expect(Self.rows(result).map(\.name) == ["\(directory.path)/readable", "total of 1 file"])
        _ = try await Shell.output(of: "rm -rf \(name)", in: directory.url)
        let complaints = result.errors.split(separator: "\n")
        #expect(complaints.count == 1)
        #expect(complaints.first?.hasPrefix("OperationDemo: cannot read “\(directory.path)/\(name)/") == true)
    }

    @Test("Control-C stops reading, prints what was done and ends with status 130") func interruption() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("done before\n", to: "small")
        // Far more than can be read before the interruption comes.
        try directory.writeHole(of: 1 << 40, to: "large")
        let process = try DemoProcess.start(["files", directory.path])
        process.when("/small") { _ in process.interrupt() }
        let result = await process.result()
        #expect(result.status == 130)
        #expect(Self.rows(result).map(\.name) == ["\(directory.path)/small", "total of 1 file"])
        #expect(result.errors.contains("interrupted"))
    }
}
