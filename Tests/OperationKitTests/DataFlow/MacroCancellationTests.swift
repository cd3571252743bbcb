import OperationKitTestSupport

@Suite("Cancellation of a chain", .hangGuard) struct MacroCancellationTests {
    enum Moment: CaseIterable, Sendable { case beforeStart, before, during, afterMain, after }
    enum Target: CaseIterable, Sendable { case macro, step }

    /// Cancels the macro or the step, whose chain it does not hold.
    private final class Trigger: @unchecked Sendable {
        weak var operation: Operation?
        func callAsFunction() { operation?.cancel() }
    }

    @Test(
        "Cancelling a macro or an unfinished step ends the chain at any moment", arguments: Target.allCases,
        Moment.allCases)
    func everyMoment(target: Target, moment: Moment) async {
        for (number, isElsewhere) in (0..<5).flatMap({ [($0, false), ($0, true)] }) {
            await cancel(target, moment, number, isElsewhere: isElsewhere)
        }
    }

    /// Cancels the macro, or its step with this number, at this moment of that step.
    private func cancel(_ target: Target, _ moment: Moment, _ index: Int, isElsewhere: Bool) async {
        let tracker = LeakTracker()
        do {
            let (log, trigger) = (EventLog(), Trigger())
            let steps = (0..<5).map { number in
                tracker.track(
                    Step<Int, Int>("\(number)") { step, input in
                        log.add("\(number)")
                        if moment == .during, number == index { trigger() }
                        let end: @Sendable () -> Void = {
                            if moment == .afterMain, number == index { trigger() }
                            if !step.isCancelled { step.finish(with: input + 1) }
                        }
                        if isElsewhere { elsewhere(end) } else { end() }
                    })
            }
            if moment == .before { steps[index].bind(to: BlockOperation.finished()) { _, _ in trigger() } }
            if moment == .after { steps[index].asyncCompletionBlock = { _ in trigger() } }
            let macro = tracker.track(chain(of: steps)).with(input: 0)
            trigger.operation = target == .macro ? macro : steps[index]
            await Start.onBusyQueue(macro) { if moment == .beforeStart { trigger() } }
            let ran =
                switch (moment, target) {
                case (.beforeStart, .macro): 0
                case (.beforeStart, .step), (.before, _): index
                case (.during, _), (.afterMain, _), (.after, .macro): index + 1
                case (.after, .step): 5
                }
            let place: Comment = "step \(index), elsewhere: \(isElsewhere)"
            #expect(log.events == (0..<ran).map(String.init), place)
            #expect(macro.isFinished && steps.allSatisfy(\.isFinished), place)
            #expect(macro.isCancelled == (target == .macro), place)
            if moment == .after, target == .step || index == 4 {
                #expect(macro.output == 5 && macro.error == nil, place)
            } else {
                #expect(macro.error is CancellationError && macro.output == nil, place)
                #expect(macro.failedStep?.index == (target == .macro ? nil : index), place)
                for step in steps.dropFirst(index + 1) {
                    #expect(step.isCancelled && step.error is CancellationError, place)
                }
            }
        }
        await tracker.expectAllReleased()
    }
}

@Suite("The step that ended a chain", .hangGuard) struct FailedStepTests {
    @Test("A chain with an outcome from outside names no step that fails later", arguments: [false, true], 0..<4)
    func failedStep(isWaterfall: Bool, index: Int) async throws {
        let (step, seen) = (ManualOperation<Int, Int>(name: "step", ignoresCancellation: true), Shared(false))
        let chain = isWaterfall ? Waterfall<Int, Int>().thenRun { step.with(input: $0) } : nil
        let macro = isWaterfall ? nil : MacroOperation(step)
        let whole: IOOperation<Int, Int> = try #require(chain ?? macro)
        whole.asyncCompletionBlock = { [weak chain, weak macro] _ in
            seen.value = (chain?.failedStep ?? macro?.failedStep)?.name == "step"
        }
        whole.with(input: 1).start()
        await step.started()
        switch index {
        case 0: whole.finish(with: 5)
        case 1: whole.finish(withError: TestError.second)
        case 2: whole.cancel()
        default: #expect(chain?.failedStep ?? macro?.failedStep == nil)
        }
        step.finish(withError: TestError.first)
        try? await whole.finished()
        #expect((chain?.failedStep ?? macro?.failedStep)?.name == (index >= 2 ? "step" : nil))
        #expect(seen.value == (index >= 2) && whole.output == (index == 0 ? 5 : nil))
        #expect(text(whole.error) == ["success", "second", "first", "first"][index])
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
    private static func nested<Input>(
        _ count: Int, _ innermost: IOOperation<Input, Int>,
        _ wrap: (IOOperation<Input, Int>) -> IOOperation<Input, Int>
    ) -> Operation {
        (0..<count).reduce(innermost) { last, _ in wrap(last) }
    }

    private static var step: Step<Int, Int> { .increment("step") }

    /// Operations that hold each other, so many deep.
    private static let deep: [@Sendable (_ count: Int) -> Operation] = [
        { nested($0, step) { last in last.map { $0 } } },
        { nested($0, step) { last in last.recoverRun { _ in TaskOperation { 1 } } } },
        { nested($0, TaskOperation { 1 }) { last in [last].gathered().map { $0[0] } } },
        { count in chain(of: (0..<count).map { _ in step }) },
        { nested($0, step) { MacroOperation($0).then(step) } },
        { nested($0, step) { MacroOperation(step).then($0) } },
        { nested($0, step) { MacroOperation($0) } },
        { count in
            (0..<count).reduce(AsyncOperation()) { last, _ in
                let next = AsyncOperation()
                next.bind(to: last) { _, _ in }
                return next
            }
        },
        { count in
            (0..<count).reduce(CompoundOperation()) { last, _ in
                let (next, child) = (CompoundOperation(), AsyncOperation())
                child.addDependency(last)
                expectNoError { try next.addOperation(child) }
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
        let (tracker, count) = (LeakTracker(), TestExtent.choose(2_000, long: 10_000))
        await onThread(stackSize: workerStackSize) {
            let steps = (0..<count).map { number in
                let step = Step<Int, Int> { step, input in
                    if isCancelled, number == count / 2 { step.cancel() } else { step.finish(with: input + 1) }
                }
                return tracker.track(step)
            }
            let macro = chain(of: steps).with(input: 0)
            macro.start()
            macro.waitUntilFinished()
            #expect(macro.output == (isCancelled ? nil : count) && steps.allSatisfy(\.isFinished))
            #expect(macro.failedStep?.index == (isCancelled ? count / 2 : nil))
        }
        await tracker.expectAllReleased()
    }
}
