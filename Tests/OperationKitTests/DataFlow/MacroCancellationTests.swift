import OperationKitTestSupport

@Suite("Cancellation of a chain", .hangGuard) struct MacroCancellationTests {
    enum Moment: CaseIterable, Sendable { case beforeStart, before, during, afterMain, after }
    enum Target: CaseIterable, Sendable { case macro, step }

    struct Case: Sendable, CustomTestStringConvertible {
        let target: Target
        let step: Int
        let moment: Moment
        let isElsewhere: Bool
        var testDescription: String { "\(target) \(moment) step \(step), elsewhere: \(isElsewhere)" }
    }

    static let all = Target.allCases.flatMap { target in
        (0..<5).flatMap { step in
            Moment.allCases.flatMap { moment in
                [true, false].map { Case(target: target, step: step, moment: moment, isElsewhere: $0) }
            }
        }
    }

    /// Cancels the macro or the step, whose chain it does not hold.
    private final class Trigger: @unchecked Sendable {
        weak var operation: Operation?
        func callAsFunction() { operation?.cancel() }
    }

    @Test("Cancelling a macro or an unfinished step ends the chain at any moment", arguments: all)
    func everyMoment(example: Case) async {
        let tracker = LeakTracker()
        do {
            let log = EventLog()
            let trigger = Trigger()
            let steps = (0..<5).map { number in
                tracker.track(
                    Step<Int, Int>("\(number)") { step, input in
                        log.add("\(number)")
                        if example.moment == .during, number == example.step { trigger() }
                        let end: @Sendable () -> Void = {
                            if example.moment == .afterMain, number == example.step { trigger() }
                            if !step.isCancelled { step.finish(with: input + 1) }
                        }
                        if example.isElsewhere { elsewhere(end) } else { end() }
                    })
            }
            if example.moment == .before {
                steps[example.step].bind(to: BlockOperation.finished()) { _, _ in trigger() }
            }
            if example.moment == .after { steps[example.step].asyncCompletionBlock = { _ in trigger() } }
            let macro = tracker.track(chain(of: steps))
            macro.input = 0
            trigger.operation = example.target == .macro ? macro : steps[example.step]
            await Start.onBusyQueue(macro) { if example.moment == .beforeStart { trigger() } }
            check(example, macro, steps, log)
        }
        await tracker.expectAllReleased()
    }

    private func check(_ example: Case, _ macro: MacroOperation<Int, Int>, _ steps: [Step<Int, Int>], _ log: EventLog) {
        let ran: Int
        switch (example.moment, example.target) {
        case (.beforeStart, .macro): ran = 0
        case (.beforeStart, .step), (.before, _): ran = example.step
        case (.during, _), (.afterMain, _): ran = example.step + 1
        case (.after, .macro): ran = example.step + 1
        case (.after, .step): ran = 5
        }
        #expect(log.events == (0..<ran).map(String.init))
        #expect(macro.isFinished && steps.allSatisfy(\.isFinished))
        #expect(macro.isCancelled == (example.target == .macro))
        if example.moment == .after, example.target == .step || example.step == 4 {
            #expect(macro.output == 5 && macro.error == nil)
            return
        }
        #expect(macro.error is CancellationError && macro.output == nil)
        #expect(macro.failedStep?.index == (example.target == .macro ? nil : example.step))
        for (number, step) in steps.enumerated() where number > example.step {
            #expect(step.isCancelled && step.error is CancellationError)
        }
    }
}

@Suite("The step that ended a chain", .hangGuard) struct FailedStepTests {
    @Test("A chain with an outcome from outside names no step that fails later", arguments: [false, true], 0..<4)
    func failedStep(isWaterfall: Bool, index: Int) async throws {
        let step = ManualOperation<Int, Int>(name: "step", ignoresCancellation: true)
        let chain = isWaterfall ? Waterfall<Int, Int>().thenRun { step.with(input: $0) } : nil
        let macro = isWaterfall ? nil : MacroOperation(step)
        let whole: IOOperation<Int, Int> = try #require(chain ?? macro)
        var failedStep: SuboperationError? { chain?.failedStep ?? macro?.failedStep }
        let seen = Shared<SuboperationError?>(nil)
        whole.asyncCompletionBlock = { [weak chain, weak macro] _ in
            seen.value = chain?.failedStep ?? macro?.failedStep
        }
        whole.input = 1
        whole.start()
        await step.started()
        switch index {
        case 0: whole.finish(with: 5)
        case 1: whole.finish(withError: TestError.second)
        case 2: whole.cancel()
        default: #expect(failedStep == nil)
        }
        step.finish(withError: TestError.first)
        try? await whole.finished()
        #expect((failedStep?.name == "step") == (index >= 2) && (seen.value?.name == "step") == (index >= 2))
        switch index {
        case 0: #expect(whole.output == 5 && whole.error == nil)
        case 1: #expect(whole.error as? TestError == .second)
        default: #expect(whole.error as? TestError == .first)
        }
    }
}

extension BlockOperation {
    fileprivate static func finished() -> BlockOperation {
        let operation = BlockOperation()
        operation.start()
        return operation
    }
}

@Suite("Long chains", .hangGuard) struct LongChainTests {
    /// Operations that hold each other, so many deep.
    private static let deep: [@Sendable (_ count: Int) -> Operation] = [
        { count in (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in last.map { $0 } } },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in
                last.recoverRun { _ in TaskOperation { 1 } }
            }
        },
        { count in
            (0..<count).reduce(TaskOperation { 1 } as IOOperation) { last, _ in [last].gathered().map { $0[0] } }
        },
        { count in chain(of: (0..<count).map { Step<Int, Int>.increment("\($0)") }) },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { first, _ in
                MacroOperation(first).then(Step.increment("next"))
            }
        },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in
                MacroOperation(Step.increment("previous")).then(last)
            }
        },
        { count in (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in MacroOperation(last) }
        },
        { count in
            (0..<count).reduce(AsyncOperation()) { last, _ in
                let next = AsyncOperation()
                next.bind(to: last) { _, _ in }
                return next
            }
        },
    ]

    @Test("Operations that hold each other and were never run are freed without recursion", arguments: deep.indices)
    func unrun(index: Int) async {
        await onThread(stackSize: workerStackSize) {
            _ = Self.deep[index](TestExtent.choose(2_000, long: index < 3 ? 100_000 : 10_000))
        }
    }

    @Test("Thousands of steps of a macro run, or one is cancelled, and all are released", arguments: [false, true])
    func runs(isCancelled: Bool) async {
        let (tracker, count) = (LeakTracker(), TestExtent.choose(3_000, long: 10_000))
        await onThread(stackSize: workerStackSize) {
            let steps = (0..<count).map { number in
                tracker.track(
                    Step<Int, Int> { step, input in
                        if isCancelled, number == count / 2 { step.cancel() } else { step.finish(with: input + 1) }
                    })
            }
            let macro = chain(of: steps).with(input: 0)
            macro.start()
            macro.waitUntilFinished()
            #expect(macro.output == (isCancelled ? nil : count) && steps.allSatisfy(\.isFinished))
            #expect(macro.failedStep?.index == (isCancelled ? count / 2 : nil))
        }
        await tracker.expectAllReleased()
    }

    private typealias Token = LeakTracker.Token

    @Test("Steps and their values are released as they finish") func releasesSteps() async {
        let (tracker, most) = (LeakTracker(), Shared(0))
        do {
            // The thread that starts the macro holds its steps until then.
            let isStarted = Gate()
            let first = Step<Token, Token> { step, input in
                elsewhere {
                    isStarted.pass()
                    step.finish(with: input)
                }
            }
            let macro = (1..<200).reduce(MacroOperation(first)) { macro, number in
                macro.then(
                    tracker.track(
                        Step<Token, Token> { step, _ in
                            if number == 150 { most.value = tracker.alive.count }
                            step.finish(with: tracker.token("output"))
                        }))
            }
            macro.with(input: Token()).start()
            isStarted.open()
            try? await macro.finished()
            #expect(macro.error == nil)
        }
        // 50 steps to come, those in hand, and their values.
        #expect((1...60).contains(most.value), "\(most.value) are alive")
        await tracker.expectAllReleased()
    }
}
