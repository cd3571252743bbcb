#if os(Linux)
import CProcessSupport
import OperationKitTestSupport

@testable import OperationKitProcess

/// Programs of a process whose limits, descriptors, users or paths are unusual, so each test has one of its own.
@Suite("Surroundings of processes", .hangGuard)
struct ProcessSurroundingsTests {
    private let folder = TemporaryFolder()

    // MARK: - Limits

    @Test("Programs that run while the limit of open files is lowered get their input and end")
    func loweredLimit() async {
        let path = folder.path + "/go"
        await #expect(processExitsWith: .success) { [path = path as String] in
            // Leaves low numbers for what else this process opens under the limit.
            let low = (0..<64).map { _ in unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
            let operations = (0..<5).map { _ in shell("until [ -d '\(path)' ]; do sleep 0.02; done; cat") }
            for operation in operations {
                operation.input = Data(count: 100_000)
                operation.start()
            }
            for number in low { close(number) }
            let most = setLimit(RLIMIT_NOFILE, to: 16)
            #expect(unsafe mkdir(path, 0o700) == 0)
            await eventually("they do not end") { operations.allSatisfy(\.isFinished) }
            setLimit(RLIMIT_NOFILE, to: most)
            #expect(operations.allSatisfy { $0.output?.standardOutput.count == 100_000 })
        }
    }

    @Test("Too many open files at the first program do not keep the monitor without its pipe")
    func noPipeAtFirst() async {
        await #expect(processExitsWith: .success) {
            let before = pipes()
            let lowest = unsafe open("/dev/null", O_RDONLY)
            close(lowest)
            // No number is left.
            let most = setLimit(RLIMIT_NOFILE, to: rlim_t(lowest))
            _ = ProcessMonitor.shared
            setLimit(RLIMIT_NOFILE, to: most)
            await eventually("it has no pipe") { pipes().subtracting(before).count == 2 }
            _ = try await OperationQueue().run(ProcessOperation("true"))
        }
    }

    // MARK: - Descriptors

    @Test(
        "A standard stream that is closed, or has become another descriptor, is none of the program",
        arguments: [false, true])
    func noStandardStream(isTaken: Bool) async {
        await #expect(processExitsWith: .success) { [isTaken] in
            close(1)
            if isTaken {
                let other = unsafe open("/dev/zero", O_WRONLY)
                dup2(other, 1)
                #expect(fcntl(1, F_SETFD, FD_CLOEXEC) == 0)
            }
            let operation = shell("link=$(readlink /proc/$$/fd/1); echo $link >&2")
            operation.standardOutput = .inherited
            let output = try await OperationQueue().run(operation)
            #expect(String(decoding: output.standardError, as: UTF8.self) == "/dev/null\n")
        }
    }

    @Test("A standard stream that is open is that of the program")
    func standardStream() async throws {
        let path = try folder.file("log", "")
        await #expect(processExitsWith: .success) { [path = path as String] in
            let file = unsafe open(path, O_WRONLY | O_CLOEXEC)
            dup2(file, 1)
            let operation = ProcessOperation("echo", ["text"])
            operation.standardOutput = .inherited
            _ = try await OperationQueue().run(operation)
        }
        // The test library writes to it, too.
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).range(of: Data("text\n".utf8)) != nil)
    }

    @Test("If a program could not wake up the monitor, the next one does so for both")
    func failedWakeUp() async {
        await #expect(processExitsWith: .success) {
            let before = pipes()
            _ = try await OperationQueue().run(quiet("true"))
            let wakeUp = try #require(pipes().subtracting(before).first(where: isForWriting))
            let (saved, operations) = (dup(wakeUp), [quiet("true"), quiet("true")])
            makeUnwritable(wakeUp)
            operations[0].start()
            dup2(saved, wakeUp)
            operations[1].start()
            await eventually("they do not end") { operations.allSatisfy(\.isFinished) }
        }
    }

    @Test("A program that got only a part of its input, because the system refused the rest, has not succeeded")
    func failedInput() async {
        let path = folder.path + "/go"
        await #expect(processExitsWith: .success) { [path = path as String] in
            _ = try await OperationQueue().run(quiet("true"))
            let before = pipes()
            let operation = quiet("sh", ["-c", "until [ -d '\(path)' ]; do sleep 0.02; done; cat"])
            operation.input = Data(count: 1 << 20)
            operation.start()
            makeUnwritable(try #require(pipes().subtracting(before).first(where: isForWriting)))
            // When another program has ended, the monitor has tried to write.
            _ = try await OperationQueue().run(quiet("true"))
            #expect(unsafe mkdir(path, 0o700) == 0)
            let error = await #expect(throws: ProcessError.self) { try await operation.finished() }
            #expect(error == .inputFailed(command: operation.name ?? "", code: EBADF))
            let end = "” got only a part of its input: Bad file descriptor."
            #expect(error?.localizedDescription.hasSuffix(end) == true)
        }
    }

    // MARK: - What the system tells

    @Test(
        "A process whose main thread has ended runs as long as it has other threads",
        arguments: [("R", 1, false), ("R", 2, false), ("Z", 1, true), ("Z", 2, false), ("X", 1, true)])
    func mainThread(_ state: String, _ threads: Int, _ hasEnded: Bool) {
        let line = "7 (a) Z (b) \(state) 1 7 7 0 -1 4227084 80 0 1 0 0 0 0 0 20 0 \(threads) 0 7590952 0 0"
        #expect(unsafe ok_stat_has_ended(line) == hasEnded)
    }

    // MARK: - Paths

    @Test("A program is found in a folder whose name is no UTF-8, by PATH and from the current directory")
    func bytesInPaths() async {
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let odd = Array("\(path)/a".utf8CString.dropLast()) + [CChar(truncatingIfNeeded: 0xff), 0]
            #expect(unsafe mkdir(odd, 0o700) == 0 && chdir(odd) == 0 && symlink("/bin/echo", "echo") == 0)
            let queue = OperationQueue()
            _ = try await queue.run(ProcessOperation("./echo"))
            // An empty folder is the current directory.
            unsafe setenv("PATH", "", 1)
            _ = try await queue.run(ProcessOperation("echo"))
            #expect(unsafe chdir("/bin") == 0 && setenv("PATH", odd, 1) == 0)
            _ = try await queue.run(ProcessOperation("echo"))
        }
    }

    @Test(
        "The user whose rights count decides which program may be executed",
        .enabled(if: geteuid() == 0, "Only the administrator can have the rights of another user."))
    func effectiveUser() async throws {
        let path = folder.path + "/true"
        _ = try await OperationQueue().run(ProcessOperation("cp", ["/bin/true", path]))
        #expect(unsafe chmod(path, 0o700) == 0)
        await #expect(processExitsWith: .success) { [path = path as String] in
            // As in a program that another user has started, and that has the right to become this one.
            #expect(setreuid(65_534, 0) == 0)
            _ = try await OperationQueue().run(ProcessOperation(path))
            // A sanitizer may not look at a process of two users.
            _exit(EXIT_SUCCESS)
        }
    }
}

/// An operation without pipes.
private func quiet(_ name: String, _ arguments: [String] = []) -> ProcessOperation {
    let operation = ProcessOperation(name, arguments)
    operation.standardOutput = .discarded
    operation.standardError = .discarded
    return operation
}

/// The descriptors of this process that are ends of pipes.
private func pipes() -> Set<Int32> {
    Set(
        (0..<1_024).filter { number in
            var status = stat()
            return unsafe fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
        })
}

private func isForWriting(_ number: Int32) -> Bool { fcntl(number, F_GETFL) & O_ACCMODE == O_WRONLY }

/// Puts something in the place of a descriptor that refuses to be written, and sends no signal.
private func makeUnwritable(_ number: Int32) {
    let other = unsafe open("/dev/null", O_RDONLY)
    dup2(other, number)
    close(other)
}
#endif
