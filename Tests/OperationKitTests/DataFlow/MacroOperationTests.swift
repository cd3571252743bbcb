import OperationKitTestSupport

/// Chains of typed operations.
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
    func startedElsewhere(index: Int) async {
        let log = EventLog()
        let steps = (0..<3).map { number in
            Step<Int, Int>("\(number)") { step, input in
                log.add("\(number) from \(input)")
                if number != index { step.finish(with: input + 1) }
            }
        }
        let macro = chain(of: steps).with(input: 10)
        steps[0].input = 0
        for step in steps[...index] { step.start() }
        #expect(steps[index].isExecuting)
        macro.start()
        log.add("end")
        steps[index].finish(with: 5)
        try? await macro.finished()
        let before = (0...index).map { "\($0) from \($0)" }
        let after = (index + 1..<3).map { "\($0) from \($0 + 4 - index)" }
        #expect(log.events == before + ["end"] + after)
        #expect(macro.output == 7 - index)
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
        let log = EventLog()
        let gate = Gate()
        let external = BlockOperation {
            gate.pass()
            log.add("external")
        }
        let step = Step<Int, Int>.increment("step", log: log)
        step.addDependency(external)
        let first = Step<Int, Int> { step, input in
            log.add("first")
            step.finish(with: input)
            gate.open()
        }
        OperationQueue().addOperation(external)
        await Start.byHand(MacroOperation(first).then(step).with(input: 0))
        #expect(log.events == ["first", "external", "step"])
    }

    @Test("A step that waits for its macro is a cycle, reported with both names") func waitsForItsMacro() async {
        let step = Step<Int, Int>.increment("step")
        let macro = MacroOperation(step).then(Step<Int, Int>.increment("next")).with(input: 0)
        macro.name = "macro"
        step.addDependency(macro)
        await Start.byHand(macro)
        #expect(brief(macro.error) == "macro cycle [step, macro]" && step.isFinished)
        step.removeDependency(macro)
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
}
