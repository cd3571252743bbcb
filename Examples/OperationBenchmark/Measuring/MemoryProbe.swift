import Foundation
import OperationKit

#if canImport(Darwin)
import Darwin
#endif

/// Measures memory in a process of its own: a peak is that of a whole process, and never goes down again.
///
/// The process is the benchmark itself, with an argument that no one else gives it. It prints a number of bytes.
struct MemoryProbe: Equatable, Sendable {
    /// What is done in the process.
    enum Kind: String, CaseIterable, Sendable {
        /// Children are made, and run by a compound. They are kept, as are those that are only made.
        case compound
        /// Children are made.
        case children
        /// Operations are started, each with a timeout that it does not reach, and work until all have been started.
        case timeouts
        /// The same without.
        case working
    }

    static let argument = "--memory-probe"

    let kind: Kind
    let count: Int

    /// By how many bytes the memory grows.
    func inProcessOfItsOwn() throws -> Double {
        let process = Process()
        process.executableURL = Bundle.main.executableURL
        process.arguments = [Self.argument, kind.rawValue, "--count", String(count)]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0, let bytes = Double(String(decoding: output, as: UTF8.self)) else {
            throw MemoryProbeError(status: process.terminationStatus)
        }
        return bytes
    }

    /// What that process does. Never 0, however little is made: the figures are divided by each other.
    func grownBytes() throws -> Int {
        let before = try Self.peak()
        let operations = make()
        switch kind {
        case .children:
            break
        case .compound:
            let end = End()
            let compound = CompoundOperation(operations: operations)
            compound.asyncCompletionBlock = { _ in end.come() }
            compound.start()
            end.wait()
        case .timeouts, .working:
            for operation in operations { operation.start() }
        }
        let grown = max(1, try Self.peak() - before)
        for case let operation as WorkingLeaf in operations { operation.finish() }
        return grown
    }

    private func make() -> [Operation] {
        switch kind {
        case .compound, .children: Leaf.make(count)
        case .timeouts: WorkingLeaf.make(count, timeout: .seconds(600))
        case .working: WorkingLeaf.make(count, timeout: nil)
        }
    }

    /// The most memory that was resident in this process so far, in bytes.
    private static func peak() throws -> Int {
        #if canImport(Darwin)
        var usage = rusage()
        unsafe getrusage(RUSAGE_SELF, &usage)
        return usage.ru_maxrss
        #else
        // Not getrusage: it counts what the process was before it became this program, too.
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        guard let bytes = peak(inStatus: status) else { throw CocoaError(.fileReadCorruptFile) }
        return bytes
        #endif
    }

    /// The peak, in bytes, in the text of `/proc/self/status`.
    static func peak(inStatus text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(whereSeparator: \.isWhitespace).lazy.compactMap { Int($0) }.first.map { $0 * 1024 }
    }
}

/// The process that measures memory has failed.
struct MemoryProbeError: LocalizedError {
    let status: Int32

    var errorDescription: String? { "The process that measures memory ended with status \(status)." }
}
