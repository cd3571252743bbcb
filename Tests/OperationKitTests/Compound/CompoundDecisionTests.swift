import OperationKitTestSupport

@Suite("Compound: decision about the outcome", .hangGuard) struct CompoundDecisionTests {
    private struct Case: Sendable {
        var child: @Sendable (CompoundOperation) throws -> Void = { _ in }
        let decision: ScriptedCompound.Decision
        var asked = "success"
        let outcome: String
    }

    private static let cases = [
        Case(
            child: { _ in throw TestError.first }, decision: { _, _ in }, asked: "sync failed [0 child]",
            outcome: "success"),
        Case(child: { $0.cancel() }, decision: { _, _ in }, asked: "sync cancelled []", outcome: "success"),
        Case(decision: { _, _ in throw TestError.first }, outcome: "first"),
        // What other code does meanwhile takes effect, unless it throws an error of its own.
        Case(
            decision: { compound, _ in compound.cancel(withError: TestError.reason) },
            outcome: "sync cancelled (reason) []"),
        Case(
            decision: { compound, _ in
                compound.cancel()
                throw TestError.second
            }, outcome: "second"),
        Case(
            decision: { compound, _ in
                compound.cancel(withError: TestError.reason)
                throw CancellationError()
            }, outcome: "sync cancelled (reason) []"),
        Case(
            decision: { compound, _ in
                compound.cancel(withError: TestError.reason)
                throw CompoundOperationError.suboperationFailure(name: "other", errors: [])
            }, outcome: "sync cancelled (reason) []"),
        Case(
            child: { _ in throw TestError.first },
            decision: { compound, _ in
                compound.cancel(withError: TestError.reason)
                throw TestError.second
            }, asked: "sync failed [0 child]", outcome: "second"),
        Case(
            child: { _ in throw TestError.first },
            decision: { compound, error in
                compound.cancel(withError: TestError.reason)
                throw error ?? CancellationError()
            }, asked: "sync failed [0 child]", outcome: "sync cancelled (reason) [0 child]"),
        Case(
            child: { _ in throw TestError.first },
            decision: { compound, _ in
                compound.cancel()
                throw CancellationError()
            }, asked: "sync failed [0 child]", outcome: "sync cancelled [0 child]"),
        Case(decision: { compound, _ in compound.finish(withError: TestError.first) }, outcome: "first"),
        // Nothing can be added any more.
        Case(
            decision: { compound, _ in
                #expect(throws: CompoundAdditionError.self) { try compound.addOperation(BlockOperation()) }
            }, outcome: "success"),
    ]

    @Test(
        "A compound is asked once, after its children, with what they make of it, and may end otherwise",
        arguments: cases.indices)
    func decides(index: Int) async throws {
        let (log, example) = (EventLog(), Self.cases[index])
        let compound = ScriptedCompound(
            "sync",
            decide: { compound, error in
                log.add(brief(error))
                try example.decision(compound, error)
            })
        try compound.addOperation(name: "child") { [unowned compound] in
            log.add("child")
            try example.child(compound)
        }
        try? await OperationQueue().run(compound)
        #expect(log.events == ["child", example.asked] && brief(compound.error) == example.outcome)
    }

    @Test("A compound without children is asked, too") func empty() async {
        let compound = ScriptedCompound(decide: { _, error in throw error == nil ? TestError.first : .second })
        await #expect(throws: TestError.first) { try await OperationQueue().run(compound) }
    }

    enum Ending: CaseIterable { case cancelledBefore, finishedBefore, preparationThrew, cycle, finishedFromOutside }

    @Test("A compound is not asked when no child could run, or when it was finished", arguments: Ending.allCases)
    func notAsked(_ ending: Ending) async {
        let compound = ScriptedCompound(
            prepare: { _ in if ending == .preparationThrew { throw TestError.first } },
            decide: { _, _ in Issue.record("It is asked.") })
        let child = AsyncBlockOperation { finish in
            if ending == .finishedFromOutside { compound.finish(withError: TestError.first) }
            finish(nil)
        }
        try? compound.addOperation(child)
        switch ending {
        case .cancelledBefore: compound.cancel()
        case .finishedBefore: compound.finish(withError: TestError.first)
        case .cycle:
            let other = AsyncOperation()
            try? compound.addOperation(other)
            other.addDependency(child)
            child.addDependency(other)
        case .preparationThrew, .finishedFromOutside: break
        }
        await #expect(throws: (any Error).self) { try await OperationQueue().run(compound) }
    }

    @Test("Failures of some children are dropped in one word, and the others keep their counts")
    func removal() async throws {
        let failing = ThrowingBlockOperation(name: "needed") { throw TestError.first }
        let dependent = ScriptedOperation("dependent")
        dependent.requireSuccess(of: failing)
        for others in [[failing, dependent], []] as [[Operation]] {
            let optional = ThrowingBlockOperation(name: "optional") { throw TestError.second }
            let sync = ScriptedCompound(
                "sync", operations: [optional] + others,
                decide: { if let error = $1?.removingFailures(where: { $0.name == "optional" }) { throw error } })
            let errors = await outcome(of: sync)?.suboperationErrors ?? []
            #expect(errors.map(\.name) == (others.isEmpty ? [] : ["needed"]))
            #expect(errors.allSatisfy { $0.siblingCount == 3 && $0.blockedCount == 1 })
        }
        let cancelled = CompoundOperationError.cancelled(
            name: "sync", errors: [SuboperationError(name: "optional", index: 0, error: TestError.first)])
        #expect(cancelled.removingFailures { _ in true }?.isCancellation == true)
        let cycle = CompoundOperationError.dependencyCycle(name: "sync", path: ["a"])
        #expect(cycle.removingFailures { _ in true }?.localizedDescription == cycle.localizedDescription)
    }
}
