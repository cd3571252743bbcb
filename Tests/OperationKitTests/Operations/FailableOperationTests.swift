import OperationKitTestSupport

/// Operations of one's own that report an error: everything that asks how an operation ended gets the same answer.
@Suite("FailableOperation", .hangGuard) struct FailableOperationTests {
    /// A synchronous operation that stores its error, as the documentation shows it.
    private final class Decode: Operation, FailableOperation, @unchecked Sendable {
        private let failure: (any Error)?
        private(set) var error: (any Error)?

        init(failure: (any Error)? = nil) {
            self.failure = failure
            super.init()
            name = "decode"
        }

        override func main() { error = failure }

        /// It is cancelled before it begins, so that Foundation does not call `main()`.
        static func cancelled() -> Decode {
            let operation = Decode()
            operation.cancel()
            return operation
        }
    }

    private final class Dependent: AsyncOperation, @unchecked Sendable {
        override func main() { finish() }
    }

    private struct Coordinator: ParallelOperationCoordinator {}

    /// Why an operation did not run that requires the success of another one.
    private func causeOfDependent(on operation: Operation) async throws -> (any Error)? {
        let dependent = Dependent()
        dependent.requireSuccess(of: operation)
        let queue = OperationQueue()
        // In this order: on Linux, a queue may not notice a dependency that finishes during the addition.
        queue.addOperation(dependent)
        queue.addOperation(operation)
        try await queue.allOperationsFinished()
        guard case .dependencyFailed(_, "decode", let cause)? = dependent.error as? DependencyError else { return nil }
        return cause
    }

    @Test("The error of a failable operation reaches its compound, its coordinator, its dependents and `run`")
    func reportsError() async throws {
        let compound = CompoundOperation(operations: [Decode(failure: TestError.first)])
        await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(compound) }
        let failures = (compound.error as? CompoundOperationError)?.suboperationErrors ?? []
        #expect(failures.map(\.name) == ["decode"])
        #expect(failures.first?.error as? TestError == .first)

        await #expect(throws: TestError.first) { try await OperationQueue().run(Decode(failure: TestError.first)) }

        let slots = await Coordinator().performOperations([Decode(failure: TestError.first), Decode()])
        #expect(slots.map { $0 as? TestError } == [.first, nil])

        #expect(try await causeOfDependent(on: Decode(failure: TestError.first)) as? TestError == .first)
    }

    @Test("A cancelled failable operation without an error is no success for coordinators, dependents and `run`")
    func cancelledWithoutError() async throws {
        await #expect(throws: CancellationError.self) { try await OperationQueue().run(Decode.cancelled()) }

        let slots = await Coordinator().performOperations([Decode.cancelled()])
        #expect(slots.count == 1 && slots[0] is CancellationError)

        #expect(try await causeOfDependent(on: Decode.cancelled()) is CancellationError)
    }

    @Test(
        "A failable child that was cancelled is no failure of its compound",
        arguments: [Decode.cancelled(), Decode(failure: CancellationError())])
    func cancelledChild(child: Operation) async throws {
        try await OperationQueue().run(CompoundOperation(operations: [child, Decode()]))
    }
}
