#if os(macOS) || os(Linux)
public import Foundation
public import OperationKit

/// An operation that runs a program, and ends when the program has ended.
///
/// ```swift
/// let count = ProcessOperation("wc", ["-l"])
/// let output = try await OperationQueue().run(count.with(input: Data("one\ntwo\n".utf8)))
/// print(output.text)
/// ```
///
/// Its ``/OperationKit/IOOperation/input`` goes to the standard input of the program, and is empty unless it is set. Its output has
/// what the program wrote, and how long it took. Pipes never fill up, in either direction. No thread waits for the program.
///
/// | The program | The operation |
/// |---|---|
/// | exits with a status in ``acceptedStatuses`` | succeeds |
/// | exits with another status, or is ended by a signal | ends with ``ProcessError/failed(command:termination:standardError:)`` |
/// | cannot be started | ends with another ``ProcessError``, and nothing was started |
/// | gets only a part of its input, because the system refuses the rest | ends with ``ProcessError/inputFailed(command:code:)`` |
///
/// Cancelling the operation sends `SIGTERM` to the program and its process group, before `cancel()` returns, and after the
/// ``terminationGracePeriod`` `SIGKILL`. What has stopped goes on then (`SIGCONT`), so that it can clean up. Programs that it started get
/// these signals unless they have left that group, as daemons and the jobs of an interactive shell do. One that this process may not
/// signal, such as `sudo`, is not ended. A program that has not been started by then is not started any more. The operation ends
/// when the program is gone: with `CancellationError`, or with the reason of the cancellation, such as a timeout. If other programs
/// of its group still run then, the end waits for them: for the grace period and a moment at most. A program that exits with an
/// accepted status nevertheless has succeeded. A cancellation after the exit of the program ends what it has left behind, unless all
/// output has been taken, and the operation is about to end. Other code that finishes the operation ends the program in the same
/// way, and the operation does not wait for that.
///
/// A program has a process group of its own. So Control-C at the terminal does not reach it, nor does it end with this process:
/// cancel the operation. The system stops a program that asks at the terminal, as `sudo`, `ssh` and `git` may do: run these so that they don't.
///
/// Programs that it leaves behind when it exits by itself go on, and don't hold up the operation, even if they write to its pipes: these are
/// closed a tenth of a second after its exit, once everything that it has written itself was read. What such a program writes to a closed
/// pipe ends it, by the signal `SIGPIPE`: give a server that is to go on a file for its log.
///
/// A copy of this process that C code makes by `fork()`, and that does not go on by `exec()`, keeps the input of a program open: the
/// program sees the end of its input only when the copy has ended.
///
/// The default name of the operation, and its errors, have the arguments, so these get into logs. Pass secrets by the ``environment`` or
/// the input.
///
/// If the system says that the file of the program is open for writing (`ETXTBSY`), the start is tried again for half a second: a script
/// that you have just written may still be open in another program that is being started.
///
/// Set the properties before the program is started. Later changes have no effect. Closures that take lines are released when the operation has
/// finished, and the program has ended.
public final class ProcessOperation: IOOperation<Data, ProcessOutput>, @unchecked Sendable {
    /// The name of the program, which is looked up in `PATH`, or a path with a slash, relative to the current directory of this process.
    ///
    /// The `PATH` of the ``environment`` counts, if that has one, or else that of this process. An empty folder in it, as of two colons, is the
    /// current directory of this process, as everywhere.
    public let executable: String
    /// The arguments, which reach the program unchanged. They don't contain the name of the program.
    public let arguments: [String]

    private let lock = NSLock()
    private var settings = Settings()
    private var child: ChildProcess?
    /// How long the program may take to end; `nil` before it is started.
    private var gracePeriod: Duration?
    /// Held while the system starts the program, so that a cancellation either prevents that, or finds the program.
    private let launchLock = NSLock()
    private var isStopped = false

    private struct Settings {
        var environment: [String: String]?
        var directory: URL?
        var standardOutput = ProcessOutputDestination.captured
        var standardError = ProcessOutputDestination.captured
        var acceptedStatuses: Set<Int32>? = [0]
        var gracePeriod = Duration.seconds(2)
    }

    /// Creates an operation that runs a program.
    ///
    /// - Parameters:
    ///   - executable: The name of the program, which is looked up in `PATH`, or its path.
    ///   - arguments: Its arguments.
    ///   - directory: The directory in which it runs. The default is that of this process.
    ///   - environment: Its environment variables. The default is those of this process, unchanged.
    ///   - name: The name of the operation. The default is the command.
    public init(
        _ executable: String, _ arguments: [String] = [], directory: URL? = nil, environment: [String: String]? = nil,
        name: String? = nil
    ) {
        self.executable = executable
        self.arguments = arguments
        super.init()
        self.name = name ?? CommandLine.description(of: executable, arguments)
        defaultInput = Data()
        self.environment = environment
        self.directory = directory
        // Also if `main(input:)` is never called, or other code finishes the operation.
        FinishObserver(self, isHeld: false) { [weak self] in self?.hasFinished() }
    }

    // MARK: - Settings

    /// The environment variables of the program; `nil` for those of this process.
    public var environment: [String: String]? {
        get { lock.withLock { settings.environment } }
        set { lock.withLock { settings.environment = newValue } }
    }

    /// The directory in which the program runs; `nil` for that of this process.
    public var directory: URL? {
        get { lock.withLock { settings.directory } }
        set { lock.withLock { settings.directory = newValue } }
    }

    /// Where the standard output of the program goes. The default is the output of the operation.
    public var standardOutput: ProcessOutputDestination {
        get { lock.withLock { settings.standardOutput } }
        set { set(\.standardOutput, to: newValue) }
    }

    /// Where the standard error of the program goes. The default is the output of the operation.
    public var standardError: ProcessOutputDestination {
        get { lock.withLock { settings.standardError } }
        set { set(\.standardError, to: newValue) }
    }

    /// The previous destination is released after unlocking, or the new one if the operation has finished: what a closure holds may run
    /// arbitrary code when it is freed.
    private func set(
        _ property: WritableKeyPath<Settings, ProcessOutputDestination>, to destination: ProcessOutputDestination
    ) {
        let released = lock.withLock {
            isFinished ? destination : exchange(&settings[keyPath: property], with: destination)
        }
        withExtendedLifetime(released) {}
    }

    /// The statuses that count as success; `nil` for any, and for signals that don't come from a cancellation. The default is 0.
    public var acceptedStatuses: Set<Int32>? {
        get { lock.withLock { settings.acceptedStatuses } }
        set { lock.withLock { settings.acceptedStatuses = newValue } }
    }

    /// How long the program may take to end after it was asked to. The default is two seconds; zero, or less, for none. More than a century
    /// counts as a century. The clock of the system measures it, whatever the `clock` of the operation.
    public var terminationGracePeriod: Duration {
        get { lock.withLock { settings.gracePeriod } }
        set { lock.withLock { settings.gracePeriod = newValue } }
    }

    // MARK: - Life

    /// The identifier of the program's process as long as it runs; `nil` before and after that.
    public var processIdentifier: Int32? { lock.withLock { child }?.runningProcessID }

    /// Starts the program, when the library calls this method. Otherwise it does nothing.
    public override func main(input: Data) {
        guard hasReachedMain else { return }
        let settings = lock.withLock { () -> Settings? in
            // It has begun.
            if gracePeriod != nil { return nil }
            gracePeriod = min(self.settings.gracePeriod, .century)
            return self.settings
        }
        guard let settings, !isFinished else { return }
        // Called inside `cancel()`, also while this method runs, which `didCancel()` would wait for.
        addCancellationHandler { [unowned self] in stop() }
        launch(input, settings)
    }

    /// Ends a program that still runs, and releases the closures that take lines, which may hold the operation itself. They get no
    /// further line.
    private func hasFinished() {
        stop()
        lock.withLock { child }?.endLines()
        // Released after unlocking; what they hold may run arbitrary code when it is freed.
        let outputs = lock.withLock {
            [
                exchange(&settings.standardOutput, with: .discarded),
                exchange(&settings.standardError, with: .discarded),
            ]
        }
        withExtendedLifetime(outputs) {}
    }

    /// Starts the program, or tries to once more a little later.
    ///
    /// The system does not run a file that is open for writing. One that this process has just written and closed counts as open as long
    /// as another program is being started, on any thread, which has inherited the descriptor and has not come to close it.
    private func launch(_ input: Data, _ settings: Settings, after delay: Duration = .zero) {
        do {
            let launch = try PreparedLaunch(
                LaunchRequest(
                    executable: executable, arguments: arguments, environment: settings.environment,
                    directory: settings.directory, input: input,
                    outputs: [settings.standardOutput, settings.standardError]))
            if let child = try start(launch, accepts: settings.acceptedStatuses) {
                ProcessMonitor.shared.watch(child)
            } else {
                finish(withError: CancellationError())
            }
        } catch .launchFailed(_, ETXTBSY) where delay < Self.longestDelay {
            let next = max(delay * 2, .milliseconds(1))
            let pause = DelayOperation(for: next)
            pause.hideFromObservers()
            pause.asyncCompletionBlock = { [self] _ in
                if isCancelled || isFinished {
                    finish(withError: CancellationError())
                } else {
                    launch(input, settings, after: next)
                }
            }
            pause.start()
        } catch {
            finish(withError: error)
        }
    }

    /// Half a second passes in all before it counts as an error that the file is open for writing.
    private static var longestDelay: Duration { .milliseconds(256) }

    /// Starts the program, unless a cancellation came first.
    private func start(_ launch: PreparedLaunch, accepts statuses: Set<Int32>?) throws(ProcessError) -> ChildProcess? {
        launchLock.lock()
        defer { launchLock.unlock() }
        if isStopped { return nil }
        let child = try launch.start { self.ended($0, accepts: statuses) }
        lock.withLock { self.child = child }
        return child
    }

    /// Asks the program to end, or prevents its start. Called on the thread that cancels the operation, which waits for a call of the
    /// system that is just starting the program.
    private func stop() {
        launchLock.withLock { isStopped = true }
        let (child, gracePeriod) = lock.withLock { (self.child, self.gracePeriod) }
        if let child, let gracePeriod { ProcessMonitor.shared.terminate(child, gracePeriod: gracePeriod) }
    }

    private func ended(_ end: ProcessEnd, accepts statuses: Set<Int32>?) {
        lock.withLock { child = nil }
        let command = CommandLine.description(of: executable, arguments)
        if let stream = end.exceededLimit {
            let error = ProcessError.outputTooLarge(command: command, maximumByteCount: stream)
            finish(withError: isCancelled ? CancellationError() : error)
        } else if end.output.termination.isAccepted(by: statuses), !(isCancelled && end.output.termination.isSignal) {
            if let code = end.inputError {
                finish(withError: ProcessError.inputFailed(command: command, code: code))
            } else {
                finish(with: end.output)
            }
        } else if isCancelled {
            finish(withError: CancellationError())
        } else {
            finish(
                withError: ProcessError.failed(
                    command: command, termination: end.output.termination, standardError: end.standardErrorTail))
        }
    }
}

/// How commands are written in names and messages.
enum CommandLine {
    private static let longest = 200

    static func description(of executable: String, _ arguments: [String]) -> String {
        var text = quoted(executable)
        for argument in arguments {
            if text.utf8.count > longest { return text + " …" }
            text += " " + quoted(argument)
        }
        return text
    }

    private static func quoted(_ argument: String) -> String {
        let start = Substring(argument.unicodeScalars.prefix(longest))
        let text = start.endIndex < argument.endIndex ? start + "…" : start
        let isPlain =
            !argument.isEmpty && text.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || plain.contains($0) }
        if isPlain { return String(text) }
        guard text.unicodeScalars.contains(where: isHidden) else {
            return "'" + text.unicodeScalars.map { $0 == "'" ? #"'\''"# : String($0) }.joined() + "'"
        }
        return "$'" + text.unicodeScalars.map { "\\'".unicodeScalars.contains($0) ? "\\\($0)" : escaped($0) }.joined()
            + "'"
    }

    /// What a program wrote, without what may do something to a terminal. It keeps its lines.
    static func printable(_ output: String) -> String {
        output.replacing("\r\n", with: "\n").unicodeScalars.lazy.map {
            "\n\t".unicodeScalars.contains($0) ? String($0) : escaped($0)
        }
        .joined()
    }

    /// How a shell writes a text of several lines in one: logs and messages have a line for each operation.
    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": #"\n"#
        case "\r": #"\r"#
        case _ where isHidden(scalar):
            String(
                format: scalar.value < 0x80 ? #"\x%02x"# : scalar.value < 0x10000 ? #"\u%04x"# : #"\U%08x"#,
                scalar.value)
        default: String(scalar)
        }
    }

    /// Whether it breaks a line, does something to a terminal, or turns a text around. Joiners are part of characters.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isControl || scalar.properties.generalCategory == .format && !scalar.properties.isJoinControl
    }

    private static let plain = Set("0123456789-_=+./,:@%…".unicodeScalars)
}
#endif
