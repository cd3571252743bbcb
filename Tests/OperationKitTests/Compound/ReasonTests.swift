import OperationKitTestSupport

/// An operation that is cancelled with a reason fails with it, whatever kind of operation it is.
@Suite("Compound: reasons", .hangGuard) struct ReasonTests {
    /// What can be cancelled with a reason.
    enum Kind: CaseIterable {
        case leaf, task, macro, waterfall, transform, compound, nestedCompound, collectionRun

        func make() -> AsyncOperation {
            let idle = { ScriptedOperation.idle("inside") }
            switch self {
            case .leaf: return idle()
            case .task: return TaskOperation {}
            case .macro: return MacroOperation(Step<Void, Void> { _, _ in }).then(Step<Void, Void> { _, _ in })
            case .waterfall: return Waterfall<Void, Void>().thenRun { TaskOperation {} }
            case .transform: return Step<Void, Int> { _, _ in }.map { $0 }
            case .compound: return CompoundOperation(operations: [idle(), idle()])
            case .nestedCompound: return CompoundOperation(operations: [CompoundOperation(operations: [idle()])])
            case .collectionRun:
                return Strategy.parallelItems.make { _, completion in completion(nil) }.makeOperation(on: [1, 2])
            }
        }
    }

    private struct UserLeft: CancellableError {
        let isCancelled = true
    }

    // MARK: - The report

    @Test(
        "The reason is the failure of the child that it was given to, and cancels the others", arguments: Kind.allCases)
    func failure(kind: Kind) async {
        let child = kind.make()
        child.name = "child"
        // It goes on until it is cancelled.
        let stopping = ScriptedOperation.stoppable()
        let compound = CompoundOperation(operations: [stopping, child], failurePolicy: .cancelRemaining)
        child.cancel(withError: TestError.reason)
        let error = await outcome(of: compound)
        #expect(error?.suboperationErrors.map(\.name) == ["child"])
        #expect(error?.leafErrors.map { $0 as? TestError } == [.reason])
        #expect(stopping.isCancelled && !compound.isCancelled)
    }

    @Test("The same holds while the child is executing", arguments: [1, 2])
    func executing(levels: Int) async throws {
        let began = Gate()
        let leaf = ScriptedOperation.stoppable(main: { _ in began.open() })
        let inner = CompoundOperation(name: "inner", operations: [leaf])
        let compound = CompoundOperation(operations: [levels == 1 ? inner : CompoundOperation(operations: [inner])])
        async let error = outcome(of: compound)
        await began.opened()
        inner.cancel(withError: TestError.reason)
        #expect(await error?.leafErrors.map { $0 as? TestError } == [.reason])
        #expect(leaf.error is CancellationError, "Children are cancelled without a reason")
        guard case .cancelled("inner", let errors, let reason) = inner.error as? CompoundOperationError else {
            Issue.record("\(text(inner.error))")
            return
        }
        #expect(errors.isEmpty && reason as? TestError == .reason)
    }

    @Test("The errors at the ends of the tree are those of the children, and then the reason")
    func order() async {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        expectNoError {
            try compound.addOperations([
                ThrowingBlockOperation { throw TestError.first },
                ThrowingBlockOperation { [unowned compound] in
                    compound.cancel(withError: TestError.reason)
                    throw TestError.second
                },
            ])
        }
        let error = await outcome(of: CompoundOperation(operations: [compound]))
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first, .second, .reason])
    }

    @Test("A reason that stands for a cancellation is no failure", arguments: Kind.allCases)
    func noFailure(kind: Kind) async {
        for reason in [CancellationError(), UserLeft()] as [any Error] {
            let child = kind.make()
            child.cancel(withError: reason)
            let compound = CompoundOperation(operations: [child, BlockOperation {}], failurePolicy: .cancelRemaining)
            let error = await outcome(of: compound)
            #expect(error == nil, "\(String(describing: error))")
            #expect(child.error?.isCancellation == true)
            #expect((child.error as? CompoundOperationError)?.leafErrors.isEmpty ?? true)
        }
    }

    // MARK: - What follows from it

    @Test("A recovery is asked about a reason as about any other error", arguments: [false, true])
    func recover(isCancelled: Bool) async {
        let source = Step<Int, Int> { step, _ in
            if isCancelled {
                step.cancel(withError: TestError.reason)
            } else {
                step.finish(withError: TestError.reason)
            }
        }
        let recovered = source.recover { $0 as? TestError == .reason ? 7 : 0 }
        recovered.input = 1
        await Start.byHand(recovered)
        #expect(recovered.output == 7 && source.isCancelled == isCancelled)
    }

    @Test("An error is replaced also where it is a reason")
    func mapError() async {
        let source = Step<Int, Int> { _, _ in }
        source.cancel(withError: TestError.reason)
        let mapped = source.mapError { $0 as? TestError == .reason ? TestError.second : TestError.first }
        mapped.input = 1
        await Start.byHand(mapped)
        #expect(text(mapped.error) == "second")
    }

    @Test("A recovery is asked about what work reports that was cancelled, if that is a failure")
    func recoverWork() async {
        let failing = Blunt { $0.finish(withError: TestError.first) }.recover { _ in 7 }
        let stopped = Blunt { $0.finish(withError: UserLeft()) }.recover { _ in 7 }
        for operation in [failing, stopped] { operation.input = 1 }
        await Start.byHand(failing)
        await Start.byHand(stopped)
        #expect(failing.output == 7)
        #expect(stopped.error is UserLeft)
    }

    /// Is cancelled by its own work, which then reports something.
    private final class Blunt: IOOperation<Int, Int>, @unchecked Sendable {
        private let work: @Sendable (Blunt) -> Void

        init(_ work: @escaping @Sendable (Blunt) -> Void) {
            self.work = work
            super.init()
        }

        override func main(input: Int) {
            cancel()
            work(self)
        }
    }
}
