import Foundation
import Testing

/// A built executable of this package in a process of its own, without a terminal: its output goes into pipes.
package final class ProductProcess: @unchecked Sendable {
    private let process = Process()
    private let lock = NSLock()
    private var output = Data()
    private var errors = Data()
    private var isAtEnd = false
    private var waiters: [(text: Data, action: @Sendable (_ isWritten: Bool) -> Void)] = []
    private let ended = DispatchGroup()

    /// What a process left behind.
    package struct Result: Sendable {
        package let status: Int32
        package let output: String
        package let errors: String

        package var lines: [String] {
            output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Starts the executable of a product. With a redirection, such as `>/dev/full`, a shell sends the output there
    /// instead.
    package init(
        _ product: String, _ arguments: [String], environment: [String: String] = [:], redirection: String? = nil
    ) throws {
        let executable = try BuildProducts.executable(product)
        process.executableURL = executable
        process.arguments = arguments
        if let redirection {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", #"exec "$0" "$@" "# + redirection, executable.path] + arguments
        }
        process.environment = ProcessInfo.processInfo.environment
            .filter { $0.key != "NO_COLOR" }
            .merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let outputPipe = Pipe()
        let errorPipe = Pipe()
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        ended.enter()
        process.terminationHandler = { [ended] _ in ended.leave() }
        try process.run()
        collect(outputPipe.fileHandleForReading) { self.outputCame($0) }
        collect(errorPipe.fileHandleForReading) { data in self.lock.withLock { self.errors += data } }
    }

    package func interrupt() {
        process.interrupt()
    }

    /// Suspends until the process has written the text. Returns false if it ended without.
    package func hasWritten(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            when(text) { continuation.resume(returning: $0) }
        }
    }

    /// Calls the action when the process has written the text, on the thread that reads it, or with false when the process
    /// has ended without. Unlike what follows a suspension this waits for no thread while the process goes on.
    package func when(_ text: String, _ action: @escaping @Sendable (_ isWritten: Bool) -> Void) {
        let answer: Bool? = lock.withLock {
            if output.range(of: Data(text.utf8)) != nil { return true }
            if isAtEnd { return false }
            waiters.append((Data(text.utf8), action))
            return nil
        }
        if let answer { action(answer) }
    }

    /// Suspends until the process and its output are at their end.
    package func result() async -> Result {
        await withCheckedContinuation { continuation in
            ended.notify(queue: .global()) { continuation.resume() }
        }
        return lock.withLock {
            Result(
                status: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
                errors: String(decoding: errors, as: UTF8.self))
        }
    }

    private func outputCame(_ data: Data) {
        let woken = lock.withLock {
            output += data
            isAtEnd = data.isEmpty
            let woken = waiters.filter { isAtEnd || output.range(of: $0.text) != nil }
            waiters.removeAll { isAtEnd || output.range(of: $0.text) != nil }
            return woken.map { ($0.action, output.range(of: $0.text) != nil) }
        }
        for (action, isWritten) in woken { action(isWritten) }
    }

    /// Reads to the end on a thread of its own. The last call is with empty data.
    private func collect(_ handle: FileHandle, _ handler: @escaping @Sendable (Data) -> Void) {
        ended.enter()
        let thread = Thread { [ended] in
            while true {
                let data = handle.availableData
                handler(data)
                if data.isEmpty { break }
            }
            ended.leave()
        }
        thread.start()
    }
}
