import OperationKitTestSupport

@Suite("Ends of a chain", .hangGuard) struct MacroCancellationTests {
    enum Moment: CaseIterable, Sendable { case beforeStart, before, during, afterMain, after }
    enum End: CaseIterable, Sendable { case cancelledMacro, cancelledStep, failedStep }

    @Test("A cancellation or failure ends the chain at any moment", arguments: End.allCases, Moment.allCases)
    func everyMoment(end: End, moment: Moment) async {
        for (number, isElsewhere) in (0..<5).flatMap({ [($0, false), ($0, true)] }) {
            await runChain(end, moment, number, isElsewhere: isElsewhere)
        }
    }

    /// Ends the macro, or its step with this number, at this moment of that step.
    private func runChain(_ way: End, _ moment: Moment, _ index: Int, isElsewhere: Bool) async {
        let tracker = LeakTracker()
        do {
            let (log, ending) = (EventLog(), Shared<@Sendable () -> Void>({}))
            let trigger: @Sendable () -> Void = { ending.value() }
            let steps = (0..<5).map { number in
                tracker.track(
                    // The last one is called by its type and index.
                    Step<Int, Int>(number == 4 ? nil : "\(number)") { step, input in
                        log.add("\(number)")
                        if moment == .during, number == index { trigger() }
                        let end: @Sendable () -> Void = {
                            if moment == .afterMain, number == index { trigger() }
                            if !step.isCancelled { step.finish(with: input + 1) }
                        }
                        if isElsewhere { elsewhere(end) } else { end() }
                    })
            }
            let source = BlockOperation()
            source.start()
            if moment == .before { steps[index].bind(to: source) { _, _ in trigger() } }
            if moment == .after { steps[index].asyncCompletionBlock = { _ in trigger() } }
            let macro = tracker.track(chain(of: steps)).with(input: 0)
            ending.value = { [weak macro, weak step = steps[index]] in
                switch way {
                case .cancelledMacro: macro?.cancel()
                case .cancelledStep: step?.cancel()
                case .failedStep: step?.finish(withError: TestError.first)
                }
            }
            await Start.onBusyQueue(macro) { if moment == .beforeStart { trigger() } }
            let ran =
                switch (moment, way) {
                case (.beforeStart, .cancelledMacro): 0
                case (.beforeStart, _), (.before, _): index
                case (.during, _), (.afterMain, _), (.after, .cancelledMacro): index + 1
                case (.after, _): 5
                }
            let place: Comment = "step \(index), elsewhere: \(isElsewhere)"
            #expect(log.events == (0..<ran).map(String.init), place)
            #expect(macro.isFinished && steps.allSatisfy(\.isFinished), place)
            #expect(macro.isCancelled == (way == .cancelledMacro), place)
            if moment == .after, way != .cancelledMacro || index == 4 {
                #expect(macro.output == 5 && macro.error == nil && macro.failedStep == nil, place)
            } else {
                #expect(text(macro.error) == (way == .failedStep ? "first" : "cancelled"), place)
                let failed = macro.failedStep.map { "\($0.index) \($0.name) \($0.siblingCount ?? 0)" }
                let name = index == 4 ? "Step<Int, Int> 4" : "\(index)"
                #expect(failed == (way == .cancelledMacro ? nil : "\(index) \(name) 5") && macro.output == nil, place)
                for step in steps.dropFirst(index + 1) {
                    #expect(step.isCancelled && step.error is CancellationError, place)
                }
            }
        }
        await tracker.expectAllReleased()
    }

    @Test("A chain with an outcome from outside names no step that fails later", arguments: [false, true], 0..<4)
    func failedStep(isWaterfall: Bool, index: Int) async throws {
        let (step, seen) = (ManualOperation<Int, Int>(name: "step", ignoresCancellation: true), Shared<String?>(nil))
        let chain = isWaterfall ? Waterfall<Int, Int>().thenRun { step.with(input: $0) } : MacroOperation(step)
        let failedStep: @Sendable (AsyncOperation?) -> String? = {
            (($0 as? Waterfall<Int, Int>)?.failedStep ?? ($0 as? MacroOperation<Int, Int>)?.failedStep)?.name
        }
        chain.asyncCompletionBlock = { [weak chain] _ in seen.value = failedStep(chain) }
        chain.with(input: 1).start()
        await step.started()
        switch index {
        case 0: chain.finish(with: 5)
        case 1: chain.finish(withError: TestError.second)
        case 2: chain.cancel()
        default: #expect(failedStep(chain) == nil)
        }
        step.finish(withError: TestError.first)
        try? await chain.finished()
        #expect(failedStep(chain) == (index >= 2 ? "step" : nil) && seen.value == failedStep(chain))
        #expect(chain.output == (index == 0 ? 5 : nil))
        #expect(text(chain.error) == ["success", "second", "first", "first"][index])
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

    @Test("What holds others and never ran is freed in a loop", arguments: deep.indices) func unrun(index: Int) async {
        await onThread(stackSize: workerStackSize) {
            _ = Self.deep[index](TestExtent.choose(2_000, long: index < 3 ? 100_000 : 10_000))
        }
    }

    @Test("Thousands of steps of a macro run, or one is cancelled, and all are released", arguments: [false, true])
    func runs(isCancelled: Bool) async {
        let (tracker, count) = (LeakTracker(), TestExtent.choose(2_000, long: 10_000))
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
        }
        await tracker.expectAllReleased()
    }
}
