import OperationKitTestSupport

@testable import OperationKitProcess

/// Programs, files and moments that are out of order.
@Suite("Processes in trouble", .hangGuard)
struct ProcessTroubleTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    // MARK: - What goes on

    @Test("A program that is left behind and goes on writing holds up nothing", arguments: [false, true])
    func leftBehindWriter(_ hasLines: Bool) async throws {
        let process = Shared("")
        let operation = shell("while true; do echo more; sleep 0.01; done & echo $! >&2; echo own")
        if hasLines { operation.standardOutput = .lines { _ in } }
        operation.standardError = .lines { line in process.value = line }
        let output = try await queue.run(operation)
        #expect(hasLines || output.text.hasPrefix("own") || output.text.contains("\nown"))
        if let process = pid_t(process.value) { kill(process, SIGKILL) }
    }

    @Test("A program that is left behind and writes to both pipes holds up nothing, though one handler is always busy")
    func leftBehindOnBothPipes() async throws {
        let process = Shared("")
        let operation = shell("while true; do echo more; echo more >&2; sleep 0.01; done & echo $!")
        // While one handler runs, more comes for the other.
        operation.standardOutput = .lines { line in
            if line != "more" { process.value = line }
            usleep(20_000)
        }
        operation.standardError = .lines { _ in usleep(20_000) }
        #expect(try await queue.run(operation).termination == .exited(0))
        if let process = pid_t(process.value) { kill(process, SIGKILL) }
    }

    @Test(
        "A program that has left its group is ended, too",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/perl"), "No shell can leave its group."))
    func ownGroup() async throws {
        let operation = ProcessOperation(
            "perl", ["-e", "setpgrp(0, getpgrp(getppid())); $| = 1; print qq(left\\n); sleep 100"])
        await begin(operation)
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.value }
    }

    @Test("All that a program itself has written comes, however long its handler takes")
    func slowHandler() async throws {
        let (began, goOn, lines) = (Gate(), Gate(), Shared(0))
        let file = folder.url.appendingPathComponent("begun").path
        // The numbers stay in the pipe until the first line is taken.
        let operation = shell(
            "echo first; until [ -e '\(file)' ]; do sleep 0.01; done; seq 2 1000; sleep 100 & echo $! >&2")
        operation.standardOutput = .lines { line in
            lines.change { $0 += 1 }
            guard line == "first" else { return }
            _ = FileManager.default.createFile(atPath: file, contents: nil)
            began.open()
            goOn.pass()
        }
        queue.addOperation(operation)
        await began.opened()
        await eventually("the program is not waited for") { operation.processIdentifier == nil }
        #expect(!operation.isFinished)
        // Takes as long as the library waits for the end of a pipe.
        _ = try await queue.run(shell("sleep 1 &"))
        goOn.open()
        let left = String(decoding: try await operation.value.standardError, as: UTF8.self)
        #expect(lines.value == 1_000)
        if let process = pid_t(left.dropLast()) { kill(process, SIGKILL) }
    }

    @Test("What a program has started and is deaf is ended after the grace period, too, without a pipe to tell of it")
    func deafGroup() async throws {
        let file = folder.url.appendingPathComponent("number")
        let operation = shell(
            "(trap '' TERM; echo deaf >&2; exec sleep 100 2>&-) & echo $!; echo written >&2; exec 2>&-; wait")
        let (ready, lines) = (Gate(), Shared(0))
        operation.standardOutput = .file(file)
        operation.standardError = .lines { _ in
            lines.change { $0 += 1 }
            if lines.value == 2 { ready.open() }
        }
        operation.terminationGracePeriod = .milliseconds(30)
        queue.addOperation(operation)
        await ready.opened()
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        let process = try #require(pid_t(String(contentsOf: file, encoding: .utf8).dropLast()))
        await eventually("it still runs") { !isRunning(process) }
    }

    #if os(Linux)
    @Test("The groups of many programs are looked for in one pass, and those in which others run are found")
    func manyGroups() async throws {
        let ready = Gate()
        let operations = [shell("sleep 100 & sleep 100 & echo; wait"), shell("echo; exec sleep 100")]
        let lines = Shared(0)
        for operation in operations {
            operation.standardOutput = .lines { _ in
                lines.change { $0 += 1 }
                if lines.value == 2 { ready.open() }
            }
            queue.addOperation(operation)
        }
        await ready.opened()
        let processes = operations.map { $0.processIdentifier ?? 0 }
        // Numbers that no process has.
        let none = (1...500).map { pid_t.max - $0 }
        #expect(ProcessMonitor.groupsWithOthers(none + processes + none) == [processes[0]])
        for operation in operations { operation.cancel() }
        for operation in operations { await #expect(throws: CancellationError.self) { try await operation.finished() } }

        // The shortest of several times, as the machine may be busy.
        func duration(_ groups: [pid_t]) -> Duration {
            let clock = ContinuousClock()
            return (0..<5).map { _ in clock.measure { _ = ProcessMonitor.groupsWithOthers(groups) } }.min() ?? .zero
        }
        // One pass for each would take 500 times as long.
        #expect(duration(none) < duration([none[0]]) * 250)
    }
    #endif

    @Test("A signal that comes from a cancellation is no success, whatever is accepted")
    func cancelledWithAnyStatus() async throws {
        let operation = ProcessOperation("sleep", ["100"])
        operation.acceptedStatuses = nil
        operation.timeout = .milliseconds(10)
        await #expect(throws: OperationTimeoutError.self) { try await queue.run(operation) }
    }

    // MARK: - Cancelling at each stage

    enum Stage: CaseIterable, Sendable {
        case launching, running, readingInput, unreadInput, closedOutput, inHandler, exited, suspended
    }

    @Test("Cancelling ends a program at every stage, and with it what it has started", arguments: Stage.allCases)
    func stages(_ stage: Stage) async throws {
        let (began, goOn) = (Gate(), Gate())
        let script =
            switch stage {
            case .readingInput: "echo begun; cat >/dev/null; sleep 100"
            case .closedOutput: "echo begun; exec >&- 2>&-; sleep 100"
            case .exited: "echo begun"
            case .suspended: "echo begun; kill -STOP $$; sleep 100"
            default: "echo begun; sleep 100 & wait"
            }
        let operation = shell(script)
        if stage == .readingInput || stage == .unreadInput { operation.input = Data(count: 1 << 20) }
        let holds = stage == .inHandler || stage == .exited
        operation.standardOutput = .lines { _ in
            began.open()
            if holds { goOn.pass() }
        }
        queue.addOperation(operation)
        if stage != .launching { await began.opened() }
        if stage == .exited {
            await eventually("the program is not waited for") { operation.processIdentifier == nil }
        }
        operation.cancel()
        goOn.open()
        if stage == .exited {
            try await operation.finished()
        } else {
            await #expect(throws: CancellationError.self) { try await operation.finished() }
        }
        #expect(operation.processIdentifier == nil)
    }

    @Test("A handler may cancel its operation, and run another program")
    func insideHandler() async throws {
        let (inner, operation) = (ProcessOperation("echo", ["inner"]), shell("echo begun; sleep 100"))
        operation.standardOutput = .lines { [weak operation, queue] _ in
            queue.addOperation(inner)
            inner.waitUntilFinished()
            operation?.cancel()
        }
        await #expect(throws: CancellationError.self) { try await queue.run(operation) }
        #expect(inner.output?.text == "inner")
    }

    @Test("A closure that takes lines is released outside of locks when it is replaced, and if it comes too late")
    func replacedClosures() async throws {
        let (operation, count) = (ProcessOperation("true"), Shared(0))
        func replace(_ property: ReferenceWritableKeyPath<ProcessOperation, ProcessOutputDestination>) {
            let released = Released { [weak operation] in
                operation?.standardError = .discarded
                count.change { $0 += 1 }
            }
            operation[keyPath: property] = .lines { _ in released.use() }
        }
        for _ in 0..<2 {
            replace(\.standardOutput)
            replace(\.standardError)
        }
        #expect(count.value == 2)
        try await queue.run(operation)
        await eventually("\(count.value)") { count.value == 4 }
        replace(\.standardOutput)
        #expect(count.value == 5)
    }

    @Test("A closure that takes lines is released where it may wait for another program")
    func releaseThatWaits() async throws {
        let file = folder.url.appendingPathComponent("begun").path
        let operation = shell("until [ -e '\(file)' ]; do sleep 0.01; done; echo")
        let other = ProcessOperation("true")
        func replaceLater(_ released: Released) {
            operation.standardOutput = .lines { [weak operation] _ in
                operation?.standardOutput = .discarded
                released.use()
            }
        }
        replaceLater(
            Released { [queue] in
                queue.addOperation(other)
                other.waitUntilFinished()
            })
        // This thread holds the closure until it has started the program.
        operation.start()
        _ = FileManager.default.createFile(atPath: file, contents: nil)
        try await operation.finished()
        #expect(other.isFinished)
    }

    // MARK: - Together with others

    @Test("Events, waterfalls and workflows have programs as their steps, under their commands")
    func steps() async throws {
        let recorder = EventRecorder()
        let flow = WorkflowOperation(name: "flow") { flow in
            let first = try await flow.run(ProcessOperation("echo", ["a b"]), progress: 0.5)
            return try await flow.run(ProcessOperation("cat").with(input: first.standardOutput)).text
        }
        flow.addObserver(recorder)
        #expect(try await queue.run(flow) == "a b")
        #expect(
            recorder.events.filter { $0.hasSuffix(": started") } == [
                "flow: started", "echo 'a b': started", "cat: started",
            ])
        let fall = Waterfall<String, String>(name: "fall")
            .thenRun { ProcessOperation("sort").with(input: Data($0.utf8)) }
            .then { $0.text }
        #expect(try await queue.run(fall.with(input: "b\na\n")) == "a\nb")
        let progress = flow.progress
        #expect(progress.fractionCompleted == 1)
    }

    #if os(Linux)
    @Test("No zombie, no descriptor and no memory is left after programs that end, fail, are cancelled or not started")
    func nothingIsLeft() async {
        await #expect(processExitsWith: .success) {
            Leftovers.adoptOrphans()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 32
            func round(_ count: Int) async {
                let operations = (0..<count).map { number in
                    switch number % 11 {
                    case 0: ProcessOperation("no-such-program")
                    case 1: ProcessOperation("sh", ["-c", "sleep 100 & wait"])
                    case 2: ProcessOperation("cat").with(input: Data(count: 100_000))
                    case 3: ProcessOperation("false")
                    default: ProcessOperation("true")
                    }
                }
                for (number, operation) in operations.enumerated() {
                    if number % 2 == 0 { operation.terminationGracePeriod = .zero }
                    queue.addOperation(operation)
                    if number % 11 == 1 { DispatchQueue.global().async { operation.cancel() } }
                }
                for operation in operations { try? await operation.finished() }
            }
            await round(11)
            let before = Leftovers.descriptorCount
            await round(TestExtent.choose(44, long: 11_000))
            // The system takes a descriptor or two for its timers.
            @Sendable func isClean() -> Bool { Leftovers.descriptorCount < before + 4 && Leftovers.children.isEmpty }
            await eventually("\(Leftovers.descriptorCount) after \(before), \(Leftovers.children)") { isClean() }
            TestExtent.report("descriptors: \(before), then \(Leftovers.descriptorCount)")
            exit(isClean() ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    @Test(
        "Lines of any number need no more memory than few",
        .enabled(if: !keepsFreedMemory, "A sanitizer keeps what is freed, or needs memory itself."))
    func boundedMemory() async {
        await #expect(processExitsWith: .success) {
            let megabytes = TestExtent.choose(64, long: 1_024)
            let line = String(repeating: "x", count: 1_023)
            let operation = ProcessOperation("sh", ["-c", "yes \(line) | head -c \(megabytes << 20)"])
            let count = Shared(0)
            operation.standardOutput = .lines { line in count.change { $0 += line.utf8.count + 1 } }
            let before = peakMegabytes()
            _ = try await OperationQueue().run(operation)
            let grown = peakMegabytes() - before
            TestExtent.report("\(megabytes) MB of lines: the peak has grown by \(grown) MB")
            exit(count.value == megabytes << 20 && grown < 32 ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif
}

/// Whether a process exists that has not ended.
func isRunning(_ process: pid_t) -> Bool {
    guard kill(process, 0) == 0 else { return false }
    let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return status?.contains(") Z ") != true
}

#if os(Linux)
/// What this process still has.
private enum Leftovers {
    /// Makes this process the parent of what programs leave behind, as process 1 of a container is.
    static func adoptOrphans() {
        typealias Control = @convention(c) (_ option: CInt, _ value: CUnsignedLong) -> CInt
        let control = unsafe unsafeBitCast(dlsym(nil, "prctl"), to: Control.self)
        let becomeSubreaper: CInt = 36
        precondition(control(becomeSubreaper, 1) == 0)
    }

    static var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? -1
    }

    static var children: [String] {
        let own = ProcessInfo.processInfo.processIdentifier
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.filter { entry in
            let status = (try? String(contentsOfFile: "/proc/\(entry)/stat", encoding: .utf8)) ?? ""
            guard let end = status.lastIndex(of: ")") else { return false }
            return status[end...].split(separator: " ").dropFirst(2).first == "\(own)"
        }
    }
}
#endif
