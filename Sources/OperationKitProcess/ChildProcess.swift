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
    /// Why the system did not take the rest of the input, if it refused that.
    let inputError: Int32?
    /// The limit that the output has exceeded.
    let exceededLimit: Int?
}

/// All that a program needs for its start, which is one call of the system then.
///
/// The descriptors are closed when this goes, whether or not the program was started.
struct PreparedLaunch {
    private let command: String
    /// These end with a NUL character. The first one is the path of the program.
    private let arguments: [[CChar]]
    /// `nil` for those of this process, whose values may be no text.
    private let variables: [[CChar]]?
    private let directory: String?
    private var streams: [Descriptor] = []
    private var files: [(file: Descriptor, path: String)] = []
    private var input: InputPipe?
    private var outputs: [OutputPipe] = []
    private let queue = DispatchQueue(label: "OperationKit.process")
    private let delivery = LineDelivery()

    /// Finds the program, and opens what it reads and writes.
    ///
    /// - Parameter request: What the program is started with.
    /// - Throws: A ``ProcessError``. Nothing is left open then.
    init(_ request: LaunchRequest) throws(ProcessError) {
        command = CommandLine.description(of: request.executable, request.arguments)
        variables = request.environment?.map { Array("\($0.key)=\($0.value)".utf8CString) }
        try ExecutableSearch.check([request.executable] + request.arguments, command: command)
        try ExecutableSearch.check(environment: request.environment ?? [:], command: command)
        let path = try ExecutableSearch.path(
            of: request.executable, environment: request.environment, command: command)
        arguments = [path] + request.arguments.map { Array($0.utf8CString) }
        if let directory = request.directory {
            try ExecutableSearch.check(directory: directory, command: command)
        }
        directory = request.directory?.path
        if request.input.isEmpty {
            streams.append(try Descriptor(opening: "/dev/null", O_RDONLY, command: command))
        } else {
            let pipe = try Pipe(ourEnd: 1, command: command)
            streams.append(pipe.reading)
            input = InputPipe(descriptor: pipe.writing, data: request.input)
        }
        for (index, destination) in request.outputs.enumerated() {
            let number = Int32(index + 1)
            switch destination.kind {
            // Where this process has no such stream, an unrelated descriptor may have the number. It closes on exec.
            case .inherited where fcntl(number, F_GETFD) == 0: streams.append(Descriptor(borrowing: number))
            case .inherited, .discarded:
                streams.append(try Descriptor(opening: "/dev/null", O_WRONLY, command: command))
            case .file(let url):
                guard url.isLocal else { throw .invalidOutput(command: command, path: "\(url)", code: EINVAL) }
                let file = try Descriptor(opening: url.path, O_WRONLY | O_CREAT, command: command)
                // Both streams have one place in a file, or they would overwrite what the other one has written.
                streams.append(files.first { $0.file.isSameFile(as: file) }?.file ?? file)
                files.append((file, url.path))
            case .captured, .lines:
                let pipe = try Pipe(ourEnd: 0, command: command)
                streams.append(pipe.writing)
                outputs.append(OutputPipe(descriptor: pipe.reading, stream: index, destination, queue, delivery))
            }
        }
    }

    /// Starts the program. Calls nothing but the system, which returns when it has loaded the program.
    ///
    /// - Parameter ended: Called once, on a queue of the program, when it has ended and all handlers have returned.
    /// - Returns: The program, which is to be given to the ``ProcessMonitor``.
    /// - Throws: A ``ProcessError``. Nothing was started then.
    func start(ended: @escaping @Sendable (ProcessEnd) -> Void) throws(ProcessError) -> ChildProcess {
        // Not before everything else has succeeded. It fails with `EINVAL` for anything but a regular file.
        for (file, path) in files where ftruncate(file.number, 0) != 0 && errno != EINVAL {
            throw .invalidOutput(command: command, path: path, code: errno)
        }
        var processID: pid_t = 0
        let started = ContinuousClock.now
        let code = unsafe withCStrings(arguments) { arguments in
            unsafe withCStrings(variables) { variables in
                unsafe streams.map(\.number).withUnsafeBufferPointer { streams in
                    unsafe ok_spawn(&processID, arguments, variables, directory, streams.baseAddress)
                }
            }
        }
        guard code == 0 else { throw .launchFailed(command: command, code: code) }
        return ChildProcess(
            processID, started: started, input: input, outputs: outputs, queue: queue, delivery: delivery, ended: ended)
    }
}

/// A program that was started.
///
/// What changes belongs to the thread of the ``ProcessMonitor``. Handlers of users and the end are called on a queue of the
/// program. A cancellation calls ``terminate(gracePeriod:)`` on any thread.
final class ChildProcess: @unchecked Sendable {
    let processID: pid_t
    /// Becomes readable when the program exits; `nil` where the system has no such descriptor.
    private(set) var exitDescriptor: Descriptor?
    var state: ChildProcessState
    private(set) var input: InputPipe?
    private var inputError: Int32?
    let outputs: [OutputPipe]
    private let started: ContinuousClock.Instant
    private let lock = NSLock()
    private var hasExited = false
    private var termination = Termination.possible
    private let queue: DispatchQueue
    private let delivery: LineDelivery
    private var ended: (@Sendable (ProcessEnd) -> Void)?
    private var exitTime: ContinuousClock.Instant?

    fileprivate init(
        _ processID: pid_t, started: ContinuousClock.Instant, input: InputPipe?, outputs: [OutputPipe],
        queue: DispatchQueue, delivery: LineDelivery, ended: @escaping @Sendable (ProcessEnd) -> Void
    ) {
        self.processID = processID
        self.input = input
        self.outputs = outputs
        self.queue = queue
        self.delivery = delivery
        self.ended = ended
        self.started = started
        state = ChildProcessState(openPipes: outputs.count)
        let descriptor = ok_exit_descriptor(processID)
        exitDescriptor = descriptor < 0 ? nil : Descriptor(descriptor)
    }

    /// Whether the end was reported.
    private(set) var isOver = false

    /// Whether something that the program has written was not read, or not taken by its handler.
    var isBusy: Bool { outputs.contains(where: \.isBusy) }

    /// The identifier of the process until its exit was seen. Can be read on any thread.
    var runningProcessID: pid_t? { lock.withLock { hasExited ? nil : processID } }

    private enum Termination {
        case possible
        case requested(gracePeriod: Duration)
        /// The program was waited for, or is about to be.
        case tooLate
    }

    /// Asks the program and its group to end, once, and unless it was waited for. After the grace period no further line goes to a
    /// closure. Can be called on any thread.
    ///
    /// The lock is held while the signal is sent. So the program can't be waited for meanwhile, and its number is no other's.
    func terminate(gracePeriod: Duration) {
        delivery.end(after: gracePeriod)
        lock.withLock {
            guard case .possible = termination else { return }
            termination = .requested(gracePeriod: gracePeriod)
            if gracePeriod <= .zero { return signal(SIGKILL) }
            signal(SIGTERM)
            // What has stopped could not do what it does when it is asked to end.
            signal(SIGCONT)
        }
    }

    /// Gives the closures no further line.
    func endLines() { delivery.end(after: .zero) }

    /// Writes a part of the input, and closes its pipe after the last one.
    func writeInput() {
        guard input?.write() == false else { return }
        inputError = input?.error
        input = nil
    }

    /// Closes what tells of the exit, which was seen.
    func exitWasSeen() {
        lock.withLock { hasExited = true }
        exitTime = .now
        exitDescriptor = nil
        input = nil
        for pipe in outputs { pipe.programExited() }
        state.exited()
    }

    /// Does what is to be done after some time, or after an event.
    func advance(to now: Duration) {
        if outputs.contains(where: { $0.exceededLimit != nil }) {
            perform(state.terminationRequested(gracePeriod: .zero, at: now))
        }
        let isBusy = isBusy
        // A request comes before this, and holds up the end, or after it, and is too late.
        let actions = lock.withLock {
            let actions = requested(at: now) + state.advance(to: now, isBusy: isBusy)
            if actions.contains(.end) { termination = .tooLate }
            return actions
        }
        perform(actions)
    }

    /// Called with the lock held.
    private func requested(at now: Duration) -> [ChildProcessState.Action] {
        guard case .requested(let gracePeriod) = termination else { return [] }
        return state.terminationRequested(gracePeriod: gracePeriod, at: now)
    }

    private func perform(_ actions: [ChildProcessState.Action]) {
        for action in actions {
            switch action {
            case .kill: signal(SIGKILL)
            case .closePipes: for pipe in outputs { pipe.giveUp() }
            case .end: end()
            }
        }
    }

    /// Sends a signal to the group of the program, and to the program if it has left that.
    private func signal(_ number: Int32) {
        // If other code has waited for the program, its number may be that of another process.
        guard ok_has_exited(processID) >= 0 else { return }
        kill(-processID, number)
        if getpgid(processID) != processID { kill(processID, number) }
    }

    private func reap() -> ProcessTermination {
        var status: Int32 = 0
        // Where the program ignores SIGCHLD, the status is lost.
        let isKnown = unsafe waitpid(processID, &status, WNOHANG) == processID
        // Process 1 of a container becomes the parent of what was left behind, and has ended with the program.
        while isKnown, waitpid(-processID, nil, WNOHANG) > 0 {}
        let signal = status & 0x7f
        return isKnown ? (signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal)) : .exited(-1)
    }

    private func end() {
        guard let exitTime, !isOver else { return }
        let output = ProcessOutput(
            termination: reap(), standardOutput: captured(0), standardError: captured(1),
            duration: started.duration(to: exitTime))
        let end = ProcessEnd(
            output: output, standardErrorTail: outputs.first { $0.stream == 1 }?.tail ?? "",
            inputError: inputError,
            exceededLimit: outputs.lazy.compactMap(\.exceededLimit).first)
        isOver = true
        // What users have is released there, and not on the thread of the monitor, which still refers to this object.
        queue.async { [self] in
            for pipe in outputs { pipe.releaseClosure() }
            ended.take()?(end)
        }
    }

    private func captured(_ stream: Int) -> Data { outputs.first { $0.stream == stream }?.captured ?? Data() }
}

/// Calls a closure with the strings as a list that ends with a null pointer, or with `nil` if there is no list.
private func withCStrings<Result>(
    _ strings: [[CChar]]?, _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Result
) -> Result {
    guard let strings else { return body(nil) }
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
