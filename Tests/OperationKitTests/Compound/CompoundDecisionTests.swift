import OperationKitTestSupport

@Suite("Compound: decision about the outcome", .hangGuard) struct CompoundDecisionTests {
    @Test("A compound is asked once, after its children, with their failures, and may succeed nevertheless")
    func succeedsNevertheless() async throws {
        let compound = Deciding { _, _ in }
        let child = try compound.addOperation(name: "child") { throw TestError.numbered(1) }
        try await OperationQueue().run(compound)
        #expect(compound.asked.value == ["1 of 1"])
        #expect(child.isFinished)
        #expect(compound.error == nil)
    }

    private static let decisions: [(decide: Deciding.Decision, outcome: String)] = [
        ({ _, _ in throw TestError.first }, "first"),
        // What other code does meanwhile takes effect, unless it throws an error of its own.
        ({ compound, _ in compound.cancel(withError: TestError.reason) }, "deciding cancelled (reason) []"),
        (
            { compound, _ in
                compound.cancel()
                throw TestError.second
            }, "second"
        ), ({ compound, _ in compound.finish(withError: TestError.first) }, "first"),
    ]

    @Test("A compound whose children succeeded may fail, or be ended while it decides", arguments: decisions.indices)
    func failsNevertheless(index: Int) async throws {
        let compound = Deciding(Self.decisions[index].decide)
        compound.name = "deciding"
        try compound.addOperation {}
        try? await OperationQueue().run(compound)
        #expect(compound.asked.value == ["nil"] && brief(compound.error) == Self.decisions[index].outcome)
    }

    @Test("Nothing can be added while a compound decides")
    func addition() async throws {
        let compound = Deciding { compound, _ in try compound.addOperation(BlockOperation()) }
        await #expect(throws: CompoundAdditionError.self) { try await OperationQueue().run(compound) }
    }

    @Test("A compound is not asked when no child could run, or when it was finished", arguments: Ending.allCases)
    func notAsked(_ ending: Ending) async {
        let compound = Deciding { _, _ in }
        let child = AsyncBlockOperation { finish in
            if ending == .finishedFromOutside { compound.finish(withError: TestError.numbered(3)) }
            finish(nil)
        }
        try? compound.addOperation(child)
        switch ending {
        case .cancelledBefore: compound.cancel()
        case .finishedBefore: compound.finish(withError: TestError.numbered(3))
        case .preparationThrew: compound.preparation.change { $0 = TestError.numbered(3) }
        case .cycle:
            let other = AsyncOperation()
            try? compound.addOperation(other)
            other.addDependency(child)
            child.addDependency(other)
        case .finishedFromOutside: break
        }
        await #expect(throws: (any Error).self) { try await OperationQueue().run(compound) }
        #expect(compound.asked.value.isEmpty)
        #expect(compound.error != nil)
    }

    @Test("A cancelled compound is asked with its cancellation, and may succeed nevertheless")
    func cancelled() async throws {
        let compound = Deciding { _, _ in }
        try compound.addOperation(
            AsyncBlockOperation { finish in
                compound.cancel()
                finish(nil)
            })
        try await OperationQueue().run(compound)
        #expect(compound.asked.value == ["cancelled"])
        #expect(compound.isCancelled && compound.error == nil)
    }

    enum Ending: CaseIterable { case cancelledBefore, finishedBefore, preparationThrew, cycle, finishedFromOutside }

    private final class Deciding: CompoundOperation, @unchecked Sendable {
        let asked = Shared<[String]>([])
        let preparation = Shared<TestError?>(nil)
        typealias Decision = @Sendable (Deciding, CompoundOperationError?) throws -> Void

        private let decision: Decision

        init(_ decision: @escaping Decision) {
            self.decision = decision
            super.init()
        }

        override func prepare() throws {
            if let error = preparation.value { throw error }
        }

        override func childrenDidFinish(_ error: CompoundOperationError?) throws {
            let text =
                switch error {
                case .suboperationFailure(_, let errors): "\(errors.count) of \(errors[0].siblingCount ?? 0)"
                case .cancelled: "cancelled"
                case .dependencyCycle: "cycle"
                case nil: "nil"
                }
            asked.change { $0.append(text) }
            try decision(self, error)
        }
    }

    @Test("Failures of some children are dropped in one word, and the others keep their counts")
    func removal() async throws {
        final class Sync: CompoundOperation, @unchecked Sendable {
            override func childrenDidFinish(_ error: CompoundOperationError?) throws {
                if let error = error?.removingFailures(where: { $0.name == "optional" }) { throw error }
            }
        }
        let failing = ThrowingBlockOperation { throw TestError.first }
        failing.name = "needed"
        let dependent = ScriptedOperation("dependent")
        dependent.requireSuccess(of: failing)
        for others in [[failing, dependent], []] as [[Operation]] {
            let optional = ThrowingBlockOperation { throw TestError.second }
            optional.name = "optional"
            let sync = Sync(name: "sync", operations: [optional] + others)
            try? await OperationQueue().run(sync)
            let errors = (sync.error as? CompoundOperationError)?.suboperationErrors ?? []
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
