#if os(Linux)
import OperationKitTestSupport

@testable import OperationKitProcess

/// What is true of programs when `cancel()` has returned. Whatever comes later may never come: this process may exit.
@Suite("Cancellations of processes", .hangGuard)
struct ProcessCancellationTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    @Test("The signal has come when cancel() returns")
    func signalOnReturn() async throws {
        let operations = (0..<8).map { _ in shell("exec sleep 100") }
        operations[0].acceptedStatuses = nil
        for operation in operations { queue.addOperation(operation) }
        await eventually("the programs do not run") { operations.allSatisfy { $0.processIdentifier != nil } }
        let programs = operations.compactMap { Program($0) }
        #expect(programs.count == 8 && !programs.contains(where: \.awaitsTermination))
        queue.cancelAllOperations()
        // The last one first, before another thread comes to it. A program keeps the signal that has ended it.
        #expect(programs.reversed().allSatisfy { $0.awaitsTermination || !isRunning($0.number) })
        for operation in operations {
            await #expect(throws: CancellationError.self) { try await operation.finished() }
        }
    }

    @Test("A program that has stopped goes on when it is asked to end, and does what it does then")
    func stopped() async throws {
        let operation = shell("trap 'exit 0' TERM; kill -STOP $$; sleep 100")
        operation.terminationGracePeriod = .seconds(100)
        queue.addOperation(operation)
        await eventually("it has not stopped") { Program(operation)?.isStopped == true }
        operation.cancel()
        try await operation.finished()
        #expect(operation.output?.termination == .exited(0))
    }

    @Test("A program that is asked to end is asked once")
    func once() async throws {
        let script = "until [ $asked ]; do sleep 0.02; done; sleep 0.1; sleep 0.1"
        let operation = shell("trap 'echo asked; asked=1' TERM; echo begun; \(script)")
        operation.terminationGracePeriod = .seconds(100)
        let lines = await begin(operation)
        await concurrently(Array(repeating: { operation.cancel() }, count: 4))
        try await operation.finished()
        #expect(lines.events == ["begun", "asked"])
    }

    @Test("What a program has left behind is ended if its operation is cancelled later", arguments: [false, true])
    func cancelledAfterExit(_ isDeaf: Bool) async throws {
        let (left, begun, goOn) = (Shared(""), Gate(), Gate())
        let operation = shell("\(isDeaf ? "trap '' TERM; " : "")sleep 100 >&- 2>&- & echo $!")
        operation.terminationGracePeriod = .milliseconds(isDeaf ? 50 : 10_000)
        operation.standardOutput = .lines { line in
            left.value = line
            begun.open()
            goOn.pass()
        }
        queue.addOperation(operation)
        await begun.opened()
        await eventually("the program has not exited") { operation.processIdentifier == nil }
        let program = Program(number: try #require(pid_t(left.value)))
        #expect(isRunning(program.number))
        operation.cancel()
        goOn.open()
        try await operation.finished()
        #expect(operation.output?.termination == .exited(0))
        // The end waits for what ends when it is asked to.
        if isDeaf { await eventually("it goes on") { !isRunning(program.number) } }
        #expect(!isRunning(program.number))
    }

    @Test("No signal goes to the number of a program that was waited for, by its operation or by other code")
    func waitedFor() async throws {
        for isWaitedForByOthers in [false, true] {
            let file = folder.url.appendingPathComponent("\(isWaitedForByOthers)")
            let child = try launched("sleep 100 & echo $!", to: .file(file))
            var info = unsafe siginfo_t()
            #expect(unsafe waitid(P_PID, id_t(child.processID), &info, WEXITED | WNOWAIT) == 0)
            if isWaitedForByOthers {
                #expect(waitpid(child.processID, nil, 0) == child.processID)
            } else {
                child.exitWasSeen()
                child.advance(to: .zero)
                #expect(child.isOver)
            }
            // It has the number of the program as that of its group.
            let left = Program(number: try #require(pid_t(String(contentsOf: file, encoding: .utf8).dropLast())))
            kill(left.number, SIGSTOP)
            await eventually("it has not stopped") { left.isStopped }
            child.terminate(gracePeriod: .seconds(2))
            #expect(left.isStopped && !left.awaitsTermination)
            kill(left.number, SIGKILL)
        }
    }

    @Test(
        "A second request to end sends no signal, and a program whose grace period is negative is killed immediately",
        arguments: [true, false])
    func signals(isSecond: Bool) async throws {
        let child = try launched("trap '' TERM; kill -STOP $$; exec sleep 100", to: .discarded)
        let program = Program(number: child.processID)
        await eventually("it has not stopped") { program.isStopped }
        child.terminate(gracePeriod: .seconds(isSecond ? 2 : -1))
        if isSecond { child.terminate(gracePeriod: .zero) } else { kill(program.number, SIGCONT) }
        kill(program.number, SIGINT)
        var status: Int32 = 0
        #expect(unsafe waitpid(program.number, &status, 0) == program.number)
        #expect(status & 0x7f == (isSecond ? SIGINT : SIGKILL))
    }

    @Test("A grace period that the clock could not count to is one of a century, and keeps nothing")
    func endlessGracePeriod() async {
        await #expect(processExitsWith: .success) {
            let leaks = LeakTracker()
            do {
                // The end of the period is waited for meanwhile.
                let operation = shell("trap 'sleep 0.2; exit 0' TERM; echo; while true; do sleep 0.02; done")
                operation.terminationGracePeriod = .seconds(Int64.max) * 2
                await begin(leaks.track(operation))
                operation.cancel()
                try? await operation.finished()
            }
            await leaks.expectAllReleased()
        }
    }

    @Test("Calling `main(input:)` of an operation whose program runs does nothing")
    func mainByHand() async throws {
        let operation = shell("exec sleep 100")
        queue.addOperation(operation)
        await eventually("it does not run") { operation.processIdentifier != nil }
        let program = operation.processIdentifier
        operation.main(input: Data())
        #expect(operation.processIdentifier == program)
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
    }

    @Test("A program ends if other code finishes its operation", arguments: [false, true])
    func finishedByOthers(_ isDeaf: Bool) async throws {
        let operation = shell(isDeaf ? "trap '' TERM; while true; do sleep 0.02; done" : "exec sleep 100")
        operation.terminationGracePeriod = .milliseconds(isDeaf ? 50 : 10_000)
        queue.addOperation(operation)
        await eventually("it does not run") { operation.processIdentifier != nil }
        operation.finish(withError: TestError.first)
        await #expect(throws: TestError.first) { try await operation.finished() }
        await eventually("the program goes on") { operation.processIdentifier == nil }
    }

    @Test("A program that is still looked for when its operation is cancelled is not started")
    func lookedFor() async throws {
        // Takes a while to go through.
        let path = String(repeating: "missing:", count: 10_000) + "/usr/bin:/bin"
        let operation = ProcessOperation("sleep", ["2"], environment: ["PATH": path])
        queue.addOperation(operation)
        await eventually("it has not begun") { operation.isAtWork }
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
    }

    @Test("A program that has ended because it was asked to is waited for after its group, whichever is known first")
    func exitBeforeTheRequestIsKnown() throws {
        let child = try launched("exec sleep 100", to: .discarded)
        child.terminate(gracePeriod: .seconds(2))
        var info = unsafe siginfo_t()
        #expect(unsafe waitid(P_PID, id_t(child.processID), &info, WEXITED | WNOWAIT) == 0)
        child.exitWasSeen()
        child.advance(to: .zero)
        #expect(child.state.awaitsGroup && !child.isOver)
        child.state.groupEnded()
        child.advance(to: .zero)
        #expect(child.isOver)
    }

    #if os(Linux)
    @Test("A member of the group that ignores the signal is waited for, and killed, also if no file can be opened")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            let script = "trap '' TERM; sleep 10 & trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
            let operation = shell(script)
            operation.terminationGracePeriod = .milliseconds(500)
            await begin(operation)
            setLimit(RLIMIT_NOFILE, to: 100)
            while dup(0) >= 0 {}
            let began = ContinuousClock.now
            operation.cancel()
            try? await operation.finished()
            // What a sanitizer does at an exit needs descriptors.
            _exit(ContinuousClock.now - began >= .milliseconds(500) ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif

    /// The argument is so long that the system takes some time to start the program.
    @Test("No line comes after other code has finished the operation, also while the program is being started")
    func linesAfterForeignEnd() async {
        let argument = String(repeating: "x", count: 100_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<TestExtent.choose(8, long: 1_000) {
                if number >= 4 { await group.next() }
                group.addTask {
                    let script = "trap '' TERM; while :; do echo line; sleep 0.01; done"
                    let operation = ProcessOperation(
                        "sh", ["-c", script] + Array(repeating: argument, count: 10))
                    operation.terminationGracePeriod = .milliseconds(200)
                    let lines = Shared(0)
                    operation.standardOutput = .lines { _ in lines.change { $0 += 1 } }
                    let queue = OperationQueue()
                    queue.addOperation(operation)
                    await eventually("it does not begin") { operation.isExecuting || operation.isFinished }
                    if number % 4 > 0 { try? await Task.sleep(for: .microseconds(number * 25)) }
                    operation.finish(withError: nil)
                    let count = lines.value
                    // Time for the lines of the grace period.
                    try? await Task.sleep(for: .milliseconds(150))
                    // One more may have been on its way.
                    #expect(lines.value <= count + 1)
                }
            }
        }
    }

    /// Programs that are running, that are just being started, and that wait for their start.
    @Test(
        "A process that cancels what runs, and exits, leaves no program alive",
        arguments: TestExtent.choose([0, 500, 5_000], long: [0, 200, 500, 1_000, 2_000, 5_000, 20_000]),
        [Duration.seconds(2), .zero])
    func cancelAndExit(_ microseconds: UInt32, _ gracePeriod: Duration) async {
        // An argument that tells these programs from all others.
        let argument = "1000.\(UInt32.random(in: 100_000_000 ... .max))"
        await #expect(processExitsWith: .success) { [argument = argument as String, microseconds, gracePeriod] in
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 8
            let operations = (0..<16).map { _ in ProcessOperation("sleep", [argument]) }
            for operation in operations {
                operation.terminationGracePeriod = gracePeriod
                queue.addOperation(operation)
            }
            while !operations.contains(where: \.isExecuting) { sched_yield() }
            usleep(microseconds)
            queue.cancelAllOperations()
            _exit(EXIT_SUCCESS)
        }
        await eventually("programs are left") { Program.all(withArgument: argument).isEmpty }
        for program in Program.all(withArgument: argument) { kill(program.number, SIGKILL) }
    }
}

/// A program that no monitor watches.
private func launched(_ script: String, to destination: ProcessOutputDestination) throws -> ChildProcess {
    let request = LaunchRequest(
        executable: "sh", arguments: ["-c", script], environment: nil, directory: nil, input: Data(),
        outputs: [destination, .discarded])
    return try PreparedLaunch(request).start { _ in }
}

/// What the system tells of a process.
private struct Program {
    let number: pid_t

    init(number: pid_t) { self.number = number }

    init?(_ operation: ProcessOperation) {
        guard let number = operation.processIdentifier else { return nil }
        self.number = number
    }

    private func status(_ key: String) -> Substring {
        let text = (try? String(contentsOfFile: "/proc/\(number)/status", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").first { $0.hasPrefix(key + ":") }?.dropFirst(key.count + 2) ?? ""
    }

    var isStopped: Bool { status("State").hasPrefix("T") }

    /// Whether it was asked to end, and has not handled that, or has ended for it.
    var awaitsTermination: Bool { UInt64(status("ShdPnd"), radix: 16).map { $0 >> (SIGTERM - 1) & 1 == 1 } ?? false }

    static func all(withArgument argument: String) -> [Program] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.compactMap { pid_t($0) }.filter { number in
            let command = (try? String(contentsOfFile: "/proc/\(number)/cmdline", encoding: .utf8)) ?? ""
            return command.split(separator: "\0").contains(Substring(argument))
        }.map { Program(number: $0) }
    }
}
#endif
