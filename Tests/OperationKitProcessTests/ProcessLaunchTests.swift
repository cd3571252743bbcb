import OperationKitTestSupport

@testable import OperationKitProcess

/// What is started under its name, and what cannot be started.
@Suite("Launches of processes", .hangGuard)
struct ProcessLaunchTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    // MARK: - Names

    @Test("A path with spaces, quotes and line breaks is that of the program and of its directory")
    func oddNames() async throws {
        let odd = folder.url.appendingPathComponent("a 'b' \"c\"\nd $e")
        try FileManager.default.createDirectory(at: odd, withIntermediateDirectories: false)
        let program = try folder.script("a 'b' \"c\"\nd $e/run it", "#!/bin/sh\npwd; printf %s \"$1\"\n")
        let output = try await queue.run(ProcessOperation(program, ["x'\n\"y"], directory: odd))
        #expect(output.text.hasSuffix("/a 'b' \"c\"\nd $e\nx'\n\"y"))
    }

    @Test("A relative folder of PATH is one of the current directory, wherever the program runs; a pipe is no program")
    func relativePath() async throws {
        _ = try folder.script("hello", "#!/bin/sh\npwd\n")
        let pipes = folder.url.appendingPathComponent("pipes")
        try FileManager.default.createDirectory(at: pipes, withIntermediateDirectories: true)
        #expect(unsafe mkfifo(pipes.appendingPathComponent("hello").path, 0o777) == 0)
        let up = FileManager.default.currentDirectoryPath.split(separator: "/").map { _ in ".." }
        // So deep that as many steps up do not lead to the root.
        let deep = up.reduce(folder.url) { url, _ in url.appendingPathComponent("deep") }
        try FileManager.default.createDirectory(at: deep, withIntermediateDirectories: true)
        let output = try await queue.run(
            ProcessOperation(
                "hello", directory: deep,
                environment: ["PATH": "\(pipes.path):missing:\(up.joined(separator: "/"))\(folder.url.path):/bin"]))
        #expect(output.text.hasSuffix("/deep"))
    }

    @Test("Where the current directory was removed, a relative path is that of no program, and others run")
    func removedDirectory() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryFolder()
            #expect(FileManager.default.changeCurrentDirectoryPath(folder.path))
            try FileManager.default.removeItem(at: folder.url)
            for (name, path) in [("bin/sh", "/bin"), ("./bin/sh", "/bin"), ("sh", "bin"), ("sh", "")] {
                let operation = ProcessOperation(name, ["-c", "exit"], environment: ["PATH": path])
                #expect(try await failure(of: operation) == .notFound(command: "\(name) -c exit"))
            }
            _ = try await OperationQueue().run(ProcessOperation("sh", ["-c", "exit"]))
        }
    }

    @Test("Characters that break lines or control a terminal are escaped in names of commands, as bash reads them")
    func controlCharacters() async throws {
        let argument = "\u{1b}[2Jä\u{7}\u{7f}\u{85}\u{2028}\u{2029}\t'\\\u{1}a\u{202e}\u{e0001}👨‍👩‍👧"
        let name = ProcessOperation("echo", [argument]).name ?? ""
        #expect(name == #"echo $'\x1b[2Jä\x07\x7f\u0085\u2028\u2029\x09\'\\\x01a\u202e\U000e0001👨‍👩‍👧'"#)
        #expect(ProcessOperation("echo", ["'\u{301}a"]).name == "echo ''\\''\u{301}a'")
        #if os(Linux)
        // The bash of macOS is older than `\u`.
        let printed = try await queue.run(ProcessOperation("bash", ["-c", name], environment: ["LC_ALL": "C.UTF-8"]))
        #expect(printed.standardOutput == Data((argument + "\n").utf8))
        #endif
    }

    // MARK: - Environment

    @Test("A variable of this process that is no UTF-8 reaches the program as it is, unless an environment is set")
    func inheritedBytes() async {
        await #expect(processExitsWith: .success) {
            let bytes: [UInt8] = [0x61, 0xff, 0xfe, 0x62]
            unsafe setenv("BAD", (bytes + [0]).map { CChar(bitPattern: $0) }, 1)
            let queue = OperationQueue()
            let inherited = try await queue.run(ProcessOperation("printenv", ["BAD"]))
            let replaced = try await queue.run(ProcessOperation("printenv", environment: ["GOOD": "ä"]))
            #expect(inherited.standardOutput == Data(bytes + [0x0a]))
            #expect(replaced.text == "GOOD=ä")
        }
    }

    // MARK: - What cannot be started

    @Test(
        "A file that the system cannot run is an error of the launch", arguments: ["\u{1}\u{2}", "#!/no/such/shell\n"])
    func noProgram(_ text: String) async throws {
        let path = try folder.script("file", text)
        let error = try await failure(of: ProcessOperation(path))
        let isShellMissing = text.hasPrefix("#!")
        #expect(error == .launchFailed(command: path, code: isShellMissing ? ENOENT : ENOEXEC))
        #expect(error.localizedDescription.contains("in its first line") == isShellMissing)
    }

    @Test("A path that leads nowhere is that of no program, and one that can't be followed has the error of the system")
    func brokenPaths() async throws {
        let file = try folder.file("file", "")
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: link)
        for path in [folder.path + "/missing", file + "/program"] {
            #expect(try await failure(of: ProcessOperation(path)) == .notFound(command: path))
        }
        #expect(
            try await failure(of: ProcessOperation(link.path)) == .launchFailed(command: link.path, code: ELOOP))
    }

    @Test("A program in a folder that may not be searched is an error that says so")
    func closedFolder() async throws {
        let path = try folder.script("program", "#!/bin/sh\n")
        #expect(unsafe chmod(folder.path, 0) == 0)
        defer { _ = unsafe chmod(folder.path, 0o700) }
        await #expect(processExitsWith: .success) { [path = path as String] in
            // The administrator may search it nevertheless.
            if geteuid() == 0 { #expect(setuid(65_534) == 0) }
            let error = try await failure(of: ProcessOperation(path))
            #expect(error == .launchFailed(command: path, code: EACCES))
        }
    }

    @Test("A path that is not one of this system, or that can't be opened for output, is an error, and no file is made")
    func badPaths() async throws {
        let web = try #require(URL(string: "https://example.com\(folder.url.path)/web"))
        for directory in [web, web.deletingLastPathComponent()] {
            #expect(
                try await failure(of: ProcessOperation("pwd", directory: directory))
                    == .invalidDirectory(command: "pwd", directory: directory.absoluteString))
        }
        // No thread waits for a program that reads it.
        let pipe = folder.url.appendingPathComponent("pipe")
        #expect(unsafe mkfifo(pipe.path, 0o600) == 0)
        let places = [
            (web, web.absoluteString, EINVAL), (folder.url, folder.path, EISDIR), (pipe, pipe.path, ENXIO),
            (URL(fileURLWithPath: "/missing/file"), "/missing/file", ENOENT),
        ]
        for (place, path, code) in places {
            let operations = [ProcessOperation("pwd"), ProcessOperation("pwd")]
            operations[0].standardOutput = .file(place)
            operations[1].standardError = .file(place)
            for operation in operations {
                #expect(try await failure(of: operation) == .invalidOutput(command: "pwd", path: path, code: code))
            }
        }
        #expect(folder.names == ["pipe"])
    }

    @Test(
        "A variable that cannot be set as it is is an error that has its name, and not its value",
        arguments: [("A", "secret\0"), ("A\0", "secret"), ("", "secret"), ("A=B", "secret"), ("A=\u{301}B", "secret")])
    func badVariable(_ name: String, _ value: String) async throws {
        let error = try await failure(of: ProcessOperation("pwd", environment: ["GOOD": "=", name: value]))
        #expect(error == .invalidVariable(command: "pwd", name: name.replacing("\0", with: "\\0")))
        #expect((error as NSError).code == 9 && !error.localizedDescription.contains("secret"))
    }

    #if os(Linux)
    enum BusyFile: CaseIterable { case forAMoment, forEver, cancelled }

    @Test(
        "A program that is open for writing runs once it is closed, or is an error soon", arguments: BusyFile.allCases)
    func openForWriting(_ kind: BusyFile) async throws {
        let path = try folder.script("busy", "#!/bin/sh\necho hello")
        let writing = unsafe open(path, O_WRONLY | O_CLOEXEC)
        let (operation, start) = (ProcessOperation(path), ContinuousClock.now)
        operation.start()
        let isExecuting = operation.isExecuting && operation.processIdentifier == nil
        if kind == .cancelled { operation.cancel() }
        if kind == .forAMoment { close(writing) }
        // This thread stood still until nothing was tried any more.
        if start.duration(to: .now) > .milliseconds(200) {
            try? await operation.finished()
            if kind != .forAMoment { close(writing) }
            return try await openForWriting(kind)
        }
        #expect(isExecuting)
        switch kind {
        case .forAMoment: #expect(try await operation.value.text == "hello")
        case .cancelled: await #expect(throws: CancellationError.self) { try await operation.finished() }
        case .forEver:
            await #expect(throws: ProcessError.launchFailed(command: path, code: ETXTBSY)) {
                try await operation.finished()
            }
        }
        if kind != .forAMoment { close(writing) }
    }

    // In a process of its own: an observer of all operations sees those of other tests, too.
    @Test("The pauses before a program is started again are no operations of the user")
    func pauses() async throws {
        let path = try folder.script("busy", "#!/bin/sh\necho hello")
        await #expect(processExitsWith: .success) { [path = path as String] in
            let writing = unsafe open(path, O_WRONLY | O_CLOEXEC)
            let (operation, recorder) = (ProcessOperation(path, name: "busy"), EventRecorder())
            AsyncOperation.addGlobalObserver(recorder)
            operation.start()
            try? await operation.finished()
            close(writing)
            // Nothing is looked for at this end: what another thread still holds of the operation would be a leak.
            _exit(recorder.names == ["busy"] ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    @Test("What tells of the end of a program takes the number of no standard stream, not even of one that is closed")
    func exitDescriptor() async {
        await #expect(processExitsWith: .success) {
            close(0)
            let operation = ProcessOperation("sleep", ["1000"])
            operation.start()
            let taken = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/0")
            operation.cancel()
            try? await operation.finished()
            // Nothing is looked for at this end, as above.
            _exit(taken?.contains("pidfd") == true ? EXIT_FAILURE : EXIT_SUCCESS)
        }
    }

    @Test("Too many open files are an error, and the next program runs")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            // The limit is one for numbers, and there may be gaps below the highest: only the lowest free one is left.
            let lowest = unsafe open("/dev/null", O_RDONLY)
            close(lowest)
            var failures = 0
            for _ in 0..<3 {
                let operation = ProcessOperation("true")
                // On this thread, and for no longer than needed: Dispatch traps when it cannot open a file about its threads.
                let most = setLimit(RLIMIT_NOFILE, to: rlim_t(lowest + 1))
                operation.start()
                setLimit(RLIMIT_NOFILE, to: most)
                do { try await operation.finished() } catch is ProcessError { failures += 1 }
            }
            _ = try await OperationQueue().run(ProcessOperation("true"))
            exit(failures == 3 ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif

    // MARK: - Errors

    @Test("An error has a domain, the code that is documented at its case, and the error of the system")
    func conversion() {
        let failed = ProcessError.failed(command: "ls /none", termination: .exited(2), standardError: "No such file.")
        #expect((failed as NSError).domain == "OperationKit.ProcessError" && (failed as NSError).code == 7)
        #expect(failed.localizedDescription.hasSuffix(": No such file."))
        let launch = ProcessError.launchFailed(command: "ls", code: ENOMEM)
        for (error, code) in [(launch, 6), (.inputFailed(command: "ls", code: ENOMEM), 10)] {
            let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            #expect((error as NSError).code == code)
            #expect(underlying?.domain == NSPOSIXErrorDomain && underlying?.code == Int(ENOMEM))
        }
        #expect((failed as NSError).userInfo[NSUnderlyingErrorKey] == nil)
        for (count, text) in [(0, "0 bytes."), (1, "1 byte."), (2, "2 bytes.")] {
            let error = ProcessError.outputTooLarge(command: "ls", maximumByteCount: count)
            #expect(error.localizedDescription.contains("it wrote more than \(text) "))
        }
    }
}
