import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Stalls: which operations are reported", .hangGuard) struct StallWatcherTests {
    private let stalls = StalledOperations()

    @Test("An operation that executes for longer than the time is reported once") func reportedOnce() async {
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        upload.start()
        await stalls.settle()
        #expect(stalls.names == ["upload"])
        await stalls.settle(after: .seconds(300))
        #expect(stalls.names == ["upload"])
        upload.finish()
        await stalls.settle()
        #expect(stalls.names == ["upload"])
    }

    @Test("An operation that ends in time is not reported, and not watched any more") func endsInTime() async {
        let ended: [@Sendable (ScriptedOperation) -> Void] = [
            { $0.finish() }, { $0.finish(withError: TestError.first) },
            {
                $0.cancel()
                $0.finish()
            },
        ]
        for end in ended {
            let operation = stalls.watch(ScriptedOperation.idle("upload"))
            operation.start()
            await stalls.clock.pass(.seconds(29))
            #expect(stalls.watcher.count == 1)
            end(operation)
            #expect(stalls.watcher.count == 0)
        }
        await stalls.settle()
        #expect(stalls.names.isEmpty)
    }

    @Test("An operation that is cancelled before its start is not watched") func cancelledBeforeTheStart() async {
        let operation = stalls.watch(ScriptedOperation.idle("upload"))
        operation.cancel()
        operation.start()
        #expect(operation.isFinished && stalls.watcher.count == 0 && stalls.clock.deadlines.isEmpty)
    }

    @Test("Operations that start later are reported later, oldest first") func severalOperations() async {
        let operations = ["first", "second", "third"].map { stalls.watch(ScriptedOperation.idle($0)) }
        operations[0].start()
        operations[1].start()
        await stalls.clock.pass(.seconds(10))
        operations[2].start()
        await stalls.clock.pass(.seconds(20))
        #expect(await stalls.reports(2).map(\.name) == ["first", "second"])
        await eventually("\(stalls.clock.deadlines) are slept for") { stalls.clock.deadlines == [.seconds(40)] }
        await stalls.clock.pass(.seconds(10))
        let reports = await stalls.reports(3)
        #expect(reports.map(\.name) == ["first", "second", "third"])
        #expect(reports.map(\.age) == [.seconds(30), .seconds(30), .seconds(30)])
        for operation in operations { operation.finish() }
    }

    // MARK: - Composites

    @Test("A composite that waits for a stalled child is in the report of the child, and has none of its own")
    func child() async throws {
        let login = ScriptedOperation.idle("login")
        let inner = CompoundOperation(name: "inner", operations: [login])
        let outer = stalls.watch(CompoundOperation(name: "outer", operations: [inner]))
        outer.start()
        await stalls.watched(3)
        await stalls.settle()
        await stalls.settle()
        #expect(stalls.names == ["login"])
        login.finish()
        try await outer.finished()
        #expect(stalls.watcher.count == 0)
    }

    @Test("Each of several children that stall is reported") func severalChildren() async throws {
        let children = ["a", "b"].map { ScriptedOperation.idle($0) }
        let compound = stalls.watch(CompoundOperation(name: "compound", operations: children))
        compound.start()
        await stalls.watched(3)
        await stalls.settle()
        #expect(Set(stalls.names) == ["a", "b"] && stalls.names.count == 2)
        for child in children { child.finish() }
        try await compound.finished()
    }

    @Test("A composite whose children come and go is not reported, however long it executes") func progress()
        async throws
    {
        let children = (0..<5).map { ScriptedOperation.idle("child \($0)") }
        let compound = CompoundOperation(name: "compound", operations: children)
        compound.maxConcurrentOperationCount = 1
        stalls.watch(compound)
        compound.start()
        for child in children {
            await eventually("\(child.displayName) has not started") { child.isAtWork }
            await stalls.clock.pass(.seconds(20))
            child.finish()
        }
        try await compound.finished()
        await stalls.settle()
        #expect(stalls.names.isEmpty)
    }

    @Test("A composite in which nothing executes any more is reported, when that has lasted for the time") func idle()
        async
    {
        let first = ScriptedOperation.idle("first")
        let second = ScriptedOperation.idle("second")
        second.addDependency(first)
        let compound = stalls.watch(CompoundOperation(name: "compound", operations: [first, second]))
        compound.start()
        await stalls.watched(2)
        await stalls.clock.pass(.seconds(25))
        compound.isSuspended = true
        first.finish()
        await stalls.watched(1)
        // The compound may have been executing for longer than the time, but something has ended in it.
        await stalls.clock.pass(.seconds(5))
        await eventually("\(stalls.clock.deadlines) are slept for") { stalls.clock.deadlines == [.seconds(55)] }
        #expect(stalls.names.isEmpty)
        await stalls.clock.pass(.seconds(25))
        let reports = await stalls.reports()
        #expect(reports.map(\.name) == ["compound"] && reports[0].age == .seconds(55))
        compound.cancel()
    }

    @Test("A composite whose children are of other classes is reported, unless one of them has ended meanwhile")
    func otherClasses() async throws {
        let gate = Gate()
        let blocks = ["a", "b"].map { name in
            let block = BlockOperation { if name == "b" { gate.pass() } }
            block.name = name
            return block
        }
        let compound = CompoundOperation(name: "compound", operations: blocks)
        compound.maxConcurrentOperationCount = 1
        stalls.watch(compound)
        compound.start()
        await eventually("the second block has not started") { blocks[1].isExecuting }
        await stalls.clock.pass(.seconds(30))
        await eventually("\(stalls.clock.deadlines) are slept for") { stalls.clock.deadlines == [.seconds(60)] }
        #expect(stalls.names.isEmpty)
        await stalls.settle()
        #expect(stalls.names == ["compound"])
        gate.open()
        try await compound.finished()
    }

    // MARK: - Scale, release, end

    @Test("Many operations are watched with one deadline, and nothing of them is left") func manyOperations() async {
        let operations = (0..<TestExtent.choose(2_000, long: 100_000)).map { _ in ScriptedOperation.idle("one") }
        for operation in operations { stalls.watch(operation).start() }
        #expect(stalls.watcher.count == operations.count)
        await stalls.clock.pass(.seconds(29))
        #expect(stalls.clock.deadlines == [.seconds(30)])
        for operation in operations { operation.finish() }
        #expect(stalls.watcher.count == 0)
        await stalls.settle()
        #expect(stalls.names.isEmpty)
    }

    @Test("With a clock whose time stands still, an operation is reported once") func standingClock() async {
        /// A clock that returns from each sleep immediately, and whose time does not change.
        struct StandingClock: Clock {
            var now: ManualClock.Instant { .init(offset: .zero) }
            var minimumResolution: Duration { .zero }
            func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {}
        }
        let (log, reported) = (EventLog(), Gate())
        let watcher = StallWatcher(threshold: .seconds(30), clock: StandingClock()) { report in
            log.add(report.name)
            reported.open()
        }
        let upload = ScriptedOperation.idle("upload")
        upload.addObserver(watcher)
        upload.start()
        await reported.opened()
        upload.finish()
        #expect(log.events == ["upload"])
    }

    @Test("Operations that several threads start and end are watched until their end") func severalThreads() async {
        let (watcher, clock) = (stalls.watcher, stalls.clock)
        let body: @Sendable () -> Void = {
            for _ in 0..<500 {
                let operation = ScriptedOperation("one")
                operation.addObserver(watcher)
                operation.start()
            }
        }
        let time: @Sendable () -> Void = { for _ in 0..<500 { clock.advance(by: .seconds(1)) } }
        await concurrently([body, body, body, time])
        #expect(watcher.count == 0)
        await stalls.settle()
    }

    @Test("An operation that is watched is not kept alive, nor is one that was reported") func notKeptAlive() async {
        let leaks = LeakTracker()
        var reported: ScriptedOperation? = leaks.track(stalls.watch(ScriptedOperation.idle("reported")))
        reported?.start()
        await stalls.settle()
        reported = nil
        stalls.watch(leaks.track(ScriptedOperation.idle("released"))).start()
        await leaks.expectAllReleased()
        await stalls.settle()
        #expect(stalls.names == ["reported"])
    }

    @Test("Once reports have ended, there are none, and nothing is left of operations, handler and clock")
    func stopped() async {
        let leaks = LeakTracker()
        let log = EventLog()
        let operation = ScriptedOperation.idle("upload")
        do {
            let clock = leaks.track(ManualClock())
            let token = leaks.token("handler")
            let watcher = leaks.track(
                StallWatcher(threshold: .seconds(30), clock: clock) { report in
                    token.use()
                    log.add(report.name)
                })
            operation.addObserver(watcher)
            operation.start()
            await clock.sleepers()
            watcher.stop()
            await clock.expectNoSleepers()
            clock.advance(by: .seconds(60))
            // It is still told of operations, as it is not an observer of all of them.
            let later = ScriptedOperation.idle("later")
            later.addObserver(watcher)
            later.start()
            #expect(watcher.count == 0 && clock.deadlines.isEmpty)
            later.finish()
            operation.removeObserver(watcher)
        }
        await leaks.expectAllReleased()
        #expect(log.events.isEmpty)
        operation.finish()
    }
}
