import OperationKitTestSupport

@Suite("Events of composites", .hangGuard) struct CompositeEventTests {
    private let recorder = EventRecorder()

    /// A compound that runs one child at a time, and is observed after the addition of its first children.
    private func sync(_ operations: [Operation] = [], policy: FailurePolicy = .continueAll) -> CompoundOperation {
        recorder.observe(
            CompoundOperation(
                name: "sync", operations: operations, maxConcurrentOperationCount: 1, failurePolicy: policy))
    }

    private func life(_ name: String, _ end: String = "finished") -> [String] {
        ["started", "running", end].map { "\(name): \($0)" }
    }

    @discardableResult
    private func ended(_ name: String = "sync") async -> [String] { await recorder.end(of: name) }

    private let head = ["sync: started", "sync: running"]

    @Test("Serial children have their events in turn", arguments: Start.allCases) func serial(start: Start) async {
        let (a, b) = (ScriptedOperation("a"), ScriptedOperation("b") { operation in elsewhere { operation.finish() } })
        a.addDependency(b)
        let foreign = ForeignOperation("foreign") { $0.finish() }
        // Those of other classes have no events.
        await start(sync([a, BlockOperation {}, foreign, b]))
        #expect(await ended() == head + life("b") + life("a") + ["sync: finished"])
    }

    @Test("An observer sees additions after its own, before the start and later") func additions() async throws {
        let (recorder, seen, own) = (recorder, Shared<[String]>([]), EventRecorder())
        let compound = sync([own.observe(ScriptedOperation("a"))])
        let adding = ScriptedOperation("b") { [weak compound] operation in
            expectNoError { try compound?.addOperation(ScriptedOperation("c")) }
            seen.value = recorder.events
            operation.finish()
        }
        try compound.addOperation(adding)
        let before = ["b: added to sync"] + head + life("a") + ["b: started", "b: running", "c: added to sync"]
        compound.start()
        #expect(await ended() == before + ["b: finished"] + life("c") + ["sync: finished"])
        #expect(seen.value == before && own.events == ["a: added to sync"] + life("a"))
    }

    @Test("An addition that is rejected is no event, nor is what was to be added with it") func rejected() async {
        let (child, other) = (recorder.observe(ScriptedOperation("a")), recorder.observe(ScriptedOperation("b")))
        let (compound, ring) = (sync([child]), [ScriptedOperation("c"), ScriptedOperation("d")])
        ring[0].addDependency(ring[1])
        ring[1].addDependency(ring[0])
        #expect(throws: CompoundAdditionError.self) { try compound.addOperations([other, child]) }
        #expect(throws: CompoundAdditionError.self) { try CompoundOperation(name: "other").addOperation(child) }
        #expect(throws: CompoundOperationError.self) { try compound.addOperations(ring) }
        compound.start()
        await ended()
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(other) }
        #expect(recorder.events == ["a: added to sync"] + head + life("a") + ["sync: finished"])
        ring[0].removeDependency(ring[1])
    }

    @Test("A child that has finished before its addition has no events") func finishedBefore() async throws {
        let (child, compound) = (ScriptedOperation("a"), sync())
        child.start()
        try compound.addOperation(child)
        compound.start()
        #expect(await ended() == life("sync"))
    }

    @Test("An observer sees what is inside its operation at any depth, once") func nested() async throws {
        let inside = EventRecorder()
        let deep = recorder.observe(CompoundOperation(name: "deep"))
        let inner = inside.observe(
            CompoundOperation(name: "inner", operations: [recorder.observe(ScriptedOperation("a")), deep]))
        let compound = sync([inner])
        try deep.addOperation(ScriptedOperation("b"))
        compound.start()
        await ended()
        for name in ["a", "b"] { #expect(recorder.events(of: name).suffix(3) == ["started", "running", "finished"]) }
        #expect(recorder.events.count == 3 * 5 + 3 && inside.names == ["a", "b", "deep", "inner"])
        recorder.expectEndsBeforeParents(["a": "inner", "b": "deep", "deep": "inner", "inner": "sync"])
    }

    @Test("A failure is in the end of its compound", arguments: [FailurePolicy.continueAll, .cancelRemaining])
    func failure(policy: FailurePolicy) async {
        let failing = ScriptedOperation("a") { $0.finish(withError: TestError.first) }
        sync([failing, ScriptedOperation("b")], policy: policy).start()
        let rest = policy == .continueAll ? life("b") : ["b: cancelled", "b: finished: cancelled"]
        #expect(await ended() == head + life("a", "finished: first") + rest + ["sync: finished: failures of a"])
    }

    @Test("Cancelling a compound cancels the child that runs and those that wait, at any depth, and it ends after them")
    func cancelledWhileRunning() async {
        let begun = Gate()
        let leaf = ScriptedOperation.stoppable("a") { _ in begun.open() }
        let compound = sync([CompoundOperation(name: "inner", operations: [leaf]), ScriptedOperation("b")])
        compound.start()
        await begun.opened()
        compound.cancel(withError: TestError.reason)
        let events = await ended()
        for name in ["a", "inner"] {
            #expect(recorder.events(of: name) == ["started", "running", "cancelled", "finished: cancelled"])
        }
        #expect(recorder.events(of: "b") == ["cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "sync") == ["started", "running", "cancelled", "finished: cancelled, reason"])
        #expect(events.last == "sync: finished: cancelled, reason" && recorder.names == ["a", "b", "inner", "sync"])
        recorder.expectEndsBeforeParents(["a": "inner", "inner": "sync", "b": "sync"])
    }

    @Test("The end of a compound comes after that of a child that has finished before, and whose observer is not back")
    func finishedBeforeButNotSeen() async {
        let (log, delivery) = (EventLog(), HeldWork())
        let recorder = EventRecorder { _, event in
            guard event.isEnd else { return }
            if event.name == "a" { delivery() }
            log.add(event.name)
        }
        let child = recorder.observe(ScriptedOperation("a"))
        async let end: Void = onThread { child.start() }
        await delivery.begun.opened()
        let compound = recorder.observe(CompoundOperation(name: "sync", operations: [child]))
        compound.start()
        #expect(child.isFinished && compound.isExecuting)
        delivery.mayEnd.open()
        await end
        await eventually("the compound does not end") { log.events == ["a", "sync"] }
    }

    private static func step(_ name: String) -> Step<Int, Int> {
        Step(name) { step, input in elsewhere { step.finish(with: input + 1) } }
    }

    /// Starts an operation with an input, and returns its events when it has ended.
    private func run<Output>(_ operation: IOOperation<Int, Output>) async -> [String] {
        operation.input = 1
        operation.name = "sync"
        recorder.observe(operation).start()
        return await ended()
    }

    @Test("Steps of a macro have their events one by one, until one fails") func macro() async {
        let own = EventRecorder()
        let macro = MacroOperation(own.observe(Self.step("a"))).then(Step<Int, Int>.failing("b")).then(
            own.observe(Self.step("c")))
        let title = String(describing: MacroOperation<Int, Int>.self)
        // Also if the macro is continued.
        #expect(own.events == ["a", "c"].map { "\($0): added to \(title)" })
        let cancelled = ["c: cancelled", "c: finished: cancelled"]
        #expect(
            await run(macro) == head + life("a") + life("b", "finished: first") + cancelled + ["sync: finished: first"])
    }

    @Test("What joins steps that run together has no events") func join() async {
        let steps = (0..<4).map { Self.step("step \($0)") }
        let events = await run(MacroOperation(Self.step("a")).then(concurrently: steps))
        #expect(recorder.names == ["a"] + (0..<4).map { "step \($0)" } + ["sync"])
        #expect(events.count == 6 * 3 && events.last == "sync: finished")
    }

    @Test("A recovery has what failed inside it, and what runs in its place") func recovery() async {
        let made = TaskOperation(name: "made") { 4 }
        let events = await run(Step<Int, Int>.failing("a").recoverRun { _ in made })
        #expect(
            events == head + life("a", "finished: first") + ["made: added to sync"] + life("made") + ["sync: finished"])
    }

    @Test("Operations of a waterfall are added in their turn; other jobs have no events") func waterfall() async {
        let step = Self.step("a")
        let waterfall = Waterfall<Int, Int>().then { $0 + 1 }.thenRun { step.with(input: $0) }.thenAwait { $0 + 1 }
        let jobs = ["a: added to sync"] + life("a") + ["job 2: added to sync"] + life("job 2")
        #expect(await run(waterfall.then { $0 + 1 }) == head + jobs + ["sync: finished"])
    }
}
