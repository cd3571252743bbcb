import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Chains of typed operations.
@Suite("MacroOperation", .hangGuard) struct MacroOperationTests {
    private let length = IOBlockOperation<String, Int>(name: "length") { $0.count }
    private let double = IOBlockOperation<Int, Int>(name: "double") { $0 * 2 }
    private let text = IOBlockOperation<Int, String>(name: "text") { "<\($0)>" }

    @Test("Each step gets the output of the one before", arguments: Start.allCases) func outputs(start: Start) async {
        let macro = MacroOperation(length).then(double).then(text)
        macro.input = "four"
        await start(macro)
        #expect(macro.output == "<8>" && macro.error == nil && macro.failedStep == nil)
        #expect(length.output == 4 && double.output == 8)
    }

    @Test("A macro of one step has the output of that step") func oneStep() async {
        let macro = MacroOperation(length)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == 4)
    }

    @Test("The output of a macro can be read in its `asyncCompletionBlock` and by dependents") func readers() async {
        let log = EventLog()
        let macro = MacroOperation(length).then(double)
        macro.input = "four"
        macro.asyncCompletionBlock = { [unowned macro] _ in log.add("block \(macro.output ?? -1)") }
        let dependent = BlockOperation { log.add("dependent \(macro.output ?? -1)") }
        dependent.addDependency(macro)
        await onThread { OperationQueue().addOperations([dependent, macro], waitUntilFinished: true) }
        #expect(log.events == ["block 8", "dependent 8"])
    }

    @Test("A step that ends on another thread is waited for before the next one starts")
    func asynchronousSteps() async {
        let log = EventLog()
        let steps = (0..<5).map { number in
            Step<Int, Int>("\(number)") { step, input in
                log.add("begin \(number)")
                elsewhere {
                    log.add("end \(number)")
                    step.finish(with: input + 1)
                }
            }
        }
        let macro = chain(of: steps)
        macro.input = 0
        await Start.byHand(macro)
        #expect(macro.output == 5)
        #expect(log.events == (0..<5).flatMap { ["begin \($0)", "end \($0)"] })
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

    @Test("Steps may be `async` closures") func asyncClosures() async throws {
        let later = IOTaskOperation<Int, Int> { input in
            await Task.yield()
            return input + 1
        }
        let macro = MacroOperation(length).then(later).then(text)
        macro.input = "four"
        #expect(try await OperationQueue().run(macro) == "<5>")
    }

    @Test("A failed step ends the macro with its own error; later steps are cancelled and finish", arguments: 0..<5)
    func failedStep(failing: Int) async {
        let log = EventLog()
        let steps = (0..<5).map { number in
            Step<Int, Int>("step \(number)") { step, input in
                log.add("\(number)")
                if number == failing { step.finish(withError: TestError.numbered(number)) }
                step.finish(with: input)
            }
        }
        let macro = chain(of: steps)
        macro.input = 0
        await Start.byHand(macro)
        #expect(macro.error as? TestError == .numbered(failing))
        #expect(macro.failedStep?.name == "step \(failing)" && macro.failedStep?.index == failing)
        #expect(macro.failedStep?.siblingCount == 5 && macro.output == nil && !macro.isCancelled)
        #expect(log.events == (0...failing).map(String.init))
        for step in steps.dropFirst(failing + 1) {
            #expect(step.isFinished && step.isCancelled && step.error is CancellationError)
        }
    }

    @Test("A failed step without a name is called by its type and index") func unnamedStep() async {
        let macro = MacroOperation(length).then(IOBlockOperation<Int, Int> { _ in throw TestError.first })
        macro.input = ""
        await Start.byHand(macro)
        #expect(macro.failedStep?.name == "IOBlockOperation<Int, Int> 1")
    }

    @Test("A step that is made by `recover` hands on a value in place of its failure") func recover() async {
        let failing = IOBlockOperation<Int, Int> { _ in throw TestError.first }
        let macro = MacroOperation(length).then(failing.recover { _ in 3 }).then(text)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == "<3>" && macro.error == nil)
    }

    @Test("Macros can be steps of macros") func nesting() async {
        let inner = MacroOperation(double).then(IOBlockOperation<Int, Int> { $0 + 1 })
        let macro = MacroOperation(MacroOperation(length)).then(inner).then(text)
        macro.input = "four"
        await Start.onBusyQueue(macro)
        #expect(macro.output == "<9>")
    }

    @Test("A macro can be a child of a compound") func inACompound() async throws {
        let macro = MacroOperation(length).then(double)
        macro.input = "four"
        try await OperationQueue().run(CompoundOperation(operations: [macro]))
        #expect(macro.output == 8)
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
        let macro = MacroOperation(first).then(step)
        macro.input = 0
        let queue = OperationQueue()
        queue.addOperation(external)
        await Start.byHand(macro)
        #expect(log.events == ["first", "external", "step"])
    }

    @Test("`finish(with:)` on a macro cancels its steps; it ends after them with that output")
    func finishFromOutside() async {
        let began = Gate()
        let step = Step<Int, Int> { _, _ in began.open() }
        let later = Step<Int, Int>.increment("later")
        let macro = MacroOperation(step).then(later)
        macro.input = 0
        macro.start()
        await began.opened()
        #expect(macro.finish(with: 7))
        try? await macro.finished()
        #expect(macro.output == 7 && macro.isFinished && step.isFinished && later.isFinished && later.isCancelled)
    }

    @Test("A missing input ends a macro with an error with its name, and its steps finish") func missingInput() async {
        let macro = MacroOperation(length).then(double)
        macro.name = "macro"
        await Start.byHand(macro)
        #expect(macro.error as? IOOperationError == .missingInput(operation: "macro"))
        #expect(length.isFinished && double.isFinished)
    }

    // MARK: Consumption and mistakes

    @Test("A macro that was continued by `then` cannot be started; the longer one runs, under its name")
    func consumed() async {
        let first = MacroOperation(length)
        first.name = "first"
        first.input = "four"
        let macro = first.then(double)
        await Start.byHand(first)
        #expect(first.error as? ChainError == .consumed(chain: "first"))
        #expect(!length.isFinished)
        first.cancel()
        await Start.byHand(macro)
        #expect(macro.output == 8 && macro.name == "first")
    }

    @Test("A macro cannot be continued twice: the second one ends with an error, the first one runs")
    func continuedTwice() async {
        let first = MacroOperation(length)
        first.name = "first"
        let macro = first.then(double)
        let other = first.then(IOBlockOperation<Int, Int>(name: "other") { $0 })
        other.input = ""
        await Start.byHand(other)
        #expect(other.error as? ChainError == .consumed(chain: "first"))
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == 8)
    }

    @Test("A macro that was continued by `then` after its end keeps its output; the longer one ends with an error")
    func continuedAfterTheEnd() async {
        let macro = MacroOperation(length)
        macro.name = "macro"
        macro.input = "four"
        await Start.byHand(macro)
        let longer = macro.then(double)
        longer.input = "four"
        await Start.byHand(longer)
        #expect(longer.error as? ChainError == .alreadyStarted(chain: "macro"))
        #expect(macro.output == 4 && !double.isFinished)
    }

    @Test("An operation that is twice a step of a macro is an error with its name, and no step runs") func stepTwice()
        async
    {
        let log = EventLog()
        let step = Step<Int, Int>.increment("step", log: log)
        let macro = MacroOperation(step).then(Step<Int, Int>.increment("other", log: log)).then(step)
        macro.name = "macro"
        macro.input = 0
        await Start.byHand(macro)
        #expect(macro.error as? ChainError == .alreadyUsed(operation: "step", chain: "macro"))
        #expect(
            macro.error?.localizedDescription
                == "“macro” did not run, because “step” is part of another operation already, or was added to “macro” "
                + "twice. Create a new one for each step.")
        #expect(log.events.isEmpty && step.isFinished)
    }

    @Test("An operation that is a step of two macros is an error with its name; the first macro runs")
    func stepOfTwoMacros() async {
        let log = EventLog()
        let step = Step<Int, Int>.increment("step", log: log)
        let first = MacroOperation(step)
        let second = MacroOperation(Step<Int, Int>.increment("other", log: log)).then(step)
        first.input = 0
        second.input = 0
        second.name = "second"
        await Start.byHand(second)
        #expect(second.error as? ChainError == .alreadyUsed(operation: "step", chain: "second"))
        #expect(log.events.isEmpty && !step.isCancelled)
        await Start.byHand(first)
        #expect(first.output == 1)
    }

    @Test("A child of a compound cannot be a step, nor a step a child of a compound") func childAsStep() async throws {
        let step = Step<Int, Int>.increment("step")
        step.input = 0
        let compound = CompoundOperation(operations: [step])
        let macro = MacroOperation(step)
        macro.input = 0
        await Start.byHand(macro)
        #expect((macro.error as? ChainError)?.localizedDescription.contains("“step”") == true)
        try await OperationQueue().run(compound)
        #expect(throws: CompoundAdditionError.self) {
            let other = Step<Int, Int>.increment("other")
            let owner = MacroOperation(other)
            defer { withExtendedLifetime(owner) {} }
            try CompoundOperation().addOperation(other)
        }
    }

    @Test("A macro that is a step of itself is an error with its name") func stepOfItself() async {
        let macro = MacroOperation(Step<Int, Int>.increment("step"))
        macro.name = "macro"
        let loop = macro.then(macro)
        loop.input = 0
        await Start.byHand(loop)
        #expect(loop.error as? ChainError == .alreadyUsed(operation: "macro", chain: "macro"))
    }
}
