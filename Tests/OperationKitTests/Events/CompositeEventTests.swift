import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Events of compounds and of what is inside them.
@Suite("Events of compounds", .hangGuard) struct CompositeEventTests {
    private let recorder = EventRecorder()

    /// A compound that runs one child at a time, and is observed after the addition of its first children.
    private func sync(_ operations: [Operation] = [], policy: FailurePolicy = .continueAll) -> CompoundOperation {
        recorder.observe(
            CompoundOperation(
                name: "sync", operations: operations, maxConcurrentOperationCount: 1, failurePolicy: policy))
    }

    /// The events of a life that runs.
    private func life(_ name: String, _ end: String = "finished") -> [String] {
        ["started", "running", end].map { "\(name): \($0)" }
    }

    @discardableResult
    private func ended(_ name: String = "sync") async -> [String] {
        await recorder.end(of: name)
    }

    private let head = ["sync: started", "sync: running"]

    // MARK: - Children

    @Test(
        "The children of a serial compound have their events one after the other, between those of the compound",
        arguments: Start.allCases)
    func serial(start: Start) async {
        let compound = sync(["a", "b", "c"].map { ScriptedOperation($0) })
        await start(compound)
        #expect(await ended() == head + life("a") + life("b") + life("c") + ["sync: finished"])
    }

    @Test("Children that end on other threads have the same events") func endingElsewhere() async {
        let children = ["a", "b", "c"].map { ScriptedOperation($0) { operation in elsewhere { operation.finish() } } }
        sync(children).start()
        #expect(await ended() == head + life("a") + life("b") + life("c") + ["sync: finished"])
    }

    @Test("Children of Foundation's classes, and others that are no `AsyncOperation`, have no events") func foreign()
        async
    {
        let foreign = ForeignOperation { $0.finish() }
        foreign.name = "foreign"
        sync([BlockOperation {}, foreign, ScriptedOperation("a")]).start()
        #expect(await ended() == head + life("a") + ["sync: finished"])
        #expect(recorder.names == ["a", "sync"])
    }

    @Test("Dependencies between children are not events, and order those of the children") func dependencies() async {
        let (a, b) = (ScriptedOperation("a"), ScriptedOperation("b"))
        a.addDependency(b)
        sync([a, b]).start()
        #expect(await ended() == head + life("b") + life("a") + ["sync: finished"])
    }

    @Test("A compound without children starts, runs and finishes") func empty() async {
        sync().start()
        #expect(await ended() == life("sync"))
    }

    @Test("A suspended compound runs, and its children start when it is resumed") func suspended() async {
        let compound = sync([ScriptedOperation("a")])
        compound.isSuspended = true
        compound.start()
        #expect(recorder.events == head)
        compound.isSuspended = false
        #expect(await ended() == head + life("a") + ["sync: finished"])
    }

    @Test("The end of a compound comes after those of all children, on whatever threads these end") func manyChildren()
        async
    {
        let names = (0..<100).map { "child \($0)" }
        let compound = CompoundOperation(
            name: "sync",
            operations: names.map { ScriptedOperation($0) { operation in elsewhere { operation.finish() } } })
        recorder.observe(compound).start()
        let events = await ended()
        for name in names { #expect(recorder.events(of: name) == ["started", "running", "finished"]) }
        #expect(Array(events.prefix(2)) == head && events.last == "sync: finished" && events.count == 303)
    }

    // MARK: - Additions

    @Test("An observer sees additions that come after its own, before the start and while the compound runs")
    func additions() async throws {
        let recorder = recorder
        let seen = Shared<[String]>([])
        let compound = sync([ScriptedOperation("a")])
        let adding = ScriptedOperation("b") { [weak compound] operation in
            expectNoError { try compound?.addOperation(ScriptedOperation("c")) }
            seen.value = recorder.events
            operation.finish()
        }
        try compound.addOperation(adding)
        let before = ["b: added to sync"] + head + life("a") + ["b: started", "b: running", "c: added to sync"]
        compound.start()
        #expect(await ended() == before + ["b: finished"] + life("c") + ["sync: finished"])
        #expect(seen.value == before)
    }

    @Test("An addition by another thread is an event before the child starts") func addedFromOutside() async throws {
        let (begun, gate) = (Gate(), Gate())
        let compound = sync([
            ScriptedOperation("a") { operation in
                begun.open()
                gate.pass()
                operation.finish()
            }
        ])
        compound.start()
        await begun.opened()
        try compound.addOperations([ScriptedOperation("b"), ScriptedOperation("c")])
        gate.open()
        let added = ["b: added to sync", "c: added to sync", "a: finished"]
        #expect(
            await ended() == head + ["a: started", "a: running"] + added + life("b") + life("c") + ["sync: finished"])
    }

    @Test("A child with an observer of its own tells that of its addition, also at the creation of the compound")
    func ownObserver() async {
        let own = EventRecorder()
        let compound = sync([own.observe(ScriptedOperation("a"))])
        #expect(own.events == ["a: added to sync"] && recorder.events.isEmpty)
        compound.start()
        #expect(await ended() == head + life("a") + ["sync: finished"])
        #expect(own.events == ["a: added to sync"] + life("a"))
    }

    @Test("An addition that is rejected is no event, nor is what was to be added with it") func rejected() async throws
    {
        let child = recorder.observe(ScriptedOperation("a"))
        let compound = sync([child])
        let other = recorder.observe(ScriptedOperation("b"))
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(child) }
        #expect(throws: CompoundAdditionError.self) { try compound.addOperations([other, child]) }
        #expect(throws: CompoundAdditionError.self) { try CompoundOperation(name: "other").addOperation(child) }
        compound.start()
        await ended()
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(other) }
        #expect(recorder.events == ["a: added to sync"] + head + life("a") + ["sync: finished"])
    }

    @Test("A dependency that closes a cycle is no addition") func rejectedCycle() throws {
        let compound = sync([ScriptedOperation("a")])
        let (b, c) = (ScriptedOperation("b"), ScriptedOperation("c"))
        b.addDependency(c)
        c.addDependency(b)
        #expect(throws: CompoundOperationError.self) { try compound.addOperations([b, c]) }
        #expect(recorder.events.isEmpty)
        b.removeDependency(c)
    }

    @Test(
        "The children of a compound that must not run are cancelled and finish, and it finishes after them without running"
    )
    func notToRun() async throws {
        final class Refusing: CompoundOperation, @unchecked Sendable {
            override func prepare() throws { throw TestError.second }
        }
        let compound = recorder.observe(Refusing(name: "sync", operations: [ScriptedOperation("a")]))
        compound.start()
        let events = await ended()
        #expect(recorder.events(of: "a") == ["cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "sync") == ["started", "running", "finished: second"])
        #expect(events.last == "sync: finished: second")
    }

    // MARK: - Nesting

    @Test("An observer sees what is inside of what is inside, and one of an inner compound sees only that")
    func nested() async throws {
        let (inside, both) = (EventRecorder(), EventRecorder())
        let inner = inside.observe(
            CompoundOperation(name: "inner", operations: [both.observe(ScriptedOperation("a"))]))
        let compound = both.observe(sync([both.observe(inner), ScriptedOperation("b")]))
        let before = both.events
        compound.start()
        let nested = ["inner: started", "inner: running"] + life("a") + ["inner: finished"]
        #expect(await ended() == head + nested + life("b") + ["sync: finished"])
        #expect(inside.events == ["inner: added to sync"] + nested)
        #expect(before == ["a: added to inner", "inner: added to sync"])
        #expect(await both.end(of: "sync") == before + recorder.events)
    }

    @Test("What is added to a compound before that is added to another one is observed from then on")
    func addedWithContents() async throws {
        let compound = sync()
        let inner = CompoundOperation(name: "inner", operations: [ScriptedOperation("a")])
        let deep = CompoundOperation(name: "deep")
        try inner.addOperation(deep)
        #expect(recorder.events.isEmpty)
        try compound.addOperation(inner)
        try deep.addOperation(ScriptedOperation("b"))
        #expect(recorder.events == ["inner: added to sync", "b: added to deep"])
        compound.start()
        await ended()
        for name in ["a", "deep"] { #expect(recorder.events(of: name) == ["started", "running", "finished"]) }
        recorder.expectEndsBeforeParents(["a": "inner", "b": "deep", "deep": "inner", "inner": "sync"])
    }

    // MARK: - Failure and cancellation

    @Test("A failure of a child does not keep the others from running, and is in the end of the compound")
    func failure() async {
        sync([ScriptedOperation("a") { $0.finish(withError: TestError.first) }, ScriptedOperation("b")]).start()
        #expect(await ended() == head + life("a", "finished: first") + life("b") + ["sync: finished: failures of a"])
    }

    @Test("With `cancelRemaining` a failure cancels the others after its event, and they finish without running")
    func cancelRemaining() async {
        let failing = ScriptedOperation("a") { $0.finish(withError: TestError.first) }
        sync([failing, ScriptedOperation("b")], policy: .cancelRemaining).start()
        let cancelled = ["b: cancelled", "b: finished: cancelled"]
        #expect(
            await ended() == head + life("a", "finished: first") + cancelled + ["sync: finished: failures of a"])
    }

    @Test(
        "Cancelling a compound before its start cancels it, then its children, and all finish when it starts",
        arguments: Start.allCases)
    func cancelledBeforeTheStart(start: Start) async {
        let compound = sync(["a", "b"].map { ScriptedOperation($0) })
        compound.cancel()
        let cancelled = ["sync: cancelled", "a: cancelled", "b: cancelled"]
        #expect(recorder.events == cancelled)
        await start(compound)
        let events = await ended()
        #expect(Set(events.dropFirst(3).dropLast()) == ["a: finished: cancelled", "b: finished: cancelled"])
        #expect(events.count == 6 && events.last == "sync: finished: cancelled")
    }

    @Test("Cancelling a compound cancels the child that runs and those that wait, at any depth, and it ends after them")
    func cancelledWhileRunning() async {
        let begun = Gate()
        let stopped = ScriptedOperation(
            "a", main: { _ in begun.open() }, didCancel: { $0.finish(withError: CancellationError()) })
        let inner = CompoundOperation(name: "inner", operations: [stopped])
        let compound = sync([inner, ScriptedOperation("b")])
        compound.start()
        await begun.opened()
        compound.cancel(withError: TestError.reason)
        let events = await ended()
        #expect(recorder.events(of: "a") == ["started", "running", "cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "inner") == ["started", "running", "cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "b") == ["cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "sync") == ["started", "running", "cancelled", "finished: cancelled, reason"])
        #expect(events.last == "sync: finished: cancelled, reason" && recorder.names == ["a", "b", "inner", "sync"])
        recorder.expectEndsBeforeParents(["a": "inner", "inner": "sync", "b": "sync"])
    }

    @Test("A child that is cancelled alone has an event, and its compound does not") func cancelledChild() async {
        let child = ScriptedOperation("a")
        let compound = sync([child, ScriptedOperation("b")])
        child.cancel()
        compound.start()
        let events = await ended()
        #expect(Set(events) == Set(["a: cancelled", "a: finished: cancelled"] + life("b") + life("sync")))
        #expect(recorder.events(of: "sync") == ["started", "running", "finished"] && events.last == "sync: finished")
    }

    @Test("A `finish` of a compound from outside cancels its children, not itself, and it ends after them")
    func finishedFromOutside() async {
        let begun = Gate()
        let compound = sync([
            ScriptedOperation(
                "a", main: { _ in begun.open() }, didCancel: { $0.finish(withError: CancellationError()) })
        ])
        compound.start()
        await begun.opened()
        compound.finish(withError: TestError.second)
        let end = ["a: started", "a: running", "a: cancelled", "a: finished: cancelled", "sync: finished: second"]
        #expect(await ended() == head + end)
    }

    @Test("A child that has finished before its addition has no events")
    func finishedBefore() async throws {
        let child = ScriptedOperation("a")
        child.start()
        let compound = sync()
        try compound.addOperation(child)
        compound.start()
        #expect(await ended() == life("sync"))
    }

    @Test("The end of a compound comes after that of a child that has finished before, and whose observer is not back")
    func finishedBeforeButNotSeen() async {
        let (log, delivering, gate) = (EventLog(), Gate(), Gate())
        let recorder = EventRecorder { _, event in
            guard case .finished = event.kind else { return }
            if event.name == "a" {
                delivering.open()
                gate.pass()
            }
            log.add(event.name)
        }
        let child = recorder.observe(ScriptedOperation("a"))
        async let end: Void = onThread { child.start() }
        await delivering.opened()
        let compound = recorder.observe(CompoundOperation(name: "sync", operations: [child]))
        compound.start()
        #expect(child.isFinished && compound.isExecuting)
        gate.open()
        await end
        await eventually("the compound does not end") { log.events.count == 2 }
        #expect(log.events == ["a", "sync"])
    }

    @Test("A compound that waits for a resource has not begun, and its children wait with it") func waiting() async {
        let database = ExclusiveAccess("database")
        let holder = ScriptedOperation.idle("holder")
        holder.require(database)
        holder.start()
        let compound = sync([ScriptedOperation("a")])
        compound.require(database)
        compound.start()
        let waiting = ["sync: started", "sync: waiting for exclusive access to “database”, held by “holder”"]
        #expect(recorder.events == waiting)
        holder.finish()
        #expect(await ended() == waiting + ["sync: running"] + life("a") + ["sync: finished"])
    }
}
