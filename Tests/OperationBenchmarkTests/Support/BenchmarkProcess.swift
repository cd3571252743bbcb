import Foundation
import Testing

/// The built executable in a process of its own.
enum BenchmarkProcess {
    /// What a process left behind.
    struct Result {
        let status: Int32
        let output: String
        let errors: String

        var lines: [String] {
            output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Runs the benchmark to its end.
    static func run(_ arguments: String...) async throws -> Result {
        try await run(arguments: arguments)
    }

    /// Runs the benchmark to its end. With a redirection, such as `>/dev/full`, a shell sends the output there instead.
    static func run(arguments: [String], redirection: String? = nil) async throws -> Result {
        let process = Process()
        process.executableURL = try executable()
        process.arguments = arguments
        if let redirection {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = try ["-c", #"exec "$0" "$@" "# + redirection, executable().path] + arguments
        }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        return await withCheckedContinuation { continuation in
            // Waits on a thread of its own. Of the second pipe less is written than it holds.
            Thread {
                let text = output.fileHandleForReading.readDataToEndOfFile()
                let complaints = errors.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                continuation.resume(
                    returning: Result(
                        status: process.terminationStatus, output: String(decoding: text, as: UTF8.self),
                        errors: String(decoding: complaints, as: UTF8.self)))
            }.start()
        }
    }

    /// The executable lies in the directory of the test bundle, or above it, wherever the build was directed.
    private static func executable() throws -> URL {
        let bundles = CommandLine.arguments + Bundle.allBundles.map(\.bundlePath)
        let found = bundles.lazy.compactMap { path -> URL? in
            var directory = URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath()
            while directory.pathComponents.count > 1 {
                directory.deleteLastPathComponent()
                let candidate = directory.appendingPathComponent("OperationBenchmark", isDirectory: false)
                let isDirectory = (try? candidate.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory
                if isDirectory == false, FileManager.default.isExecutableFile(atPath: candidate.path) {
                    return candidate
                }
            }
            return nil
        }.first
        return try #require(found, "OperationBenchmark has to be built next to its tests")
    }
}
