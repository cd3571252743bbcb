import OperationKitTestSupport

@testable import OperationKitProcess

/// Which part of what comes through the pipes counts.
@Suite("Outputs of processes", .hangGuard)
struct ProcessOutputTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()

    // MARK: - Input

    @Test("A large input of a program that reads it fast is written in pieces, and others have their turn between them")
    func inputInPieces() async throws {
        let pipe = try Pipe(ourEnd: 1, command: "test")
        let reading = pipe.reading
        let length = 1 << 26
        async let total = onThread {
            var (buffer, total) = ([UInt8](repeating: 0, count: 1 << 20), 0)
            while total < length, case let count = unsafe read(reading.number, &buffer, buffer.count), count > 0 {
                total += count
            }
            return total
        }
        var input = InputPipe(descriptor: pipe.writing, data: Data(count: length))
        var (largest, goesOn) = (0, true)
        while goesOn {
            let before = input.written
            goesOn = input.write()
            largest = max(largest, input.written - before)
            // The one that reads begins in a task, for which there may be no other thread.
            if input.written == before { await Task.yield() }
        }
        #expect(await total == length)
        // As much as a pipe holds.
        #expect(largest <= 1 << 16)
    }

    // MARK: - Lines

    @Test("A program waits for its line handler, so what it has written takes no memory")
    func slowHandler() async throws {
        let (began, goOn, lines) = (Gate(), Gate(), EventLog())
        let script = "yes $(printf %01000d 0) | head -n 1000; touch"
        let operation = shell("\(script) '\(folder.path)/slow'; echo end")
        operation.standardOutput = .lines { line in
            began.open()
            goOn.pass()
            if line == "end" { lines.add(line) }
        }
        queue.addOperation(operation)
        await began.opened()
        // Others, whose lines are taken, can write as much meanwhile.
        for number in 1...3 {
            let other = shell("\(script) '\(folder.path)/\(number)'")
            other.standardOutput = .lines { _ in }
            _ = try await queue.run(other)
        }
        #expect(folder.names == ["1", "2", "3"])
        goOn.open()
        try await operation.finished()
        #expect(folder.names == ["1", "2", "3", "slow"])
        #expect(lines.events == ["end"])
    }

    // MARK: - Lines and cancellation

    enum Ending: CaseIterable, Sendable { case signal, accepted, afterExit, finishedByOthers }

    @Test(
        "No line comes after the grace period of a cancellation, however the program ends",
        arguments: Ending.allCases)
    func linesAfterCancellation(_ ending: Ending) async throws {
        let (began, goOn, lines) = (Gate(), Gate(), EventLog())
        let script =
            switch ending {
            case .signal, .finishedByOthers: "yes"
            case .accepted: "trap 'echo saved; exit 0' TERM; seq 1000; while true; do sleep 0.02; done"
            // In one piece, so that the last line has come when the first one is being taken.
            case .afterExit: #"printf '1\n2\nend'"#
            }
        let operation = shell(script)
        // A program that accepts it has to be over by then, on a busy machine, too.
        let gracePeriod = Duration.milliseconds(ending == .accepted ? 3_000 : 200)
        if ending != .finishedByOthers { operation.terminationGracePeriod = gracePeriod }
        operation.standardOutput = .lines { line in
            lines.add(line)
            began.open()
            goOn.pass()
        }
        queue.addOperation(operation)
        await began.opened()
        if ending == .afterExit { await eventually("it has not exited") { operation.processIdentifier == nil } }
        if ending == .finishedByOthers {
            operation.finish(withError: TestError.first)
        } else {
            operation.cancel()
            try await Task.sleep(for: gracePeriod)
        }
        goOn.open()
        switch ending {
        case .signal: await #expect(throws: CancellationError.self) { try await operation.finished() }
        case .finishedByOthers: await #expect(throws: TestError.self) { try await operation.finished() }
        case .accepted, .afterExit: try await operation.finished()
        }
        await eventually("the program goes on") { operation.processIdentifier == nil }
        #expect(lines.events.count == 1)
    }

    @Test("A program that is asked to end may say how it ends, and succeed")
    func linesInTheGracePeriod() async throws {
        let operation = shell(
            "trap 'echo saved; echo saved >&2; exit 0' TERM; echo begun; while true; do sleep 0.02; done")
        operation.terminationGracePeriod = .seconds(Int64.max)
        let lines = await begin(operation)
        operation.cancel()
        try await operation.finished()
        #expect(lines.events == ["begun", "saved"])
        let errors = operation.output.map { String(decoding: $0.standardError, as: UTF8.self) }
        #expect(errors?.hasSuffix("saved\n") == true)
    }

    // MARK: - The limit of what is captured

    @Test("A program that writes too much when it is asked to end was cancelled nevertheless")
    func tooMuchAtTheEnd() async {
        let operation = shell("trap 'printf two; exit' TERM; echo begun >&2; while :; do sleep 0.01; done")
        operation.standardOutput = .captured(maximumByteCount: 1)
        operation.standardError = .lines { [weak operation] _ in operation?.cancel() }
        await #expect(throws: CancellationError.self) { try await queue.run(operation) }
    }

    @Test("A program is not failed by what one that it has left behind writes after its exit")
    func limitAndLeftBehind() async throws {
        let (began, file) = (Gate(), folder.url.appendingPathComponent("exited").path)
        // The one that is left behind may be so late that the test is over, and the folder gone.
        let operation = shell(
            "(until [ -e '\(file)' -o ! -d '\(folder.path)' ]; do sleep 0.01; done; head -c 2000 /dev/zero) & "
                + "printf own; echo begun >&2")
        operation.standardOutput = .captured(maximumByteCount: 1_000)
        operation.standardError = .lines { _ in began.open() }
        queue.addOperation(operation)
        await began.opened()
        await eventually("it has not exited") { operation.processIdentifier == nil }
        _ = FileManager.default.createFile(atPath: file, contents: nil)
        let output = try await operation.value.standardOutput
        #expect(output.starts(with: Data("own".utf8)) && output.count <= 1_000)
    }

    /// What the program itself has written when it exits, what others write after that, and what is kept.
    @Test(
        "Up to the limit, what others write after the exit is kept, and reading ends when there is more",
        arguments: [(0, 2_000, 1_000), (400, 600, 1_000), (400, 601, 1_000), (1_000, 1, 1_000), (1_000, 0, 1_000)])
    func othersAtTheLimit(own: Int, others: Int, kept: Int) throws {
        var captured = try CapturedPipe(limit: 1_000)
        try captured.write(own)
        captured.pipe.programExited()
        try captured.write(others)
        let isMore = own + others > 1_000
        #expect(captured.read() == !isMore)
        #expect(captured.pipe.descriptor == nil || !isMore)
        #expect(captured.pipe.captured.count == kept)
        #expect(captured.pipe.exceededLimit == nil && !captured.pipe.isBusy)
    }

    @Test("What a program itself has written counts, also if it is read after the exit")
    func ownAtTheLimit() throws {
        for isReadBefore in [false, true] {
            var captured = try CapturedPipe(limit: 1_000)
            try captured.write(700)
            if isReadBefore { #expect(captured.read() == true) }
            try captured.write(301)
            captured.pipe.programExited()
            #expect(captured.pipe.isBusy)
            #expect(captured.read() == true)
            #expect(captured.pipe.exceededLimit == 1_000 && !captured.pipe.isBusy)
        }
    }

    @Test("Nothing may be captured where the limit is zero or less", arguments: [0, -1, Int.min])
    func noRoom(_ limit: Int) throws {
        var captured = try CapturedPipe(limit: limit)
        captured.pipe.programExited()
        try captured.write(1)
        #expect(captured.read() == false)
        #expect(captured.pipe.captured.isEmpty && captured.pipe.exceededLimit == nil)
        captured = try CapturedPipe(limit: limit)
        try captured.write(1)
        #expect(captured.read() == true)
        #expect(captured.pipe.exceededLimit == 0)
    }

    // MARK: - The end of standard error

    /// Characters of one to four bytes, and how many bytes of ASCII come after them. 4,096 bytes are kept.
    @Test("The end of standard error begins with a whole character", arguments: ["a", "é", "€", "👍"], 0..<4)
    func tail(_ character: String, _ rest: Int) async throws {
        let text = String(repeating: character, count: 5_000) + String(repeating: "z", count: rest)
        let operation = shell("cat >&2; exit 1").with(input: Data(text.utf8))
        let error = await #expect(throws: ProcessError.self) { try await queue.run(operation) }
        guard case .failed(_, _, let tail) = error else {
            Issue.record("It has not failed.")
            return
        }
        let isEnd = text.hasSuffix(tail)
        #expect(isEnd)
        #expect((4_093...4_096).contains(tail.utf8.count))
    }

    @Test("Bytes of standard error that are no text are replaced where nothing was cut", arguments: [1, 4_096])
    func garbage(_ count: Int) throws {
        var captured = try CapturedPipe(stream: 1)
        try captured.write(Data(repeating: 0x80, count: count))
        #expect(captured.read() == true)
        #expect(captured.pipe.tail.unicodeScalars.count == count)
    }
}

/// A pipe whose writing end belongs to the test.
private struct CapturedPipe {
    let pipe: OutputPipe
    private let writing: Descriptor
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    init(limit: Int = .max, stream: Int = 0) throws {
        let ends = try Pipe(ourEnd: 0, command: "")
        writing = ends.writing
        pipe = OutputPipe(
            descriptor: ends.reading, stream: stream, .captured(maximumByteCount: limit),
            DispatchQueue(label: "lines"), LineDelivery())
    }

    func write(_ count: Int) throws { try write(Data(repeating: 97, count: count)) }

    func write(_ data: Data) throws {
        try FileHandle(fileDescriptor: writing.number, closeOnDealloc: false).write(contentsOf: data)
    }

    mutating func read() -> Bool { pipe.read(into: &buffer, taken: {}) }
}
