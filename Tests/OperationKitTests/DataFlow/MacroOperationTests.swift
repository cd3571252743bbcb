import OperationKitTestSupport

@Suite("MacroOperation", .hangGuard) struct MacroOperationTests {
    private let length = IOBlockOperation<String, Int>(name: "length") { $0.count }
    private let double = IOBlockOperation<Int, Int>(name: "double") { $0 * 2 }
    private let text = IOBlockOperation<Int, String>(name: "text") { "<\($0)>" }

    @Test("Each step gets the output of the one before", arguments: Start.allCases) func outputs(start: Start) async {
        let macro = MacroOperation(length).then(double).then(text).with(input: "four")
        await start(macro)
        #expect(macro.output == "<8>" && macro.error == nil && macro.failedStep == nil)
        #expect(length.output == 4 && double.output == 8)
    }

    @Test("A step that was started elsewhere is waited for, and the next one gets its output", arguments: [0, 1])
    func startedElsewhere(index: Int) async throws {
        let log = EventLog()
        let steps = (0..<3).map { number in
            Step<Int, Int>("\(number)") { step, input in
                log.add("\(number)")
                if number != index { step.finish(with: input + 1) }
            }
        }
        let macro = chain(of: steps).with(input: 10)
        steps[0].input = 0
        for step in steps[...index] { step.start() }
        macro.start()
        #expect(steps[index].isExecuting && !macro.isFinished)
        steps[index].finish(with: 5)
        #expect(try await macro.value == 7 - index && log.events == ["0", "1", "2"])
    }

    @Test("A failed step ends the macro with its own error; later steps are cancelled and finish", arguments: 0..<5)
    func failedStep(failing: Int) async {
        let log = EventLog()
        let steps = (0..<5).map { number in
            // The last one is called by its type and index.
            Step<Int, Int>(number == 4 ? nil : "step \(number)") { step, input in
                log.add("\(number)")
                if number == failing { step.finish(withError: TestError.numbered(number)) }
                step.finish(with: input)
            }
        }
        let macro = chain(of: steps).with(input: 0)
        await Start.byHand(macro)
        #expect(macro.error as? TestError == .numbered(failing))
        #expect(macro.failedStep?.name == (failing == 4 ? "Step<Int, Int> 4" : "step \(failing)"))
        #expect(macro.failedStep?.index == failing && macro.failedStep?.siblingCount == 5)
        #expect(macro.output == nil && !macro.isCancelled)
        #expect(log.events == (0...failing).map(String.init))
        for step in steps.dropFirst(failing + 1) {
            #expect(step.isFinished && step.isCancelled && step.error is CancellationError)
        }
    }

    @Test("A step waits for its own dependencies too") func ownDependencies() async {
        let (log, gate) = (EventLog(), Gate())
        let external = BlockOperation {
            gate.pass()
            log.add("external")
        }
        let step = Step<Int, Int>.increment("step", log: log)
        step.addDependency(external)
        let first = Step<Int, Int> { step, input in
            step.finish(with: input)
            gate.open()
        }
        OperationQueue().addOperation(external)
        await Start.byHand(MacroOperation(first).then(step).with(input: 0))
        #expect(log.events == ["external", "step"])
    }

    @Test("An operation that is a step twice, of two macros, or of itself is an error with its name, and no step runs")
    func usedTwice() async {
        let log = EventLog()
        func step(_ name: String) -> Step<Int, Int> { .increment(name, log: log) }
        let (twice, shared, loop) = (step("twice"), step("shared"), MacroOperation(step("loop")))
        loop.name = "macro"
        let first = MacroOperation(shared)
        let macros = [
            "twice": MacroOperation(twice).then(step("other")).then(twice),
            "shared": MacroOperation(step("other")).then(shared),
            "macro": loop.then(loop),
        ]
        for (name, macro) in macros {
            macro.name = "macro"
            await Start.byHand(macro.with(input: 0))
            #expect(macro.error as? ChainError == .alreadyUsed(operation: name, chain: "macro"))
        }
        #expect(throws: CompoundAdditionError.self) { try CompoundOperation().addOperation(shared) }
        #expect(log.events.isEmpty && twice.isFinished && !shared.isCancelled)
        await Start.byHand(first.with(input: 0))
        #expect(first.output == 1)
    }

    @Test("A later step takes the output of an earlier one, and runs after the step in between")
    func earlierOutput() async {
        let log = EventLog()
        let (first, between) = (Step.increment("first", log: log), Step.increment("between", log: log))
        let last = IOBlockOperation<Int, String> { input in
            log.add("last")
            return "\(input)"
        }
        let macro = MacroOperation(first).then(between).then(last, inputFrom: first)
        await Start.byHand(macro.with(input: 0))
        #expect(log.events == ["first", "between", "last"] && macro.output == "1")
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

    @Test(
        "One output is fanned out to two steps, whose outputs are joined; each counts in `failedStep`",
        arguments: [false, true])
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

    @Test("An input from an operation that is no step is an error with its name", arguments: [false, true])
    func notAStep(isOneOfTwo: Bool) async {
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

    #if os(Linux) || os(macOS)
    @Test("Types that do not fit do not compile") func wrongTypes() async throws {
        let code = [
            "let length = IOBlockOperation<String, Int> { $0.count }",
            "let shout = IOBlockOperation<String, String> { $0.uppercased() }",
            "let sum = IOBlockOperation<(Int, String), Int> { $0.0 }",
            "_ = MacroOperation(length).then(shout)",
            "_ = MacroOperation(shout).then(length).then(sum, inputFrom: length, length)",
            "_ = MacroOperation(shout).then(length).then(length, inputFrom: length)",
            "_ = MacroOperation(shout).then(concurrently: length, shout).then(length)",
            "let bound: Int = Waterfall<String, String>().then { $0.count }.output",
            "length.bind(\\.input, to: length, \\.output)",
            "_ = WorkflowOperation<Int, Int> { flow in 1 }",
            "_ = WorkflowOperation { input, flow in 1 }",
            "length.finish()",
        ]
        let messages = try #require(
            try await TypeChecker().check([CodeBlock(file: "Wrong.swift", line: 1, code: code)]))
        for line in 4...11 { #expect(messages.contains("Wrong.swift:\(line):"), "line \(line): \(messages)") }
        for line in 1...3 { #expect(!messages.contains("Wrong.swift:\(line): error"), "\(messages)") }
        for advice in ["the form { input, flow in … }", "the form { flow in … }", "use finish(with:)"] {
            #expect(messages.contains(advice), "\(messages)")
        }
    }
    #endif
}

@Suite("Bindings between steps", .hangGuard) struct MacroBindingTests {
    @Test("A step takes from the step before it what a binding says", arguments: [false, true])
    func aBindingToTheStepBefore(isBoundFirst: Bool) async throws {
        let first = Step.increment("first")
        let second = Step.increment("second")
        let log = EventLog()
        let bind = {
            second.bind(\.name, to: first, \.name)
            second.requireSuccess(of: first)
            second.bind(to: first) { _, first in log.add("\(first.output ?? -1)") }
        }
        if isBoundFirst { bind() }
        let macro = MacroOperation(first).then(second)
        if !isBoundFirst { bind() }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 2)
        #expect(second.name == "first" && log.events == ["1"])
    }

    @Test("A step takes from several steps before it what bindings say")
    func bindingsToStepsThatAreJoined() async throws {
        let (first, left, right) = (Step.increment("first"), Step.increment("left"), Step.increment("right"))
        let log = EventLog()
        let sum = IOBlockOperation<(Int, Int), Int>(name: "sum") { $0 + $1 }
        let last = IOBlockOperation<Int, Int>(name: "last") { $0 }
        let macro = MacroOperation(first).then(concurrently: left, right).then(sum, inputFrom: left, right)
            .then(last, inputFrom: first)
        for source in [first, left, right] {
            sum.bind(to: source) { _, source in log.add(source.name ?? "") }
            last.requireSuccess(of: source)
        }
        last.bind(to: sum) { last, sum in last.input = sum.output }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 4)
        #expect(log.events == ["first", "left", "right"])
    }

    @Test("A step that has started holds no step before it, nor the values of these")
    func stepsAreReleasedAsTheyFinish() async throws {
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
