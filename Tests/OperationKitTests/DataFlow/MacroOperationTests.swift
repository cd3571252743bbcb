import Foundation
import OperationKit
import Testing

/// D2 and D3: chains of typed operations.
@Suite("D2, D3 MacroOperation", .mayNotHang) struct MacroOperationTests {
    private let length = IOBlockOperation<String, Int>(name: "length") { $0.count }
    private let double = IOBlockOperation<Int, Int>(name: "double") { $0 * 2 }
    private let text = IOBlockOperation<Int, String>(name: "text") { "<\($0)>" }

    @Test(arguments: Start.allCases) func d2_eachStepGetsTheOutputOfTheOneBefore(start: Start) async {
        let macro = MacroOperation(length).then(double).then(text)
        macro.input = "four"
        await start(macro)
        #expect(macro.output == "<8>" && macro.error == nil && macro.failedStep == nil)
        #expect(length.output == 4 && double.output == 8)
    }

    @Test func d2_aMacroOfOneStepIsThatStep() async {
        let macro = MacroOperation(length)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == 4)
    }

    @Test func d2_theOutputIsThereInTheBlocksAndForDependents() async {
        let log = EventLog()
        let macro = MacroOperation(length).then(double)
        macro.input = "four"
        macro.asyncCompletionBlock = { [unowned macro] _ in log.add("block \(macro.output ?? -1)") }
        let dependent = BlockOperation { log.add("dependent \(macro.output ?? -1)") }
        dependent.addDependency(macro)
        await onThread { OperationQueue().addOperations([dependent, macro], waitUntilFinished: true) }
        #expect(log.events == ["block 8", "dependent 8"])
    }

    @Test func d2_aStepThatEndsElsewhereIsWaitedFor() async {
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

    @Test func d2_stepsMayBeAsyncClosures() async throws {
        let later = IOBlockOperation<Int, Int> { input in
            await Task.yield()
            return input + 1
        }
        let macro = MacroOperation(length).then(later).then(text)
        macro.input = "four"
        #expect(try await OperationQueue().run(macro) == "<5>")
    }

    @Test(arguments: 0..<5) func d2_aFailedStepEndsTheChainWithItsOwnError(failing: Int) async {
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

    @Test func d2_withoutANameAStepIsCalledByTypeAndIndex() async {
        let macro = MacroOperation(length).then(IOBlockOperation<Int, Int> { _ in throw TestError.first })
        macro.input = ""
        await Start.byHand(macro)
        #expect(macro.failedStep?.name == "IOBlockOperation<Int, Int> 1")
    }

    @Test func d2_recoveryReplacesTheFailureOfAStep() async {
        let failing = IOBlockOperation<Int, Int> { _ in throw TestError.first }
        let macro = MacroOperation(length).then(failing.recover { _ in 3 }).then(text)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == "<3>" && macro.error == nil)
    }

    @Test func d2_macrosNest() async {
        let inner = MacroOperation(double).then(IOBlockOperation<Int, Int> { $0 + 1 })
        let macro = MacroOperation(MacroOperation(length)).then(inner).then(text)
        macro.input = "four"
        await Start.onBusyQueue(macro)
        #expect(macro.output == "<9>")
    }

    @Test func d2_aMacroCanBeAChildOfACompound() async throws {
        let macro = MacroOperation(length).then(double)
        macro.input = "four"
        try await OperationQueue().run(CompoundOperation(operations: [macro]))
        #expect(macro.output == 8)
    }

    @Test func d2_aStepWaitsForItsOwnDependenciesToo() async {
        let log = EventLog()
        let gate = Gate()
        let outside = BlockOperation {
            gate.pass()
            log.add("outside")
        }
        let step = Step<Int, Int>.increment("step", log: log)
        step.addDependency(outside)
        let first = Step<Int, Int> { step, input in
            log.add("first")
            step.finish(with: input)
            gate.open()
        }
        let macro = MacroOperation(first).then(step)
        macro.input = 0
        let queue = OperationQueue()
        queue.addOperation(outside)
        await Start.byHand(macro)
        #expect(log.events == ["first", "outside", "step"])
    }

    @Test func d2_finishFromOutsideCancelsTheStepsAndWaits() async {
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

    @Test func d2_aMissingInputEndsTheMacroAndItsSteps() async {
        let macro = MacroOperation(length).then(double)
        macro.name = "macro"
        await Start.byHand(macro)
        #expect(macro.error as? IOOperationError == .missingInput(operation: "macro"))
        #expect(length.isFinished && double.isFinished)
    }

    // MARK: Consumption and mistakes

    @Test func d2_theReceiverOfThenIsConsumed() async {
        let first = MacroOperation(length)
        first.name = "first"
        first.input = "four"
        let macro = first.then(double)
        await Start.byHand(first)
        #expect(first.error as? MacroOperationError == .consumed(macro: "first"))
        #expect(!length.isFinished)
        first.cancel()
        await Start.byHand(macro)
        #expect(macro.output == 8 && macro.name == "first")
    }

    @Test func d2_thenOnAConsumedMacroIsRefused() async {
        let first = MacroOperation(length)
        first.name = "first"
        let macro = first.then(double)
        let other = first.then(IOBlockOperation<Int, Int>(name: "other") { $0 })
        other.input = ""
        await Start.byHand(other)
        #expect(other.error as? MacroOperationError == .consumed(macro: "first"))
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == 8)
    }

    @Test func d2_thenOnAMacroThatRunsIsRefused() async {
        let macro = MacroOperation(length)
        macro.name = "macro"
        macro.input = "four"
        await Start.byHand(macro)
        let longer = macro.then(double)
        longer.input = "four"
        await Start.byHand(longer)
        let error = longer.error as? MacroOperationError
        #expect(error == .alreadyStarted(macro: "macro") || error == .consumed(macro: "macro"))
        #expect(macro.output == 4)
    }

    @Test func d2_anOperationTwiceInAChainIsRefusedByName() async {
        let log = EventLog()
        let step = Step<Int, Int>.increment("step", log: log)
        let macro = MacroOperation(step).then(Step<Int, Int>.increment("other", log: log)).then(step)
        macro.name = "macro"
        macro.input = 0
        await Start.byHand(macro)
        #expect(macro.error as? MacroOperationError == .alreadyUsed(operation: "step", macro: "macro"))
        #expect(log.events.isEmpty && step.isFinished)
    }

    @Test func d2_anOperationInTwoChainsIsRefusedByName() async {
        let log = EventLog()
        let step = Step<Int, Int>.increment("step", log: log)
        let first = MacroOperation(step)
        let second = MacroOperation(Step<Int, Int>.increment("other", log: log)).then(step)
        first.input = 0
        second.input = 0
        second.name = "second"
        await Start.byHand(second)
        #expect(second.error as? MacroOperationError == .alreadyUsed(operation: "step", macro: "second"))
        #expect(log.events.isEmpty && !step.isCancelled)
        await Start.byHand(first)
        #expect(first.output == 1)
    }

    @Test func d2_aChildOfACompoundIsNoStep() async throws {
        let step = Step<Int, Int>.increment("step")
        step.input = 0
        let compound = CompoundOperation(operations: [step])
        let macro = MacroOperation(step)
        macro.input = 0
        await Start.byHand(macro)
        #expect((macro.error as? MacroOperationError)?.localizedDescription.contains("“step”") == true)
        try await OperationQueue().run(compound)
        #expect(throws: CompoundAdditionError.self) {
            let other = Step<Int, Int>.increment("other")
            let owner = MacroOperation(other)
            defer { withExtendedLifetime(owner) {} }
            try CompoundOperation().addOperation(other)
        }
    }

    @Test func d2_aMacroThatIsAStepOfItselfIsRefused() async {
        let macro = MacroOperation(Step<Int, Int>.increment("step"))
        macro.name = "macro"
        let loop = macro.then(macro)
        loop.input = 0
        await Start.byHand(loop)
        #expect(loop.error as? MacroOperationError == .alreadyUsed(operation: "macro", macro: "macro"))
    }

    // MARK: Graphs

    @Test func d3_aLaterStepTakesAnEarlierOutputButRunsAfterTheOneInBetween() async {
        let log = EventLog()
        let download = IOBlockOperation<String, String>(name: "download") { $0 + ".zip" }
        let process = IOBlockOperation<String, Int>(name: "process") { input in
            log.add("process \(input)")
            return 1
        }
        let cleanUp = IOBlockOperation<String, String>(name: "clean up") { input in
            log.add("clean up \(input)")
            return "done"
        }
        let macro = MacroOperation(download).then(process).then(cleanUp, inputFrom: download)
        macro.input = "photo"
        await Start.byHand(macro)
        #expect(log.events == ["process photo.zip", "clean up photo.zip"] && macro.output == "done")
    }

    @Test func d3_twoOutputsAreJoinedIntoOneStep() async {
        let join = IOBlockOperation<(Int, Int), String> { "\($0.0), \($0.1)" }
        let macro = MacroOperation(length).then(double).then(join, inputFrom: length, double)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == "4, 8")
    }

    @Test func d3_oneOutputIsFannedOutAndJoinedAgain() async {
        let macro = MacroOperation(length).then(double, text)
            .then(IOBlockOperation<(Int, String), String> { "\($0.0) \($0.1)" })
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == "8 <4>")
    }

    @Test func d3_fannedOutStepsRunAtTheSameTime() async {
        let (one, two) = (Gate(), Gate())
        let first = IOBlockOperation<Int, Int> { input in
            one.open()
            await two.opened()
            return input
        }
        let second = IOBlockOperation<Int, Int> { input in
            two.open()
            await one.opened()
            return input + 1
        }
        let macro = MacroOperation(length).then(first, second)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output?.0 == 4 && macro.output?.1 == 5)
    }

    @Test(arguments: [0, 1, 100]) func d3_oneOutputIsFannedOutToAnyNumberOfSteps(count: Int) async {
        let steps = (0..<count).map { number in IOBlockOperation<Int, Int> { $0 + number } }
        let macro = MacroOperation(length).then(steps).then(IOBlockOperation<[Int], Int> { $0.reduce(0, +) })
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.output == (0..<count).reduce(0) { $0 + 4 + $1 })
    }

    @Test func d3_aFailedStepAfterAJoinIsCountedAsTheUserDoes() async {
        let failing = IOBlockOperation<(Int, String), Int>(name: "failing") { _ in throw TestError.first }
        let macro = MacroOperation(length).then(double, text).then(failing)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(
            macro.failedStep?.index == 3 && macro.failedStep?.name == "failing" && macro.failedStep?.siblingCount == 4)
    }

    @Test func d3_aStepThatFailsCancelsTheOneBesideIt() async {
        let began = Gate()
        let waiting = Step<Int, Int>("waiting") { _, _ in began.open() }
        let failing = IOBlockOperation<Int, Int>(name: "failing") { _ in
            await began.opened()
            throw TestError.first
        }
        let macro = MacroOperation(length).then(waiting, failing)
        macro.input = "four"
        await Start.byHand(macro)
        #expect(macro.failedStep?.name == "failing" && waiting.isCancelled && waiting.isFinished)
    }

    @Test func d3_anOutputOfAnOperationOutsideIsRefused() async {
        let outside = IOBlockOperation<Int, Int>(name: "outside") { $0 }
        let macro = MacroOperation(length).then(double, inputFrom: outside)
        macro.input = "four"
        macro.name = "macro"
        await Start.byHand(macro)
        guard case .notAStep("outside", _)? = macro.error as? MacroOperationError else {
            Issue.record("\(String(describing: macro.error))")
            return
        }
        #expect(!double.isFinished && length.isFinished)
    }

    #if os(Linux) || os(macOS)
    @Test func d3_wrongTypesDoNotCompile() async throws {
        let code = [
            "let length = IOBlockOperation<String, Int> { $0.count }",
            "let shout = IOBlockOperation<String, String> { $0.uppercased() }",
            "let sum = IOBlockOperation<(Int, String), Int> { $0.0 }",
            "_ = MacroOperation(length).then(shout)",
            "_ = MacroOperation(shout).then(length).then(sum, inputFrom: length, length)",
            "_ = MacroOperation(shout).then(length).then(length, inputFrom: length)",
            "_ = MacroOperation(shout).then(length, shout).then(length)",
            "let bound: Int = Waterfall<String, String>().then { $0.count }.output",
            "length.bind(\\.input, to: length, \\.output)",
        ]
        let messages = try #require(
            try await TypeChecker().check([CodeBlock(file: "Wrong.swift", line: 1, code: code)]))
        for line in 4...9 { #expect(messages.contains("Wrong.swift:\(line):"), "line \(line): \(messages)") }
        for line in 1...3 { #expect(!messages.contains("Wrong.swift:\(line): error"), "\(messages)") }
    }
    #endif
}
