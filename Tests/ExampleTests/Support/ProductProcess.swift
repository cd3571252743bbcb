import OperationKitProcess
import OperationKitTestSupport

/// A built executable of this package in a process of its own, without a terminal.
///
/// Started without the signals that Foundation's `Process` would have it ignore, so that Control-C reaches it.
final class ProductProcess: Sendable {
    /// What a process left behind.
    struct Result: Sendable {
        let status: Int32
        let output: String
        let errors: String

        var lines: [String] { output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }
    }

    private let operation: ProcessOperation
    private let text = Shared("")

    /// Starts the executable of a product. With a redirection, such as `>/dev/full`, a shell sends the output there
    /// instead.
    init(
        _ product: String, _ arguments: [String], environment: [String: String] = [:], redirection: String? = nil
    ) throws {
        var command = [try BuildProducts.executable(product).path] + arguments
        if let redirection { command = ["/bin/sh", "-c", #"exec "$0" "$@" "# + redirection] + command }
        operation = ProcessOperation(
            command[0], Array(command.dropFirst()),
            environment: ProcessInfo.processInfo.environment.filter { $0.key != "NO_COLOR" }
                .merging(environment) { $1 }, name: product)
        operation.acceptedStatuses = nil
        operation.standardOutput = .lines { [text] line in text.change { $0 += line + "\n" } }
        OperationQueue().addOperation(operation)
    }

    /// Runs the executable of a product to its end.
    static func run(_ product: String, _ arguments: String...) async throws -> Result {
        try await ProductProcess(product, arguments).result()
    }

    /// Suspends until the process and its output are at their end.
    func result() async throws -> Result {
        let end = try await operation.value
        let status = if case .exited(let status) = end.termination { status } else { Int32(-1) }
        return Result(status: status, output: text.value, errors: String(decoding: end.standardError, as: UTF8.self))
    }

    /// Suspends until the process has written the words, or has ended without.
    func hasWritten(_ words: String) async {
        await eventually("“\(words)” is not in “\(text.value)”") { text.value.contains(words) || operation.isFinished }
    }

    /// Sends it what Control-C does, once it handles that: another thread sees to it, soon after the example has asked for it.
    func interrupt() async {
        guard let process = operation.processIdentifier else { return }
        #if os(Linux)
        await eventually("Control-C is ignored") { handlesInterrupts(process) || operation.isFinished }
        #endif
        kill(process, SIGINT)
    }

    #if os(Linux)
    private func handlesInterrupts(_ process: pid_t) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:\t") } ?? ""
        return UInt64(line.dropFirst(8), radix: 16).map { $0 >> (SIGINT - 1) & 1 == 1 } ?? false
    }
    #endif
}
