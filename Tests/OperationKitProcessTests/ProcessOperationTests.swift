import OperationKitTestSupport

@testable import OperationKitProcess

@Suite("Processes", .hangGuard)
struct ProcessOperationTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    // MARK: - What goes in and comes out

    @Test("The input goes to the program, and what it writes is the output")
    func inputAndOutput() async throws {
        let output = try await queue.run(ProcessOperation("cat").with(input: Data("one\ntwo\n".utf8)))
        #expect(output.text == "one\ntwo")
        #expect(output.termination == .exited(0))
        #expect(output.standardError.isEmpty)
        #expect(output.duration > .zero)
    }

    @Test("An operation that runs a program keeps the contract of operations")
    func contract() async {
        let report = await OperationContract.report(rounds: 32) { ProcessOperation("sleep", ["0.01"]) }
        #expect(report.violations.isEmpty, "\(report)")
    }

    @Test("Standard output and standard error are kept apart")
    func streams() async throws {
        let output = try await queue.run(shell("echo out; echo err >&2"))
        #expect(output.text == "out")
        #expect(String(decoding: output.standardError, as: UTF8.self) == "err\n")
    }

    @Test(
        "An argument reaches the program unchanged",
        arguments: ["", "a b", "it's", "\"quoted\"", "line\nbreak", "$HOME `x` \\", "ünïcödé", "*", "-n"])
    func arguments(_ argument: String) async throws {
        let output = try await queue.run(ProcessOperation("sh", ["-c", "printf %s \"$1\"", "sh", argument]))
        #expect(String(decoding: output.standardOutput, as: UTF8.self) == argument)
    }

    @Test("A program runs in its directory, with its environment")
    func directoryAndEnvironment() async throws {
        let root = URL(fileURLWithPath: "/")
        let output = try await queue.run(
            ProcessOperation(
                "/bin/sh", ["-c", "pwd; echo $WORD$HOME"], directory: root, environment: ["WORD": "a word"]))
        #expect(output.text == "/\na word")
    }

    @Test("Megabytes go in and come out at the same time")
    func bothDirections() async throws {
        let data = Data(repeating: 7, count: TestExtent.choose(8, long: 100) << 20)
        let cat = ProcessOperation("cat")
        cat.standardOutput = .captured(maximumByteCount: .max)
        #expect(try await queue.run(cat.with(input: data)).standardOutput == data)
    }

    @Test("A program that ends before its input is read succeeds")
    func unreadInput() async throws {
        let operation = ProcessOperation("true").with(input: Data(count: 1 << 20))
        #expect(try await queue.run(operation).termination == .exited(0))
    }

    @Test("Lines come in order, and before the end")
    func lines() async throws {
        let count = TestExtent.choose(20_000, long: 2_000_000)
        let (last, rest) = (Shared(0), Shared<[String]>([]))
        let operation = shell("i=0; seq 1 \(count); printf end")
        operation.standardOutput = .lines { line in
            if let number = Int(line) {
                last.change {
                    #expect(number == $0 + 1); $0 = number
                }
            } else {
                rest.change { $0.append(line) }
            }
        }
        let output = try await queue.run(operation)
        #expect(last.value == count)
        #expect(rest.value == ["end"])
        #expect(output.standardOutput.isEmpty)
    }

    @Test(
        "A closure that takes lines is released after the end, also if it holds the operation",
        arguments: ["true", "no such program"], [false, true])
    func releasedClosures(_ program: String, isCancelled: Bool) async throws {
        let tracker = LeakTracker()
        await { [queue] in
            let operation = tracker.track(ProcessOperation(program))
            if isCancelled { operation.cancel() }
            operation.standardOutput = .lines { _ in withExtendedLifetime(operation) {} }
            operation.standardError = operation.standardOutput
            _ = try? await queue.run(operation)
        }()
        await tracker.expectAllReleased()
    }

    @Test("An operation that is never started is released")
    func neverStarted() async {
        let tracker = LeakTracker()
        do { _ = tracker.track(ProcessOperation("true")) }
        await tracker.expectAllReleased()
    }

    @Test(
        "Of the text only the last line break is left out",
        arguments: [("a\\n", "a"), ("a\\r\\n", "a"), ("a\\f", "a\u{C}")])
    func lastLineBreak(_ printed: String, _ text: String) async throws {
        #expect(try await queue.run(ProcessOperation("printf", [printed])).text == text)
    }

    @Test("Output goes to a file")
    func file() async throws {
        let url = folder.url.appendingPathComponent("log")
        let operation = shell("echo written; echo lost >&2")
        operation.standardOutput = .file(url)
        operation.standardError = .discarded
        let output = try await queue.run(operation)
        #expect(try String(contentsOf: url, encoding: .utf8) == "written\n")
        #expect(output.standardOutput.isEmpty && output.standardError.isEmpty)
        let (errors, both) = (folder.url.appendingPathComponent("errors"), shell("echo again; echo lost >&2"))
        both.standardOutput = .file(url)
        both.standardError = .file(errors)
        _ = try await queue.run(both)
        #expect(try [url, errors].map { try String(contentsOf: $0, encoding: .utf8) } == ["again\n", "lost\n"])
    }

    @Test("A file is left as it was if another one can't be opened")
    func keptFile() async throws {
        let url = folder.url.appendingPathComponent("log")
        try Data("kept".utf8).write(to: url)
        let operation = shell("echo written")
        operation.standardOutput = .file(url)
        operation.standardError = .file(folder.url)
        _ = try await failure(of: operation)
        #expect(try String(contentsOf: url, encoding: .utf8) == "kept")
    }

    @Test("Both outputs go to the same file in order, by whatever path")
    func sameFile() async throws {
        let (file, link) = (folder.url.appendingPathComponent("log"), folder.url.appendingPathComponent("link"))
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let operation = shell("echo out; echo err >&2; echo more; echo end >&2")
        operation.standardOutput = .file(file)
        operation.standardError = .file(link)
        _ = try await queue.run(operation)
        #expect(try String(contentsOf: file, encoding: .utf8) == "out\nerr\nmore\nend\n")
    }

    @Test("A program that writes more than may be captured is ended")
    func captureLimit() async throws {
        let operation = shell("yes")
        operation.standardOutput = .captured(maximumByteCount: 1_000)
        let error = try await failure(of: operation)
        #expect(error == .outputTooLarge(command: "sh -c yes", maximumByteCount: 1_000))
    }

    // MARK: - Ends

    @Test("A status other than zero is an error with the command, the status and the end of standard error")
    func failingStatus() async throws {
        let error = try await failure(of: shell("echo 'no such thing' >&2; exit 3"))
        let command = #"sh -c 'echo '\''no such thing'\'' >&2; exit 3'"#
        #expect(error == .failed(command: command, termination: .exited(3), standardError: "no such thing"))
        #expect(ProcessOperation("sh", ["-c", "a\\b\r\n'c'"]).name == #"sh -c $'a\\b\r\n\'c\''"#)
        #expect(error.localizedDescription.hasSuffix("exited with status 3: no such thing"))
        let colors = try await failure(of: shell(#"printf 'a\r\nb\033[2J\tc' >&2; exit 3"#))
        #expect(colors.localizedDescription.hasSuffix("exited with status 3: a\nb\\x1b[2J\tc"))
    }

    @Test("Accepted statuses are a success", arguments: [Set<Int32>?.some([0, 1]), nil])
    func acceptedStatuses(_ statuses: Set<Int32>?) async throws {
        let operation = shell("exit 1")
        operation.acceptedStatuses = statuses
        #expect(try await queue.run(operation).termination == .exited(1))
    }

    @Test("A signal is an error, unless any end is accepted")
    func signal() async throws {
        let error = try await failure(of: shell("kill -KILL $$"))
        #expect(error.localizedDescription == "The command “sh -c 'kill -KILL $$'” was ended by signal 9.")
        let accepted = shell("kill -KILL $$")
        accepted.acceptedStatuses = nil
        #expect(try await queue.run(accepted).termination == .signaled(9))
    }

    @Test("A program that closes its output and goes on is waited for")
    func closedOutput() async throws {
        let output = try await queue.run(shell("exec >&- 2>&-; sleep 0.2; exit 0"))
        #expect(output.duration >= .milliseconds(200))
    }

    @Test("What a program leaves behind does not hold up the operation, and its output counts")
    func leftBehind() async throws {
        let output = try await queue.run(shell("echo first; sleep 30 & echo $!"))
        let lines = output.text.split(separator: "\n")
        #expect(lines.first == "first")
        #expect(output.duration < .seconds(20))
        if let process = lines.last.flatMap({ pid_t($0) }) { kill(process, SIGKILL) }
    }

    // MARK: - What is known beforehand

    @Test("What cannot be started is an error that says why, and nothing is started")
    func launchErrors() async throws {
        let file = try folder.file("file", "text")
        let missing = URL(fileURLWithPath: "/missing directory")
        let cases: [(ProcessOperation, ProcessError)] = [
            (ProcessOperation("no-such-program"), .notFound(command: "no-such-program")),
            (ProcessOperation(""), .notFound(command: "''")),
            (ProcessOperation("/no/such/program"), .notFound(command: "/no/such/program")),
            (ProcessOperation(file), .notExecutable(command: file, path: file)),
            (
                ProcessOperation("file", environment: ["PATH": "/missing:\(folder.path)"]),
                .notExecutable(command: "file", path: file)
            ),
            (ProcessOperation("/usr/"), .notExecutable(command: "/usr/", path: "/usr/")),
            (
                ProcessOperation("true", directory: missing),
                .invalidDirectory(command: "true", directory: missing.path)
            ),
            (
                ProcessOperation("echo", ["a\0b"]),
                .invalidArgument(command: #"echo $'a\x00b'"#, argument: #"$'a\x00b'"#)
            ),
        ]
        for (operation, expected) in cases {
            let error = try await failure(of: operation)
            #expect(error == expected)
            #expect(error.localizedDescription.contains(error.command))
        }
    }

    @Test("Arguments that are too long are an error of the system")
    func tooLong() async throws {
        let error = try await failure(of: ProcessOperation("true", [String(repeating: "\u{301}", count: 2 << 20)]))
        guard case .launchFailed(_, E2BIG) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(error.localizedDescription.utf8.count < 1_000)
    }

    // MARK: - Cancelling

    @Test(
        "A program that is deaf to the request is ended after the grace period",
        arguments: [Duration.zero, .milliseconds(200)])
    func deaf(_ gracePeriod: Duration) async throws {
        let operation = shell("trap '' TERM; echo started; while true; do sleep 0.05; done")
        operation.terminationGracePeriod = gracePeriod
        await begin(operation)
        let time = ContinuousClock.now
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(time.duration(to: .now) >= gracePeriod)
    }

    @Test("An operation that is cancelled before its start starts nothing")
    func cancelledBefore() async throws {
        let operation = ProcessOperation("touch", [folder.url.appendingPathComponent("file").path])
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await queue.run(operation) }
        #expect(folder.names.isEmpty)
    }

    // MARK: - Together with others

    @Test("Many programs at the same time end with their own output")
    func many() async throws {
        queue.maxConcurrentOperationCount = 64
        let numbers = try await queue.map(1...TestExtent.choose(128, long: 10_000), limit: 64) { number in
            try await OperationQueue().run(ProcessOperation("echo", ["\(number)"])).text
        }
        #expect(numbers == (1...numbers.count).map(String.init))
    }

    @Test("Programs are steps of a macro, attempts that get an input, and children of a compound")
    func composites() async throws {
        let sort = MacroOperation(IOBlockOperation<String, Data>(name: "text") { Data($0.utf8) })
            .then(ProcessOperation("sort"))
            .then(IOBlockOperation<ProcessOutput, String>(name: "result") { $0.text })
        #expect(try await queue.run(sort.with(input: "b\na\n")) == "a\nb")

        let policy = RetryPolicy(maximumAttempts: 2, backoff: .none)
        let retry = RetryOperation(policy, name: "retry") { attempt in
            ProcessOperation("sh", ["-c", "cat; exit \(2 - attempt)"])
        }
        #expect(try await queue.run(retry.with(input: Data("in".utf8))).text == "in")
        let hedged = HedgedOperation(after: .seconds(60), name: "hedged") { _ in ProcessOperation("cat") }
        #expect(try await queue.run(hedged.with(input: Data("in".utf8))).text == "in")

        let build = CompoundOperation(name: "build") {
            ProcessOperation("true")
            ProcessOperation("false")
        }
        let error = await #expect(throws: CompoundOperationError.self) { try await queue.run(build) }
        #expect(
            error?.localizedDescription
                == "“build”: 1 of 2 operations failed: “false”: The command “false” exited with status 1.")
    }
}

/// An operation that runs a script.
func shell(_ script: String) -> ProcessOperation { ProcessOperation("sh", ["-c", script]) }

/// Begins an operation, and returns the lines that its program writes when there is one.
@discardableResult
func begin(_ operation: ProcessOperation) async -> EventLog {
    let (begun, lines) = (Gate(), EventLog())
    operation.standardOutput = .lines { line in
        lines.add(line)
        begun.open()
    }
    OperationQueue().addOperation(operation)
    await begun.opened()
    return lines
}

/// Runs an operation, and expects it to fail.
func failure(of operation: ProcessOperation) async throws -> ProcessError {
    let error = await #expect(throws: ProcessError.self) { try await OperationQueue().run(operation) }
    return try #require(error)
}
