import Foundation

/// A program that runs another one and counts its instructions.
struct InstructionCounter: Sendable {
    /// The programs, those to try first at the front.
    enum Tool: String, CaseIterable, Sendable {
        /// Has the processor count. Many virtual machines do not let it.
        case perf
        /// Counts in a simulation, some fifty times as slow.
        case valgrind

        /// The arguments before the program to run.
        var arguments: [String] {
            switch self {
            case .perf: ["stat", "-x,", "-e", "instructions:u"]
            case .valgrind: ["--tool=callgrind", "--callgrind-out-file=/dev/null"]
            }
        }

        /// Returns the number of instructions in what the tool wrote to standard error, or `nil` if it did not count.
        func count(in text: String) -> Int? {
            let lines = text.split(separator: "\n")
            switch self {
            case .perf:
                // Fields are the count, its unit and the event. Kinds of cores are counted on lines of their own.
                let counts = lines.lazy.map { $0.split(separator: ",", omittingEmptySubsequences: false) }
                    .filter { $0.count > 2 && $0[2].contains("instructions") }
                    .compactMap { Int($0[0]) }
                return counts.isEmpty ? nil : counts.reduce(0, +)
            case .valgrind:
                return lines.lazy.compactMap { $0.wholeMatch(of: /==\d+== Collected *: (\d+)/) }.first
                    .flatMap { Int($0.1) }
            }
        }
    }

    let tool: Tool
    let executable: URL

    /// Chooses the first tool that is there and counts.
    ///
    /// - Parameter path: The folders to search, as in the environment.
    /// - Returns: A counter that uses the tool.
    /// - Throws: ``InstructionCounterError`` if there is none.
    static func first(searching path: String) throws(InstructionCounterError) -> InstructionCounter {
        for tool in Tool.allCases {
            guard let executable = executable(tool.rawValue, in: path) else { continue }
            let counter = InstructionCounter(tool: tool, executable: executable)
            // Only perf depends on the processor, and on the rights of the user.
            if tool == .valgrind || (try? counter.count(["true"])) != nil { return counter }
        }
        throw InstructionCounterError.noTool
    }

    /// Runs a program to its end, and returns how many instructions it took.
    ///
    /// - Parameter command: The program, and its arguments.
    /// - Returns: The number of instructions of all its threads.
    /// - Throws: ``InstructionCounterError`` if the program failed or was not counted.
    func count(_ command: [String]) throws -> Int {
        let process = Process()
        process.executableURL = executable
        process.arguments = tool.arguments + command
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw InstructionCounterError.failed(tool, status: process.terminationStatus)
        }
        guard let count = tool.count(in: String(decoding: output, as: UTF8.self)) else {
            throw InstructionCounterError.notCounted(tool)
        }
        return count
    }

    private static func executable(_ name: String, in path: String) -> URL? {
        path.split(separator: ":").lazy.map { URL(fileURLWithPath: String($0)).appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }
}

/// Instructions could not be counted.
enum InstructionCounterError: LocalizedError, Equatable {
    case noTool
    case failed(InstructionCounter.Tool, status: Int32)
    case notCounted(InstructionCounter.Tool)

    var errorDescription: String? {
        switch self {
        case .noTool:
            "Instructions are counted by perf, where the processor lets it, or else by valgrind. Neither can be used "
                + "here: install one of them."
        case .failed(let tool, let status): "What \(tool.rawValue) was to count ended with status \(status)."
        case .notCounted(let tool): "\(tool.rawValue) did not say how many instructions it counted."
        }
    }
}
