import OperationKitTestSupport

@testable import OperationDemo

/// The demo on a terminal.
@Suite(.hangGuard) struct TerminalTests {
    /// Starts the demo. In a session of its own, it gets signals from the keys of the terminal; a shell leads the session,
    /// says how the demo ended, and keeps the terminal as it is until a line is typed.
    ///
    /// - Returns: What suspends until the end, and returns the status.
    private static func start(
        _ arguments: [String], on terminal: PseudoTerminal, inSession: Bool = false
    ) throws -> () async -> Int32 {
        let (process, ended) = (Process(), Gate())
        let demo = try BuildProducts.executable("OperationDemo")
        process.executableURL = inSession ? URL(fileURLWithPath: "/usr/bin/setsid") : demo
        let script = #"trap : INT; "$0" "$@"; echo "ended with $?"; read line"#
        process.arguments = (inSession ? ["--ctty", "--wait", "/bin/sh", "-c", script, demo.path] : []) + arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { $0.key != "NO_COLOR" }
            .merging(["TERM": "xterm"]) { $1 }
        process.standardInput = terminal.device
        process.standardOutput = terminal.device
        process.standardError = terminal.device
        // `waitUntilExit()` takes all of a processor on Linux while it waits.
        process.terminationHandler = { _ in ended.open() }
        try process.run()
        try terminal.hasProgram()
        return {
            await ended.opened()
            return process.terminationStatus
        }
    }

    @Test("Keys add operations, steer the queue and quit, and the terminal is left as it was found")
    func keys() async throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        // Slow enough for a naive operation to complete before its work ends, on a busy machine too.
        let status = try Self.start(["--interactive", "--no-color", "--speed", "5"], on: terminal)
        #expect(await terminal.hasWritten("serial, running, 0 working, 0 waiting, 0 finished"))
        #expect(terminal.settings != before)
        let keys = [
            // The work of a naive operation is a row of its own.
            (" an", "serial, stopped, 0 working, 3 waiting, 0 finished"),
            ("m", "concurrent (4), stopped, 0 working, 3 waiting, 0 finished"),
            (" ", "0 working, 0 waiting, 3 finished"), ("c", "0 working, 0 waiting, 7 finished"), ("f", "! failed"),
            ("", "0 working, 0 waiting, 8 finished"), ("?", "l  forget those that have finished"),
            ("l", "Nothing is going on"),
        ]
        for (key, text) in keys {
            try terminal.type(key)
            #expect(await terminal.hasWritten(text))
        }
        try terminal.type("q")
        #expect(await status() == 0)
        #expect(terminal.settings == before)
        #expect(!(await terminal.output()).contains(/\u{1B}\[[0-9;]*m/), "--no-color means no colors")
    }

    @Test("Keys choose and cancel one operation, or all of them") func cancellation() async throws {
        let terminal = try PseudoTerminal()
        let status = try Self.start(["--interactive", "--no-color", "--speed", "0.01"], on: terminal)
        try terminal.type("aas")
        // What works would end by itself at some time, after half a minute at this speed.
        let keys = [
            ("1 working, 2 waiting, 0 finished", "x"), ("waiting, 1 finished", "j"), ("▸ sync-1", "x"),
            ("“sync-1” was cancelled.", "X"), ("0 working, 0 waiting, 3 finished", "q"),
        ]
        for (text, key) in keys {
            #expect(await terminal.hasWritten(text))
            try terminal.type(key)
        }
        #expect(await terminal.hasWritten("All were cancelled."))
        #expect(await status() == 0)
        let output = await terminal.output()
        #expect(output.contains("“async-1” was cancelled."))
        #expect(output.contains("× cancelled"))
    }

    @Test("On a terminal a scenario is drawn while it runs, and its end is that of a pipe") func live() async throws {
        let terminal = try PseudoTerminal()
        let status = try Self.start(["async", "--no-color", "--speed", "2"], on: terminal)
        #expect(await terminal.hasWritten("▶ unfinished"))
        #expect(await status() == 0)
        let output = await terminal.output()
        let end = try #require(output.range(of: "\u{1B}[J", options: .backwards))
        let lines = output[end.upperBound...].split(whereSeparator: \.isNewline).map(String.init)
        #expect(lines.first == "async, serial queue: one operation at a time")
        // What is said of the times at the end depends on them.
        #expect(lines.contains { $0.hasPrefix("async, concurrent queue") })
        #expect(!lines.contains { $0.contains("▶") })
    }

    #if os(Linux)
    @Test("The key Control-C cancels, waits, and leaves the terminal as it was found")
    func interruptionKey() async throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        let arguments = ["--interactive", "--no-color", "--speed", "0.01"]
        let status = try Self.start(arguments, on: terminal, inSession: true)
        #expect(await terminal.hasWritten("serial, running, 0 working, 0 waiting"))
        #expect(terminal.settings != before)
        try terminal.type("cs")
        #expect(await terminal.hasWritten("2 working, 3 waiting"))
        try terminal.type("\u{03}")
        #expect(await terminal.hasWritten("ended with 130"))
        #expect(terminal.settings == before)
        try terminal.type("\n")
        #expect(await status() == 0)
        #expect((await terminal.output()).contains("0 working, 0 waiting, 5 finished"))
    }
    #endif
}
