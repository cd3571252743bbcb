import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Reports of stalls", .hangGuard) struct StallTests {
    private let stalls = StalledOperations()

    @Test("An operation that executes for longer than the time is reported once, with its name and its type")
    func reportedOnce() async throws {
        let upload = stalls.start(ScriptedOperation.idle("upload"))
        let report = try #require(await stalls.report())
        let origin = report.origin.map { " It was started on \($0)." } ?? ""
        let sentence = "OperationKit: “upload” (ScriptedOperation) has not finished 30 s after its start: executing."
        #expect(report.description.split(separator: "\n").first == "\(sentence)\(origin)")
        #expect(report.operation == upload.observationID && report.age == .seconds(30) && !report.isCancelled)
        await stalls.settle()
        #expect(stalls.names == ["upload"])
        upload.finish()
        #expect(stalls.watcher.count == 0)
        var described: Set<OperationID> = []
        #expect(StallReport(upload, upload.observationID, age: .zero, described: &described) == nil, "It has finished")
    }

    @Test("A report has the type of an operation only beside its name, and the reason of a cancellation")
    func sentence() throws {
        let upload = ScriptedOperation.idle()
        upload.start()
        upload.cancel(withError: TestError.first)
        var described: Set<OperationID> = []
        let report = try #require(
            StallReport(upload, upload.observationID, age: .seconds(30), described: &described))
        #expect(
            StalledOperations.text(report)
                == "OperationKit: “ScriptedOperation” has not finished 30 s after its start: cancelled (“first”), executing."
        )
        upload.finish()
    }

    @Test("An operation that ends in time is not reported, and not watched any more") func endsInTime() async {
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        let cancelled = stalls.watch(ScriptedOperation.idle("cancelled before the start"))
        cancelled.cancel()
        cancelled.start()
        upload.start()
        await stalls.clock.sleepers()
        stalls.clock.advance(by: .seconds(29))
        #expect(stalls.watcher.count == 1)
        upload.finish()
        #expect(stalls.watcher.count == 0)
        await stalls.settle()
        #expect(stalls.names.isEmpty)
    }

    @Test("Operations that start all the time put off no report, and no look follows the end of all others")
    func looks() async {
        let upload = stalls.start(ScriptedOperation.idle("upload"))
        await eventually("it is not reported") {
            stalls.watch(ScriptedOperation("one")).start()
            stalls.clock.advance(by: StalledOperations.interval / 2)
            return stalls.names == ["upload"]
        }
        await stalls.pass { stalls.watcher.state.withLock { !$0.isAlarmSet } }
        upload.finish()
    }

    @Test("The report of a composite without children says what it waits for") func betweenAttempts() async throws {
        let policy = RetryPolicy(maximumAttempts: 2, backoff: .constant(.seconds(300)), jitter: .none)
        let load = stalls.start(
            RetryOperation(policy, name: "load") { _ in ThrowingBlockOperation { throw TestError.first } })
        await eventually("it does not wait") { load.debugDescription.contains("begins in") }
        let report = try #require(await stalls.report())
        #expect(report.description.contains("attempt 2 of 2 begins in"))
        load.cancel()
        try? await load.finished()
    }

    @Test(
        "A child that stalls is reported, and not the composites that wait for it, which are in its report",
        arguments: [false, true])
    func tree(isStartedBefore: Bool) async throws {
        let login = ScriptedOperation.idle("login")
        if isStartedBefore { stalls.watch(login).start() }
        let upload = ScriptedOperation("upload")
        upload.addDependency(login)
        let inner = CompoundOperation(name: "inner", operations: [login, upload])
        let compound = stalls.start(CompoundOperation(name: "Sync", operations: [inner]))
        await stalls.watched(3)
        let report = try #require(await stalls.report())
        #expect(
            StalledOperations.text(report) == """
                OperationKit: “login” (ScriptedOperation) has not finished 30 s after its start: executing.
                  “Sync”: executing, 0 of 1 children have ended
                    “inner”: executing, 0 of 2 children have ended
                      “login”: executing
                      “upload”: waiting for “login”, which is executing
                """)
        await stalls.settle()
        #expect(stalls.names == ["login"])
        login.finish()
        try await compound.finished()
        await stalls.watched(0)
    }

    @Test("Of children that stall together the first has the tree of their composite in its report")
    func together() async throws {
        let children = (0..<2).map { _ in ScriptedOperation.idle("a\nb\u{1b}") }
        let compound = stalls.start(CompoundOperation(name: "Sync", operations: children))
        await stalls.watched(3)
        await stalls.pass { stalls.names.count == 2 }
        let texts = stalls.reports.value.map(StalledOperations.text)
        #expect(texts[0].split(separator: "\n").count == 4)
        #expect(texts[0].hasPrefix(#"OperationKit: “a\nb\u{1B}” (ScriptedOperation) has not finished"#))
        #expect(texts[1].hasSuffix(": executing.\n  “Sync”: see an earlier report"))
        for child in children { child.finish() }
        try await compound.finished()
    }

    @Test("A composite whose children come and go is not reported, however long it executes") func progress()
        async throws
    {
        let children = (0..<4).map { ScriptedOperation.idle("child \($0)") }
        let compound = stalls.start(CompoundOperation(operations: children, maxConcurrentOperationCount: 1))
        for child in children {
            await eventually("\(child.displayName) has not started") { child.isAtWork }
            await stalls.clock.sleepers()
            stalls.clock.advance(by: .seconds(20))
            child.finish()
        }
        try await compound.finished()
        #expect(stalls.names.isEmpty)
    }

    @Test("A workflow that runs operations of other classes is not reported, however long it executes") func foreign()
        async throws
    {
        let blocks = (0..<4).map { _ in (hasBegun: Gate(), mayEnd: Gate()) }
        let workflow = stalls.start(
            WorkflowOperation { flow in
                for (hasBegun, mayEnd) in blocks {
                    try await flow.run(
                        BlockOperation {
                            hasBegun.open()
                            mayEnd.pass(within: .seconds(60))
                        })
                }
            })
        for (hasBegun, mayEnd) in blocks {
            await hasBegun.opened()
            await stalls.clock.sleepers()
            stalls.clock.advance(by: .seconds(20))
            mayEnd.open()
        }
        try await workflow.finished()
        #expect(stalls.names.isEmpty)
    }

    @Test("A composite in which nothing executes any more is reported, with the reason") func idle() async throws {
        let first = ScriptedOperation.idle("first")
        let second = ScriptedOperation("second")
        second.addDependency(first)
        let compound = stalls.start(CompoundOperation(name: "Sync", operations: [first, second]))
        await stalls.watched(2)
        for _ in 0..<13 { await stalls.clock.pass(StalledOperations.interval) }
        // The last look is over, and the next one finds the end.
        await stalls.clock.sleepers()
        compound.isSuspended = true
        first.finish()
        await stalls.watched(1)
        await eventually("the first child has not ended") { compound.finishedOperationCount == 1 }
        let report = try #require(await stalls.report())
        #expect(report.name == "Sync" && report.age == StalledOperations.interval * (13 + 16))
        #expect(
            StalledOperations.text(report).contains(
                """
                  “Sync”: executing, 1 of 2 children have ended, suspended
                    “second”: ready, but the children are suspended
                """))
        compound.isSuspended = false
        try await compound.finished()
    }

    @Test(
        "A composite in which nothing executes is reported when that has been so for the time, also of children that are not watched",
        arguments: [false, true])
    func idleFromTheStart(isForeign: Bool) async throws {
        let (gate, last) = (BlockOperation(), ScriptedOperation("last"))
        let first = isForeign ? BlockOperation {} : ScriptedOperation("first")
        last.addDependency(first)
        last.addDependency(gate)
        let compound = stalls.watch(CompoundOperation(name: "Sync", operations: [last]))
        try compound.addOperation(first, progressWeight: 0)
        compound.start()
        await eventually("the first child has not ended") { compound.finishedOperationCount == 1 }
        await stalls.watched(1)
        // In the steps of the looks. What is not watched is seen to have ended in the first one.
        for _ in 0..<(isForeign ? 17 : 16) {
            #expect(stalls.names.isEmpty)
            await stalls.clock.pass(StalledOperations.interval)
        }
        await eventually("it is not reported") { stalls.names == ["Sync"] }
        gate.start()
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
        let state = try #require(await stalls.report()).state
        #expect(state == "waiting for exclusive access to “database”, held by “import”")
        holder.finish()
        try await waiter.finished()
    }

    @Test("Work that goes on after a timeout is reported with the timeout", arguments: [false, true])
    func timeout(isOfCompound: Bool) async throws {
        let upload = stalls.watch(ScriptedOperation.idle("upload"))
        let limited = isOfCompound ? CompoundOperation(operations: [upload]) : upload
        limited.clock = stalls.clock
        limited.timeout = .seconds(5)
        limited.start()
        await eventually("upload has not started") { upload.isAtWork }
        stalls.clock.advance(by: .seconds(5))
        await eventually("it takes as long as it likes") { upload.isCancelled }
        #expect(stalls.names.isEmpty)
        let report = try #require(await stalls.report())
        #expect(report.isCancelled && report.exceededTimeout == .seconds(5))
        #expect(
            StalledOperations.text(report).contains("cancelled, executing, longer than the timeout of 5.0 seconds."))
        upload.finish()
    }

    @Test("A handler may block, and do what it likes with operations, and the next report waits for it")
    func handler() async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let (entered, release, log) = (Gate(), Gate(), EventLog())
        let watcher = StallWatcher(threshold: .seconds(30), clock: stalls.clock) { report in
            log.add(report.name)
            entered.open()
            release.pass()
            first.finish()
            second.finish()
        }
        for operation in [first, second] {
            operation.addObserver(watcher)
            operation.start()
        }
        await stalls.pass { !log.events.isEmpty }
        await entered.opened()
        release.open()
        try await second.finished()
        watcher.waitForReports()
        #expect(log.events == ["first"])
    }

    @Test("With a clock whose time stands still, an operation is reported once") func standingClock() async {
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

    @Test("Many operations that several threads start and end are watched until their end, with one alarm")
    func manyOperations() async {
        let (watcher, clock) = (stalls.watcher, stalls.clock)
        let body: @Sendable () -> Void = {
            for _ in 0..<2_000 {
                let operation = ScriptedOperation("one")
                operation.addObserver(watcher)
                operation.start()
            }
        }
        await concurrently([body, body, body, { for _ in 0..<500 { clock.advance(by: .seconds(1)) } }])
        #expect(watcher.count == 0)
        await eventually("\(clock.deadlines)") { clock.deadlines.count <= 1 }
    }

    @Test("What is watched is not kept alive, and nothing is left of it once reports have ended") func released() async
    {
        let (operations, leaks) = (LeakTracker(), LeakTracker())
        do {
            let token = leaks.token("handler")
            let watcher = leaks.track(
                StallWatcher(threshold: .seconds(30), clock: stalls.clock) { _ in token.use() })
            let stopped = ScriptedOperation.idle("stopped")
            for operation in [operations.track(ScriptedOperation.idle("released")), stopped] {
                operation.addObserver(watcher)
                operation.start()
            }
            await operations.expectAllReleased()
            await stalls.pass { watcher.count == 1 }
            let last = ScriptedOperation.idle("last")
            last.addObserver(watcher)
            last.start()
            await eventually("no alarm is set") { !stalls.clock.deadlines.isEmpty }
            watcher.stop()
            let late = ScriptedOperation.idle("late")
            late.addObserver(watcher)
            late.start()
            #expect(watcher.count == 0)
            await eventually("\(stalls.clock.deadlines)") { stalls.clock.deadlines.isEmpty }
            withExtendedLifetime(watcher) {}
            for operation in [stopped, last, late] { operation.finish() }
            stalls.clock.advance(by: .seconds(60))
        }
        await leaks.expectAllReleased()
    }

    @Test("Operations of the whole process are watched, on the clock of the system, until that is ended")
    func wholeProcess() async {
        let (reported, leaks) = (Gate(), LeakTracker())
        let upload = ScriptedOperation.idle("an upload of its own")
        let monitor = OperationDiagnostics.reportStalls(longerThan: .milliseconds(1)) { report in
            if report.name == "an upload of its own" { reported.open() }
        }
        let others = OperationDiagnostics.reportStalls(longerThan: .seconds(Int64.max)) {
            [token = leaks.token("handler")] report in
            token.use()
            Issue.record("\(report)")
        }
        upload.start()
        await reported.opened()
        for monitor in [monitor, monitor, others] { monitor.stop() }
        upload.finish()
        await leaks.expectAllReleased()
    }

    @Test("A time of zero, in which everything would stall, traps") func zeroThreshold() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            OperationDiagnostics.reportStalls(longerThan: .zero)
        }
        #if DEBUG
        let printed = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(printed.contains("not 0.0 seconds"))
        #endif
    }
}
