import OperationKitTestSupport

@testable import OperationDemo

/// The demo on a terminal.
@Suite(.hangGuard) struct TerminalTests {
    /// Starts the demo. In a session of its own, it gets signals from the keys of the terminal; a shell leads the session,
    /// says how the demo ended, and keeps the terminal as it is until a line is typed.
    private static func start(
        _ arguments: [String], on terminal: PseudoTerminal, inSession: Bool = false
    ) throws -> Demo {
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
        return Demo(process: process, ended: ended)
    }

    private struct Demo {
        let process: Process
        let ended: Gate

        func status() async -> Int32 {
            await ended.opened()
            return process.terminationStatus
        }
    }

    private static func hasColors(_ output: String) -> Bool {
        output.contains(/\u{1B}\[[0-9;]*m/)
    }

    @Test("Keys add operations, steer the queue and quit, and the terminal is left as it was found")
    func keys() async throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        // Slow enough for a naive operation to complete before its work ends, on a busy machine too.
        let demo = try Self.start(["--interactive", "--no-color", "--speed", "5"], on: terminal)
        #expect(await terminal.hasWritten("serial, running, 0 working, 0 waiting, 0 finished"))
        #expect(terminal.settings != before)

        // The work of a naive operation is a row of its own.
        try terminal.type(" an")
        #expect(await terminal.hasWritten("serial, stopped, 0 working, 3 waiting, 0 finished"))
        try terminal.type("m")
        #expect(await terminal.hasWritten("concurrent (4), stopped, 0 working, 3 waiting, 0 finished"))
        try terminal.type(" ")
        #expect(await terminal.hasWritten("0 working, 0 waiting, 3 finished"))
        try terminal.type("c")
        #expect(await terminal.hasWritten("0 working, 0 waiting, 7 finished"))
        try terminal.type("f")
        #expect(await terminal.hasWritten("! failed"))
        #expect(await terminal.hasWritten("0 working, 0 waiting, 8 finished"))
        try terminal.type("?")
        #expect(await terminal.hasWritten("l  forget those that have finished"))
        try terminal.type("l")
        #expect(await terminal.hasWritten("Nothing is going on"))
        try terminal.type("q")
        #expect(await demo.status() == 0)
        #expect(terminal.settings == before)
        #expect(!Self.hasColors(await terminal.output()), "--no-color means no colors")
    }

    @Test("Keys choose and cancel one operation, or all of them") func cancellation() async throws {
        let terminal = try PseudoTerminal()
        let demo = try Self.start(["--interactive", "--no-color", "--speed", "0.01"], on: terminal)
        // On the thread that reads: what works would end by itself at some time.
        terminal.when("1 working, 2 waiting, 0 finished") { _ in try? terminal.type("x") }
        // As long as it has not ended, the next one is another one.
        terminal.when("waiting, 1 finished") { _ in try? terminal.type("j") }
        terminal.when("▸ sync-1") { _ in try? terminal.type("x") }
        terminal.when("“sync-1” was cancelled.") { _ in try? terminal.type("X") }
        terminal.when("0 working, 0 waiting, 3 finished") { _ in try? terminal.type("q") }
        try terminal.type("aas")
        #expect(await terminal.hasWritten("All were cancelled."))
        #expect(await demo.status() == 0)
        let output = await terminal.output()
        #expect(output.contains("“async-1” was cancelled."))
        #expect(output.contains("× cancelled"))
    }

    @Test("On a terminal a scenario is drawn while it runs, and its end is that of a pipe") func live() async throws {
        let terminal = try PseudoTerminal()
        let demo = try Self.start(["async", "--no-color", "--speed", "2"], on: terminal)
        #expect(await terminal.hasWritten("▶ unfinished"))
        #expect(await demo.status() == 0)
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
        let demo = try Self.start(arguments, on: terminal, inSession: true)
        terminal.when("2 working, 3 waiting") { if $0 { try? terminal.type("\u{03}") } }
        #expect(await terminal.hasWritten("serial, running, 0 working, 0 waiting"))
        #expect(terminal.settings != before)
        try terminal.type("cs")
        #expect(await terminal.hasWritten("ended with 130"))
        #expect(terminal.settings == before)
        try terminal.type("\n")
        #expect(await demo.status() == 0)
        #expect((await terminal.output()).contains("0 working, 0 waiting, 5 finished"))
    }
    #endif
}
