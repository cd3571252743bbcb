#if os(macOS) || os(Linux)
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Reports of all operations, which those of other tests are not to be among. So each of these has a process of its own.
@Suite("Stalls: reports of all operations", .hangGuard) struct StallProcessTests {
    @Test("Without a handler, reports are printed to standard error, also where nothing is recorded") func printed()
        async throws
    {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "off", 1)
            let (clock, second) = (ManualClock(), Gate())
            let printing = OperationDiagnostics.reportStalls(longerThan: .seconds(31), clock: clock)
            let other = OperationDiagnostics.reportStalls(longerThan: .seconds(31), clock: clock) { _ in second.open() }
            let login = ScriptedOperation.idle("login")
            let compound = CompoundOperation(name: "Sync", operations: [login])
            compound.start()
            await eventually("nothing is watched") { printing.watchedCount == 2 }
            await clock.pass(.seconds(31))
            // The deadlines of both are the same, and those are served in their order.
            await second.opened()
            printing.waitForReports()
            printing.stop()
            other.stop()
            login.finish()
            try await compound.finished()
        }
        #expect(
            String(decoding: result.standardErrorContent, as: UTF8.self) == """
                OperationKit: “login” (ScriptedOperation) has not finished 31 s after its start: executing.
                  “Sync”: executing, 0 of 1 children have ended
                    “login”: executing

                """)
    }

    @Test("At the level `all`, a report has where the operation was started, and the call stack") func levelAll() async
    {
        await #expect(processExitsWith: .success) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "all", 1)
            let (clock, reports) = (ManualClock(), Shared<[StallReport]>([]))
            let stalls = OperationDiagnostics.reportStalls(longerThan: .seconds(30), clock: clock) { report in
                reports.change { $0.append(report) }
            }
            let (queue, upload) = (OperationQueue(), ScriptedOperation.idle("upload"))
            queue.name = "uploads"
            queue.addOperation(upload)
            await clock.pass(.seconds(30))
            await eventually("nothing was reported") { !reports.value.isEmpty }
            let report = reports.value[0]
            precondition(report.origin == "the queue “uploads”" && report.callStack.count > 1)
            precondition(report.description.contains(" It was started on the queue “uploads”.\n    "))
            stalls.stop()
            upload.finish()
            try await upload.finished()
        }
    }

    @Test("Reports end when a handler says so, and start again with another call") func stoppedByHandler() async {
        await #expect(processExitsWith: .success) {
            let (clock, log) = (ManualClock(), EventLog())
            let monitor = Shared<StallMonitor?>(nil)
            let begun = OperationDiagnostics.reportStalls(longerThan: .seconds(30), clock: clock) { report in
                log.add("first \(report.name)")
                monitor.value?.stop()
            }
            monitor.value = begun
            let operations = (0..<3).map { ScriptedOperation.idle("\($0)") }
            for operation in operations { operation.start() }
            await clock.pass(.seconds(30))
            await eventually("nothing was reported") { !log.events.isEmpty }
            await clock.expectNoSleepers()
            begun.stop()
            precondition(begun.watchedCount == 0)
            let later = ScriptedOperation.idle("later")
            let second = OperationDiagnostics.reportStalls(longerThan: .seconds(30), clock: clock) { report in
                log.add("second \(report.name)")
            }
            later.start()
            await clock.pass(.seconds(30))
            await eventually("\(log.events)") { log.events.count == 2 }
            precondition(log.events == ["first 0", "second later"])
            second.stop()
            for operation in operations + [later] { operation.finish() }
        }
    }

    @Test("With the clock of the system, an operation is reported when the time has passed") func systemClock() async {
        await #expect(processExitsWith: .success) {
            let (reported, upload) = (Gate(), ScriptedOperation.idle("upload"))
            let stalls = OperationDiagnostics.reportStalls(longerThan: .milliseconds(20)) { report in
                precondition(report.name == "upload" && report.age >= .milliseconds(20))
                reported.open()
            }
            upload.start()
            await reported.opened()
            stalls.stop()
            upload.finish()
        }
    }

    @Test("A time of zero or less, in which nothing can stall, traps") func noTime() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            OperationDiagnostics.reportStalls(longerThan: .zero)
        }
        #expect(
            String(decoding: result.standardErrorContent, as: UTF8.self)
                .contains("OperationKit: operations can only stall after a time that is more than zero"))
        await #expect(processExitsWith: .failure) { OperationDiagnostics.reportStalls(longerThan: .seconds(-1)) }
    }

    @Test("A time beyond all measure overflows nothing") func hugeTime() async {
        await #expect(processExitsWith: .success) {
            let clock = ManualClock()
            // The sum of both would overflow.
            let (longest, passed) = (Duration.seconds(1.7e20), Duration.seconds(1e18))
            let stalls = OperationDiagnostics.reportStalls(longerThan: longest, clock: clock) { _ in }
            clock.advance(by: passed)
            let upload = ScriptedOperation.idle("upload")
            upload.start()
            await clock.sleepers()
            precondition(clock.deadlines == [passed + .century])
            upload.finish()
            stalls.stop()
        }
    }
}
#endif
