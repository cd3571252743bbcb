import OperationKitTestSupport

/// Macros and waterfalls that are continued, started or taken apart at the wrong time. The article *Misuse* lists it
/// all.
@Suite("Misuse: continuing macros and waterfalls", .hangGuard) struct ContinuationMisuseTests {
    enum Chain: CaseIterable, Sendable {
        case macro, waterfall

        /// A chain with the name “chain” around an operation.
        func make(_ work: IOOperation<Int, Int>) -> IOOperation<Int, Int> {
            let chain: IOOperation<Int, Int> =
                self == .macro ? MacroOperation(work) : Waterfall<Int, Int>().thenRun { work.with(input: $0) }
            return chain.named("chain").with(input: 1)
        }

        func continued(
            _ chain: IOOperation<Int, Int>, by next: Step<Int, Int> = .increment("next")
        ) -> IOOperation<Int, Int> {
            let longer: IOOperation<Int, Int>? =
                self == .macro
                ? (chain as? MacroOperation<Int, Int>)?.then(next) : (chain as? Waterfall<Int, Int>)?.then { $0 + 1 }
            return longer!.with(input: 1)
        }
    }

    private let work = Step<Int, Int>.increment("work")

    @Test("A chain is continued once, and then not started", arguments: Chain.allCases)
    func consumed(chain: Chain) async {
        let shorter = chain.make(work)
        let (longer, other) = (chain.continued(shorter), chain.continued(shorter))
        for operation in [shorter, other] {
            await Start.byHand(operation)
            #expect(operation.error as? ChainError == .consumed(chain: "chain") && !work.isFinished)
        }
        shorter.cancel()
        (shorter as? Waterfall<Int, Int>)?.suspend()
        await Start.byHand(longer)
        #expect(longer.output == 3 && longer.name == "chain")
    }

    @Test("A chain that was cancelled cancels the longer one", arguments: Chain.allCases, [nil, TestError.first])
    func cancelled(chain: Chain, reason: TestError?) async {
        let shorter = chain.make(work)
        if let reason { shorter.cancel(withError: reason) } else { shorter.cancel() }
        let next = Step<Int, Int>.increment("next")
        let longer = chain.continued(shorter, by: next)
        #expect(longer.isCancelled && longer.cancellationReason as? TestError == reason)
        #expect(next.isCancelled == (chain == .macro))
        await Start.byHand(longer)
        #expect(longer.error?.isCancellation == (reason == nil) && longer.error as? TestError == reason)
        #expect(work.output == nil)
    }

    @Test("A chain that has its end hands on an error, and no output", arguments: Chain.allCases, [false, true])
    func ended(chain: Chain, hasFailed: Bool) async {
        let shorter = chain.make(work)
        if hasFailed { shorter.finish(withError: TestError.first) } else { shorter.finish(with: 5) }
        let longer = chain.continued(shorter)
        await Start.byHand(longer)
        #expect(work.isFinished == (hasFailed && chain == .macro))
        await Start.byHand(shorter)
        #expect(shorter.error as? TestError == (hasFailed ? .first : nil) && shorter.output == (hasFailed ? nil : 5))
        if hasFailed {
            #expect(longer.error as? TestError == .first)
        } else {
            #expect(longer.error as? ChainError == .alreadyStarted(chain: "chain"))
        }
        #expect(work.output == nil)
    }

    @Test("`then` on a chain that runs or has ended is an error with a name", arguments: Chain.allCases, [false, true])
    func started(chain: Chain, hasEnded: Bool) async {
        let began = Gate()
        let work = Step<Int, Int>("work") { _, _ in began.open() }
        let shorter = chain.make(work)
        shorter.start()
        await began.opened()
        if hasEnded {
            work.finish(with: 2)
            try? await shorter.finished()
        }
        let longer = chain.continued(shorter)
        await Start.byHand(longer)
        #expect(longer.error as? ChainError == .alreadyStarted(chain: "chain"))
        work.finish(with: 2)
        try? await shorter.finished()
        #expect(shorter.output == 2 && shorter.error == nil)
    }

    @Test("The first of two steps of another operation is the one that is reported") func twoRefusals() async {
        let steps = ["first", "second"].map { IOBlockOperation<Int, Int>(name: $0) { $0 } }
        let (owner, macro) = (CompoundOperation(operations: steps), MacroOperation(steps[0]).then(steps[1]))
        macro.name = "macro"
        await Start.byHand(macro.with(input: 1))
        #expect(macro.error as? ChainError == .alreadyUsed(operation: "first", chain: "macro"))
        withExtendedLifetime(owner) {}
    }

    @Test("`then` on a chain that is a child of a compound is an error with its name", arguments: Chain.allCases)
    func childOfACompound(chain: Chain) async {
        let child = chain.make(work)
        let compound = CompoundOperation(operations: [child])
        let longer = chain.continued(child)
        await Start.byHand(longer)
        #expect(longer.error as? ChainError == .alreadyUsed(operation: "chain", chain: "chain"))
        withExtendedLifetime(compound) {}
    }

    @Test("A step that is started by hand too early, or after a failure, ends with that", arguments: [false, true])
    func startedByHand(afterAFailure: Bool) async {
        let first = Step<Int, Int>("first") { step, _ in
            if afterAFailure { step.finish(withError: TestError.first) }
        }.with(input: 1)
        let macro = MacroOperation(first).then(work)
        (afterAFailure ? first : macro).start()
        work.start()
        let expected = afterAFailure ? "first" : "cancelled"
        #expect(text(work.error) == expected && !macro.isFinished)
        if afterAFailure { macro.start() } else { first.finish(with: 2) }
        try? await macro.finished()
        #expect(text(macro.error) == expected)
    }

    @Test("main() of a compound by hand while it runs runs no child again") func mainWhileItRuns() async throws {
        let child = ManualOperation<Void, Void>()
        let compound = CompoundOperation(operations: [child])
        compound.start()
        compound.main()
        await child.started()
        compound.main()
        child.finish()
        try await compound.finished()
        #expect(child.calls == [.main])
    }
}
