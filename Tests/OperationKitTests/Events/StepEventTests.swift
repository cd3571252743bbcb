import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Events of composites whose children hand values on, and of collections.
@Suite("Events of steps", .hangGuard) struct StepEventTests {
    private let recorder = EventRecorder()

    private func life(_ name: String, _ end: String = "finished") -> [String] {
        ["started", "running", end].map { "\(name): \($0)" }
    }

    /// A step that adds 1 on another thread.
    private func step(_ name: String) -> Step<Int, Int> {
        Step(name) { step, input in elsewhere { step.finish(with: input + 1) } }
    }

    private func failing(_ name: String) -> Step<Int, Int> {
        Step(name) { step, _ in step.finish(withError: TestError.first) }
    }

    /// Starts an operation with an input, and returns its events when it has ended.
    private func run<Output>(_ operation: IOOperation<Int, Output>, _ name: String = "all") async -> [String] {
        operation.input = 1
        operation.name = name
        recorder.observe(operation).start()
        return await recorder.end(of: name)
    }

    private func around(_ inside: [String], _ end: String = "finished") -> [String] {
        ["all: started", "all: running"] + inside + ["all: \(end)"]
    }

    // MARK: - Macros

    @Test("The steps of a macro have their events one after the other, inside those of the macro") func macro() async {
        let macro = chain(of: ["a", "b", "c"].map { step($0) })
        #expect(await run(macro) == around(life("a") + life("b") + life("c")))
    }

    @Test("The steps after one that fails are cancelled and finish without running") func failedStep() async {
        let events = await run(chain(of: [step("a"), failing("b"), step("c")]))
        let cancelled = ["c: cancelled", "c: finished: cancelled"]
        #expect(events == around(life("a") + life("b", "finished: first") + cancelled, "finished: first"))
    }

    @Test("What joins concurrent steps has no events") func join() async {
        let macro = MacroOperation(step("a")).then(concurrently: step("b"), step("c"))
        let events = await run(macro)
        for name in ["a", "b", "c"] { #expect(recorder.events(of: name) == ["started", "running", "finished"]) }
        #expect(recorder.names == ["a", "all", "b", "c"])
        #expect(Array(events.prefix(5)) == ["all: started", "all: running"] + life("a"))
        recorder.expectEndsBeforeParents(["a": "all", "b": "all", "c": "all"])
    }

    @Test("What joins an array of concurrent steps has no events") func joinedArray() async {
        let steps = (0..<4).map { step("step \($0)") }
        let events = await run(MacroOperation(step("a")).then(concurrently: steps))
        #expect(recorder.names == ["a", "all"] + (0..<4).map { "step \($0)" })
        #expect(events.count == 6 * 3 && events.last == "all: finished")
    }

    @Test("A macro that is cancelled during a step cancels it and those that follow, and ends after them")
    func cancelledMacro() async {
        let begun = Gate()
        let macro = chain(of: [Step("a") { _, _ in begun.open() }, step("b")])
        macro.input = 1
        macro.name = "all"
        recorder.observe(macro).start()
        await begun.opened()
        macro.cancel()
        await recorder.end(of: "all")
        #expect(recorder.events(of: "a") == ["started", "running", "cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "b") == ["cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "all") == ["started", "running", "cancelled", "finished: cancelled"])
        recorder.expectEndsBeforeParents(["a": "all", "b": "all"])
    }

    @Test("A step with an observer of its own was added to a macro, once") func addedStep() async {
        let own = EventRecorder()
        let macro = MacroOperation(own.observe(step("a"))).then(own.observe(step("b"))).then(own.observe(step("c")))
        let title = String(describing: MacroOperation<Int, Int>.self)
        #expect(own.events == ["a", "b", "c"].map { "\($0): added to \(title)" })
        #expect(await run(macro) == around(life("a") + life("b") + life("c")))
    }

    @Test("An operation that was made from another one is around it") func derived() async {
        let events = await run(step("a").map { $0 * 2 })
        #expect(events == around(life("a")))
    }

    @Test("A recovery has the operation that failed inside it, and the one that runs in its place") func recovery()
        async
    {
        let made = TaskOperation(name: "made") { 4 }
        let events = await run(failing("a").recoverRun { _ in made })
        #expect(events == around(life("a", "finished: first") + ["made: added to all"] + life("made")))
    }

    // MARK: - Waterfalls

    @Test("The operations of a waterfall are added when it is their turn, and turns and values have no events")
    func waterfall() async {
        let step = step("a")
        let waterfall = Waterfall<Int, Int>()
            .then { $0 + 1 }
            .thenRun { step.with(input: $0) }
            .then { $0 + 1 }
            .thenAwait { $0 + 1 }
            .then { $0 + 1 }
        let added = ["all: started", "all: running", "a: added to all"] + life("a") + ["job 3: added to all"]
        #expect(await run(waterfall) == added + life("job 3") + ["all: finished"])
    }

    @Test("A job that throws ends the waterfall without an event of its own") func failedJob() async {
        let waterfall = Waterfall<Int, Int>().then { _ -> Int in throw TestError.first }.thenAwait { $0 }
        #expect(await run(waterfall) == around([], "finished: first"))
    }

    // MARK: - Gathering and collections

    @Test("What is gathered has its events inside those of the operation that gathers it") func gathering() async {
        let gathered = ["a", "b"].map { step($0).with(input: 1) }
            .gathered(name: "all", maxConcurrentOperationCount: 1)
        recorder.observe(gathered).start()
        #expect(await recorder.end(of: "all") == around(life("a") + life("b")))
    }

    @Test("A map is one operation, whatever becomes of its elements", arguments: [true, false]) func map(fails: Bool)
        async
    {
        let map = MapOperation<Int, Int>(name: "all", maxConcurrentOperationCount: 2) { element in
            if fails { throw TestError.first }
            return element
        }
        map.input = [1, 2]
        recorder.observe(map).start()
        let end = fails ? "finished: failures of item 0, item 1" : "finished"
        #expect(await recorder.end(of: "all") == life("all", end))
    }

    @Test("A run over a collection is one operation, with all strategies", arguments: Strategy.allCases)
    func collection(strategy: Strategy) async {
        let run = strategy.make { items, completion in elsewhere { completion(items == [1] ? TestError.first : nil) } }
            .makeOperation(on: [0, 1, 2])
        run.name = "all"
        recorder.observe(run).start()
        let end = "finished: failures of \(strategy.isBatch ? "batch" : "item") 1"
        #expect(await recorder.end(of: "all") == life("all", end))
    }

    @Test("A run over a collection that is cancelled ends after its items, and has one event of that")
    func cancelledCollection() async {
        let log = WorkLog()
        let run = Strategy.sequentialItems.make { items, completion in
            log.began(items)
            log.keep(completion)
        }.makeOperation(on: [0, 1])
        run.name = "all"
        recorder.observe(run).start()
        await eventually("the first item has not begun") { log.keptCount == 1 }
        run.cancel()
        #expect(recorder.events == ["all: started", "all: running", "all: cancelled"])
        for completion in log.takeKept() { completion(nil) }
        #expect(await recorder.end(of: "all") == around(["all: cancelled"], "finished: cancelled"))
    }
}
