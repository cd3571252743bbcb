import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Stalls: what reports say", .hangGuard) struct StallReportTests {
    private let stalls = StalledOperations()

    /// The report of the first operation that stalls.
    private func report(_ location: SourceLocation = #_sourceLocation) async throws -> StallReport {
        await stalls.clock.pass(.seconds(30))
        return try #require(await stalls.reports(1, location).first, sourceLocation: location)
    }

    @Test("The report of an operation at work is one line, with its name, its type and how long it has executed")
    func leaf() async throws {
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        upload.start()
        let report = try await report()
        #expect(
            StalledOperations.text(report)
                == "OperationKit: “upload” (ScriptedOperation) has not finished 30 s after its start: executing.")
        #expect(report.operation == upload.observationID && report.name == "upload" && report.age == .seconds(30))
        #expect(report.type == ScriptedOperation.self && report.state == "executing" && !report.isCancelled)
        #expect(report.origin == OperationDiagnostics.origin(of: upload) && report.exceededTimeout == nil)
        upload.finish()
    }

    @Test("The report of a child has the lines of the outermost composite, with what waits for the child")
    func tree() async throws {
        let login = ScriptedOperation.idle("login")
        let upload = ScriptedOperation("upload")
        upload.addDependency(login)
        let inner = CompoundOperation(name: "inner", operations: [login, upload])
        let notify = BlockOperation {}
        notify.name = "notify"
        notify.addDependency(inner)
        let compound = stalls.watch(CompoundOperation(name: "Sync", operations: [inner, notify]))
        compound.start()
        await stalls.watched(3)
        #expect(
            StalledOperations.text(try await report()) == """
                OperationKit: “login” (ScriptedOperation) has not finished 30 s after its start: executing.
                  “Sync”: executing, 0 of 2 children have ended
                    “inner”: executing, 0 of 2 children have ended
                      “login”: executing
                      “upload”: waiting for “login”, executing
                    “notify”: waiting for “inner”, executing
                """)
        login.finish()
        try await compound.finished()
    }

    @Test("The report of a composite says why nothing executes in it") func suspended() async throws {
        let compound = CompoundOperation(name: "Sync", operations: [ScriptedOperation("login")])
        stalls.watch(compound)
        compound.isSuspended = true
        compound.start()
        #expect(
            StalledOperations.text(try await report()) == """
                OperationKit: “Sync” (CompoundOperation) has not finished 30 s after its start: executing.
                  “Sync”: executing, 0 of 1 children have ended, suspended
                    “login”: ready, but the children are suspended
                """)
        compound.isSuspended = false
        try await compound.finished()
    }

    @Test("Waiting before the work counts, and the report says for what an operation waits") func waiting() async throws
    {
        let database = ExclusiveAccess("database")
        let holder = ScriptedOperation.idle("import")
        let waiter = stalls.watch(ScriptedOperation("export"))
        for operation in [holder, waiter] { operation.require(database) }
        holder.start()
        waiter.start()
        let report = try await report()
        #expect(report.state == "waiting for exclusive access to “database”, held by “import”")
        #expect(
            StalledOperations.text(report) == """
                OperationKit: “export” (ScriptedOperation) has not finished 30 s after its start: \
                waiting for exclusive access to “database”, held by “import”.
                """)
        holder.finish()
        try await waiter.finished()
    }

    @Test("Work that goes on after its timeout is reported with the timeout") func timeout() async throws {
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        upload.clock = stalls.clock
        upload.timeout = .seconds(5)
        upload.start()
        await stalls.clock.pass(.seconds(5))
        await eventually("the timeout has not expired") { upload.isCancelled }
        await stalls.clock.pass(.seconds(25))
        let report = try #require(await stalls.reports().first)
        #expect(report.isCancelled && report.exceededTimeout == .seconds(5))
        #expect(
            StalledOperations.text(report) == """
                OperationKit: “upload” (ScriptedOperation) has not finished 30 s after its start: \
                cancelled, executing, longer than its timeout of 5.0 seconds.
                """)
        upload.finish()
    }

    @Test("A cancelled operation that does not end is reported as cancelled, and a composite as told to end")
    func cancelled() async throws {
        let child = ScriptedOperation.idle("child")
        let block = ThrowingBlockOperation {}
        block.addDependency(ScriptedOperation("elsewhere"))
        let compound = CompoundOperation(name: "compound", operations: [child, block])
        stalls.watch(compound)
        compound.start()
        await stalls.watched(2)
        compound.finish()
        let report = try await report()
        #expect(report.name == "child" && report.isCancelled && report.exceededTimeout == nil)
        #expect(
            StalledOperations.text(report).hasPrefix(
                """
                OperationKit: “child” (ScriptedOperation) has not finished 30 s after its start: cancelled, executing.
                  “compound”: told to end, waiting for its children, 
                """))
        child.finish()
        try? await compound.finished()
    }

    @Test("An operation whose completion block does not return is reported as delivering its outcome")
    func completionBlock() async throws {
        let (entered, release) = (Gate(), Gate())
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        upload.asyncCompletionBlock = { _ in
            entered.open()
            release.pass()
        }
        upload.start()
        elsewhere { upload.finish() }
        await entered.opened()
        #expect(try await report().state == "delivering its outcome")
        release.open()
        try await upload.finished()
    }

    @Test("An operation that finishes before its report is made is not reported") func finishedMeanwhile() {
        let upload = ScriptedOperation("upload")
        upload.start()
        #expect(StallReport(upload, upload.observationID, age: .seconds(30)) == nil)
    }

    @Test("A handler may block, and do what it likes with operations, and the next report waits for it")
    func handler() async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let (entered, release, log) = (Gate(), Gate(), EventLog())
        let watcher = StallWatcher(threshold: .seconds(30), clock: stalls.clock) { report in
            log.add(report.name)
            if report.name == "first" {
                entered.open()
                release.pass()
                first.finish()
                second.finish()
            }
        }
        for operation in [first, second] {
            operation.addObserver(watcher)
            operation.start()
        }
        // A deadline of another operation that is due at the same time, after those of the reports.
        let other = ScriptedOperation.idle("other")
        other.clock = stalls.clock
        other.timeout = .seconds(30)
        other.start()
        await stalls.clock.pass(.seconds(30))
        await entered.opened()
        await eventually("the handler holds up a timeout") { other.isCancelled }
        release.open()
        try await second.finished()
        #expect(log.events == ["first"])
        other.finish()
    }
}
