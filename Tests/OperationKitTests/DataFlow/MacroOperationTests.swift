import OperationKitTestSupport

@Suite("MacroOperation", .hangGuard) struct MacroOperationTests {
    private let length = IOBlockOperation<String, Int>(name: "length") { $0.count }
    private let double = IOBlockOperation<Int, Int>(name: "double") { $0 * 2 }
    private let text = IOBlockOperation<Int, String>(name: "text") { "<\($0)>" }

    @Test("A step that is used twice, or contains its macro, is an error, and none runs") func usedTwice() async {
        let log = EventLog()
        func step(_ name: String) -> Step<Int, Int> { .increment(name, log: log) }
        let (twice, shared, loop) = (step("twice"), step("shared"), MacroOperation(step("loop")))
        loop.name = "macro"
        let (first, second) = (MacroOperation(shared), MacroOperation(step("other")).then(shared))
        let macros = [MacroOperation(twice).then(step("other")).then(twice), second, loop.then(loop)]
        for (macro, name) in zip(macros, ["twice", "shared", "macro"]) {
            macro.name = "macro"
            await Start.byHand(macro.with(input: 0))
            #expect(macro.error as? ChainError == .alreadyUsed(operation: name, chain: "macro"))
        }
        #expect(log.events.isEmpty && twice.isFinished && !shared.isCancelled)
        await Start.byHand(first.with(input: 0))
        #expect(first.output == 1)
    }

    @Test("A later step takes an earlier output, and waits for all before") func earlierOutput() async throws {
        let (log, external) = (EventLog(), ScriptedOperation.idle())
        let (first, between) = (Step.increment("first", log: log), Step.increment("between", log: log))
        let last = IOBlockOperation<Int, String> { input in
            log.add("last")
            return "\(input)"
        }
        last.addDependency(external)
        let macro = MacroOperation(first).then(between).then(last, inputFrom: first).with(input: 0)
        macro.start()
        try await between.finished()
        log.add("external")
        external.start()
        external.finish()
        #expect(try await macro.value == "1" && log.events == ["first", "between", "external", "last"])
    }

    @Test("One output is fanned out to any number of steps", arguments: [0, 1, 100]) func anyNumber(count: Int) async {
        let steps = (0..<count).map { number in IOBlockOperation<Int, Int> { $0 + number } }
        let macro = MacroOperation(length).then(concurrently: steps).then(
            IOBlockOperation<[Int], Int> { $0.reduce(0, +) })
        #expect(macro.debugDescription.contains("\(count + 2) steps"))
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.output == (0..<count).reduce(0) { $0 + 4 + $1 })
    }

    @Test("What follows no steps at the same time waits for the step before them") func afterNone() async throws {
        let first = ManualOperation<Int, Int>()
        let last = IOBlockOperation<[Int], Bool> { [unowned first] _ in first.isFinished }
        let macro = MacroOperation(first).then(concurrently: [Step<Int, Int>]()).then(last).with(input: 1)
        OperationQueue().addOperation(macro)
        await first.started()
        try await OperationQueue().run(BlockOperation {})
        first.finish(with: 1)
        #expect(try await macro.value)
    }

    @Test("One output goes to two steps, whose outputs are joined", arguments: [false, true])
    func fanOut(fails: Bool) async {
        let join = IOBlockOperation<(Int, String), String>(name: "join") {
            if fails { throw TestError.first }
            return "\($0.0) \($0.1)"
        }
        let macro = MacroOperation(length).then(concurrently: double, text).then(join)
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.output == (fails ? nil : "8 <4>"))
        #expect(macro.failedStep.map { "\($0.index) \($0.name) \($0.siblingCount ?? 0)" } == (fails ? "3 join 4" : nil))
    }

    @Test("A step that fails cancels the step that runs at the same time") func failureBeside() async {
        let waiting = ManualOperation<Int, Int>(name: "waiting")
        let failing = IOTaskOperation<Int, Int>(name: "failing") { _ in
            await waiting.started()
            throw TestError.first
        }
        let macro = MacroOperation(length).then(concurrently: waiting, failing)
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.failedStep?.name == "failing" && waiting.isCancelled && waiting.isFinished)
    }

    @Test("An input from what is no step is an error", arguments: [false, true]) func notAStep(isOneOfTwo: Bool) async {
        let outside = IOBlockOperation<Int, Int>(name: "outside") { $0 }
        let first = MacroOperation(length)
        first.name = "macro"
        let sum = IOBlockOperation<(Int, Int), Int> { $0 + $1 }
        let longer = isOneOfTwo ? first.then(sum, inputFrom: length, outside) : first.then(double, inputFrom: outside)
        let macro = longer.with(input: "four")
        await Start.byHand(macro)
        #expect(macro.error as? ChainError == .notAStep(operation: "outside", chain: "macro"))
        #expect(!double.isFinished && length.isFinished)
    }

    @Test("A step takes from steps before it what bindings say", arguments: [false, true])
    func bindingsToStepsBefore(areBoundFirst: Bool) async throws {
        let (first, left, right) = (Step.increment("first"), Step.increment("left"), Step.increment("right"))
        let log = EventLog()
        let sum = IOBlockOperation<(Int, Int), Int>(name: "sum") { $0 + $1 }
        let last = IOBlockOperation<Int, Int>(name: "last") { $0 }
        let bind = {
            for source in [first, left, right] {
                sum.bind(to: source) { _, source in log.add(source.name ?? "") }
                last.requireSuccess(of: source)
            }
            last.bind(\.name, to: first, \.name)
            last.bind(to: sum) { last, sum in last.input = sum.output }
        }
        if areBoundFirst { bind() }
        let macro = MacroOperation(first).then(concurrently: left, right).then(sum, inputFrom: left, right)
            .then(last, inputFrom: first)
        if !areBoundFirst { bind() }
        // The macro's own binding of the input comes before them, or after them.
        #expect(try await OperationQueue().run(macro.with(input: 0)) == (areBoundFirst ? 1 : 4))
        #expect(log.events == ["first", "left", "right"] && last.name == "first")
    }

    @Test("A step that has started holds nothing of those before it") func stepsAreReleasedAsTheyFinish() async throws {
        typealias Token = LeakTracker.Token
        let (tracker, log, last) = (LeakTracker(), EventLog(), ManualOperation<Token, Int>(name: "last"))
        let macro = {
            let steps = ["first", "second", "third"].map { name in
                let step = Step<Token, Token>(name) { step, _ in step.finish(with: tracker.token("of \(name)")) }
                return tracker.track(step, name)
            }
            let macro = MacroOperation(steps[0]).then(steps[1]).then(steps[2]).then(last)
            last.bind(to: steps[2]) { _, step in log.add(step.name ?? "") }
            return macro.with(input: Token())
        }()
        macro.start()
        await last.started()
        // The last one has its input.
        await eventually("still alive: \(tracker.alive)") { tracker.alive.allSatisfy { $0 == "of third" } }
        last.finish(with: 1)
        #expect(try await macro.value == 1 && log.events == ["third"])
    }
}
