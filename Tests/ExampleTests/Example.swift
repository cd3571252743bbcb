import OperationKitProcess
import OperationKitTestSupport

/// One of the examples, in a process of its own.
///
/// Started without the signals that Foundation's `Process` would have it ignore, so that Control-C reaches it.
struct Example {
    let operation: ProcessOperation
    private let text = Shared("")
    private let queue = OperationQueue()

    init(_ name: String, _ arguments: [String]) throws {
        operation = ProcessOperation(try BuildProducts.executable(name).path, arguments, name: name)
        operation.acceptedStatuses = nil
        operation.standardOutput = .lines { [text] line in text.change { $0 += line + "\n" } }
        queue.addOperation(operation)
    }

    static func run(_ name: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
        try await Example(name, arguments).result()
    }

    var output: String { text.value }

    func result() async throws -> (status: Int32, output: String) {
        guard case .exited(let status) = try await operation.value.termination else { return (-1, output) }
        return (status, output)
    }

    func hasWritten(_ words: String) async {
        await eventually("“\(words)” is not in “\(output)”") { output.contains(words) || operation.isFinished }
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
