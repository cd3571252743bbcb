import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// `files`, as the executable does it.
@Suite struct FilesTests {
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

    @Test("The largest files are in a table, the largest first") func largestFiles() async throws {
        let directory = try TemporaryDirectory()
        for size in 1...12 { try directory.write(String(repeating: "x", count: size * 10), to: "\(size % 3)/\(size)") }
        let result = try await DemoProcess.run("files", directory.path)
        let heading = try #require(result.lines.firstIndex(of: "The largest files:"))
        let table = result.lines[(heading + 2)...].filter { $0 != "" }
        let paths = table.compactMap { $0.split(separator: " ").last.map(String.init) }
        #expect(paths == (3...12).reversed().map { "\(directory.path)/\($0 % 3)/\($0)" })
    }

    @Test("An empty directory has a total of 0 files") func emptyDirectory() async throws {
        let directory = try TemporaryDirectory()
        let result = try await DemoProcess.run("files", directory.path)
        #expect(result.status == 0)
        #expect(Self.rows(result).map(\.name) == ["total of 0 files"])
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

    @Test("Names of files can neither break lines nor control the terminal") func names() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("x", to: "a\nb\u{1B}[31m c")
        let result = try await DemoProcess.run("files", directory.path)
        #expect(Self.rows(result).first?.name == "\(directory.path)/a\\u{a}b\\u{1b}[31m c")
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

    @Test(
        "Files and directories without permission are reported in the order of their paths",
        .enabled(if: getuid() != 0, "The superuser can read everything")
    )
    func permissions() async throws {
        let directory = try TemporaryDirectory()
        for file in ["a", "b", "c/d"] { try directory.write("x", to: file) }
        _ = try await Shell.output(of: "chmod 000 b c", in: directory.url)
        let result = try await DemoProcess.run("files", directory.path)
        _ = try await Shell.output(of: "chmod 700 b c", in: directory.url)
        #expect(result.status == 1)
        #expect(Self.rows(result).last?.name == "total of 1 file")
        let complaints = result.errors.split(separator: "\n")
        #expect(complaints.map { $0.contains("/b”") } == [true, false])
        #expect(complaints.map { $0.contains("/c”") } == [false, true])
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

    @Test("A reader that goes away ends the demo without a word") func closedPipe() async throws {
        let directory = try TemporaryDirectory()
        let demo = try BuildProducts.executable("OperationDemo").path
        let sources = BuildProducts.repository.appendingPathComponent("Sources").path
        // Once with the signal as a shell's child gets it, once with a parent that ignores it.
        for prefix in ["", "trap '' PIPE; "] {
            let line = "\(prefix)'\(demo)' files '\(sources)' 2> errors | true; cat errors; echo end"
            #expect(try await Shell.output(of: line, in: directory.url) == ["end"])
        }
    }

    @Test("What has taken the place of a file is reported, and neither counted nor waited for")
    func replacedFile() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("x", to: "file")
        _ = try await Shell.output(of: "mkfifo pipe; ln -s file link; mkdir directory", in: directory.url)
        let errors: [String: FileError] = [
            "pipe": .noRegularFile, "link": FileError(code: ELOOP), "directory": .noRegularFile,
            "vanished": FileError(code: ENOENT),
        ]
        for (name, error) in errors {
            let counting = await Self.count("\(directory.path)/\(name)")
            #expect(counting.count == nil && counting.error as? FileError == error, "\(name)")
            #expect(counting.name == "\(directory.path)/\(name)" && error.localizedDescription != "")
        }
        let counting = await Self.count("\(directory.path)/file")
        #expect(counting.count?.bytes == 1 && counting.error == nil)
    }

    /// An operation that counts in a file, once it has finished by itself.
    private static func count(_ path: String) async -> CountFile {
        let operation = CountFile(RawPath(path))
        await withCheckedContinuation { continuation in
            (operation as Operation).completionBlock = { continuation.resume() }
            OperationQueue().addOperation(operation)
        }
        return operation
    }

    @Test("Many files are counted with few file descriptors") func fewDescriptors() async throws {
        let directory = try TemporaryDirectory()
        let count = 1000
        let loop = "for d in 1 2 3; do mkdir $d; done; i=0; while [ $i -lt \(count) ]; do"
        _ = try await Shell.output(
            of: "\(loop) i=$((i + 1)); echo a b > $((i % 3 + 1))/$i; done", in: directory.url)
        let demo = try BuildProducts.executable("OperationDemo").path
        let line = "ulimit -n 40; '\(demo)' files '\(directory.path)' --width 200"
        let lines = try await Shell.output(of: line, in: directory.url)
        let rows = lines.compactMap(Row.init)
        let total = rows.first { $0.name == "total of \(count) files" }
        #expect(total?.numbers == [count, 2 * count, 4 * count])
        #expect(rows.filter { $0.numbers.count == 4 }.count == count)
    }
}
