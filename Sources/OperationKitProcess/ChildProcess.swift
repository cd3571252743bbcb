#if os(macOS) || os(Linux)
import CProcessSupport
import Foundation

/// What a program is started with.
struct LaunchRequest {
    let executable: String
    let arguments: [String]
    let environment: [String: String]?
    let directory: URL?
    let input: Data
    /// For standard output and standard error.
    let outputs: [ProcessOutputDestination]
}

/// How a program has ended, and what came through its pipes.
struct ProcessEnd: Sendable {
    let output: ProcessOutput
    /// The end of standard error.
    let standardErrorTail: String
    /// The limit that the output has exceeded.
    let exceededLimit: Int?
}

/// A program that was started.
///
/// What changes belongs to the thread of the ``ProcessMonitor``. Handlers of users and the end are called on a queue of the
/// program.
final class ChildProcess: @unchecked Sendable {
    let processID: pid_t
    /// Becomes readable when the program exits; `nil` where the system has no such descriptor.
    private(set) var exitDescriptor: Descriptor?
    var state: ChildProcessState
    var input: InputPipe?
    var outputs: [OutputPipe]
    private let started: ContinuousClock.Instant
    private let lock = NSLock()
    private var isReaped = false
    private let queue: DispatchQueue
    private var ended: (@Sendable (ProcessEnd) -> Void)?
    private var exit: (termination: ProcessTermination, time: ContinuousClock.Instant)?

    private init(
        _ processID: pid_t, started: ContinuousClock.Instant, input: InputPipe?, outputs: [OutputPipe],
        queue: DispatchQueue, ended: @escaping @Sendable (ProcessEnd) -> Void
    ) {
        self.processID = processID
        self.input = input
        self.outputs = outputs
        self.queue = queue
        self.ended = ended
        self.started = started
        state = ChildProcessState(openPipes: outputs.count)
        let descriptor = ok_exit_descriptor(processID)
        exitDescriptor = descriptor < 0 ? nil : Descriptor(descriptor)
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - request: What it is started with.
    ///   - ended: Called once, on a queue of the program, when it has ended and all handlers have returned.
    /// - Returns: The program, which is to be given to the ``ProcessMonitor``.
    /// - Throws: A ``ProcessError``. Nothing was started then, and nothing is left open.
    static func launch(
        _ request: LaunchRequest, ended: @escaping @Sendable (ProcessEnd) -> Void
    ) throws(ProcessError) -> ChildProcess {
        let command = CommandLine.description(of: request.executable, request.arguments)
        let environment = request.environment ?? ProcessInfo.processInfo.environment
        let variables = environment.map { "\($0.key)=\($0.value)" }
        try ExecutableSearch.check([request.executable] + request.arguments + variables, command: command)
        let path = try ExecutableSearch.path(of: request.executable, environment: environment, command: command)
        if let directory = request.directory {
            try ExecutableSearch.check(directory: directory, command: command)
        }

        let queue = DispatchQueue(label: "OperationKit.process")
        // Closed when this returns, whether or not the program was started.
        var streams: [Descriptor] = []
        var input: InputPipe?
        if request.input.isEmpty {
            streams.append(try Descriptor(opening: "/dev/null", O_RDONLY, command: command))
        } else {
            let pipe = try Pipe(ourEnd: 1, command: command)
            streams.append(pipe.reading)
            input = InputPipe(descriptor: pipe.writing, data: request.input)
        }
        var outputs: [OutputPipe] = []
        var files: [Descriptor] = []
        for (index, destination) in request.outputs.enumerated() {
            switch destination.kind {
            case .inherited: streams.append(Descriptor(borrowing: Int32(index + 1)))
            case .discarded: streams.append(try Descriptor(opening: "/dev/null", O_WRONLY, command: command))
            case .file(let url):
                guard url.isLocal else { throw .invalidOutput(command: command, path: "\(url)", code: EINVAL) }
                let file = try Descriptor(opening: url.path, O_WRONLY | O_CREAT | O_TRUNC, command: command)
                // Both streams have one place in a file, or they would overwrite what the other one has written.
                streams.append(files.first { $0.isSameFile(as: file) } ?? file)
                files.append(file)
            case .captured, .lines:
                let pipe = try Pipe(ourEnd: 0, command: command)
                streams.append(pipe.writing)
                outputs.append(OutputPipe(descriptor: pipe.reading, stream: index, destination, queue))
            }
        }
        var processID: pid_t = 0
        let started = ContinuousClock.now
        let code = unsafe withCStrings([path] + request.arguments) { arguments in
            unsafe withCStrings(variables) { variables in
                unsafe streams.map(\.number).withUnsafeBufferPointer { streams in
                    unsafe ok_spawn(
                        &processID, path, arguments, variables, request.directory?.path, streams.baseAddress)
                }
            }
        }
        guard code == 0 else { throw .launchFailed(command: command, code: code) }
        return ChildProcess(
            processID, started: started, input: input, outputs: outputs, queue: queue, ended: ended)
    }

    /// Whether the end was reported.
    var isOver: Bool { ended == nil }

    /// Whether something that the program has written was not read, or not taken by its handler.
    var isBusy: Bool { outputs.contains(where: \.isBusy) }

    /// The identifier of the process until it was waited for. Can be read on any thread.
    var runningProcessID: pid_t? { lock.withLock { isReaped ? nil : processID } }

    /// Closes what tells of the exit, which was seen.
    func exitWasSeen() {
        exitDescriptor = nil
        input = nil
        for pipe in outputs { pipe.programExited() }
        state.exited()
    }

    func perform(_ actions: [ChildProcessState.Action]) {
        for action in actions {
            switch action {
            case .terminate: kill(-processID, SIGTERM)
            case .kill: kill(-processID, SIGKILL)
            case .reap: reap()
            case .closePipes: for pipe in outputs { pipe.giveUp() }
            case .end: reportEnd()
            }
        }
    }

    private func reap() {
        lock.withLock { isReaped = true }
        var status: Int32 = 0
        // Where the program ignores SIGCHLD, the status is lost.
        let isKnown = unsafe waitpid(processID, &status, WNOHANG) == processID
        let signal = status & 0x7f
        let termination: ProcessTermination =
            isKnown ? (signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal)) : .exited(-1)
        exit = (termination, .now)
    }

    private func reportEnd() {
        guard let exit, let ended = ended.take() else { return }
        let output = ProcessOutput(
            termination: exit.termination, standardOutput: captured(0), standardError: captured(1),
            duration: started.duration(to: exit.time))
        let end = ProcessEnd(
            output: output, standardErrorTail: outputs.first { $0.stream == 1 }?.tail ?? "",
            exceededLimit: outputs.lazy.compactMap(\.exceededLimit).first)
        outputs = []
        queue.async { ended(end) }
    }

    private func captured(_ stream: Int) -> Data { outputs.first { $0.stream == stream }?.captured ?? Data() }
}

/// Calls a closure with the strings as a list that ends with a null pointer.
private func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: strings.count + 1)
    for (index, string) in strings.enumerated() { unsafe pointers[index] = unsafe strdup(string) }
    unsafe pointers[strings.count] = nil
    defer {
        for index in strings.indices { unsafe free(pointers[index]) }
        unsafe pointers.deallocate()
    }
    return unsafe body(pointers)
}
#endif
