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
