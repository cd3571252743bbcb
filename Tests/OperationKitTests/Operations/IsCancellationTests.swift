import OperationKitTestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Cancellations as errors", .hangGuard) struct IsCancellationTests {
    private enum Stop: CancellableError, LocalizedError {
        case byUser, byFailure

        var isCancelled: Bool { self == .byUser }
        var errorDescription: String? { self == .byUser ? "The user pressed Stop." : "It broke." }
    }

    private static func failure(_ error: any Error) -> SuboperationError {
        SuboperationError(name: "a", index: 0, error: error)
    }

    private static func dependency(_ error: any Error) -> DependencyError {
        .dependencyFailed(operation: "b", dependency: "a", error: error)
    }

    static var cancellations: [any Error] {
        [
            CancellationError(), CancellationError() as NSError, Stop.byUser,
            URLError(.cancelled), URLError(.cancelled) as NSError, CocoaError(.userCancelled),
            NSError(domain: NSCocoaErrorDomain, code: CocoaError.Code.userCancelled.rawValue),
            CompoundOperationError.cancelled(name: "c", errors: []),
            CompoundOperationError.cancelled(name: "c", errors: [], reason: CancellationError()),
            CompoundOperationError.cancelled(
                name: "c", errors: [],
                reason: CompoundOperationError.cancelled(name: "d", errors: [], reason: Stop.byUser)),
            failure(CancellationError()), dependency(Stop.byUser),
            dependency(CompoundOperationError.cancelled(name: "c", errors: [])),
            CompoundOperationError.cancelled(name: "c", errors: []) as NSError, failure(CancellationError()) as NSError,
        ]
    }

    static var failures: [any Error] {
        [
            TestError.first, Stop.byFailure, URLError(.timedOut), CocoaError(.fileNoSuchFile),
            NSError(domain: "test", code: -999), IOOperationError.missingInput(operation: "a"),
            LostFinishError.operation(name: "a"),
            CompoundOperationError.cancelled(name: "c", errors: [], reason: TestError.reason),
            CompoundOperationError.cancelled(name: "c", errors: [failure(TestError.first)]),
            CompoundOperationError.suboperationFailure(name: "c", errors: []),
            CompoundOperationError.dependencyCycle(name: "c", path: []),
            failure(TestError.first), dependency(TestError.first),
            DependencyError.dependencyUnfinished(operation: "b", dependency: "a"), failure(TestError.first) as NSError,
            CompoundOperationError.cancelled(name: "c", errors: [failure(TestError.first)]) as NSError,
        ]
    }

    /// The error as a continuation throws it that is resumed with it: wrapped once more.
    private static func resumed(_ error: any Error) async -> any Error {
        do {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                continuation.resume(throwing: error)
            }
            return error
        } catch {
            return error
        }
    }

    @Test(
        "No child fails, and no item, with an error that stands for a cancellation", arguments: cancellations.indices,
        [false, true])
    func noFailure(index: Int, ofContinuation: Bool) async {
        let error = ofContinuation ? await Self.resumed(Self.cancellations[index]) : Self.cancellations[index]
        #expect(error.isCancellation)
        let child = ThrowingBlockOperation { throw error }
        let numbers = Strategy.parallelItems.make(policy: .cancelRemaining) { $1($0 == [0] ? error : nil) }
        let run = numbers.makeOperation(on: Array(0..<10))
        let compound = CompoundOperation(operations: [child, run], failurePolicy: .cancelRemaining)
        await #expect(throws: Never.self) { try await OperationQueue().run(compound) }
        #expect(run.errors.count { $0 != nil } == 1)
    }

    @Test("An error says the same when a continuation has thrown it") func texts() async {
        struct Plain: Error { let number = 1 }
        struct Reasoned: LocalizedError { let failureReason: String? = "The disk is full." }
        for error in Self.cancellations + Self.failures + [Plain(), Reasoned()] {
            #expect(await Self.resumed(error).eventText == error.eventText)
        }
        #expect(Plain().eventText == "Plain(number: 1)" && Reasoned().eventText.hasSuffix("The disk is full."))
    }

    @Test(
        "Each of the other errors is a failure of its child, and of its item", arguments: failures.indices,
        [false, true])
    func isFailure(index: Int, ofContinuation: Bool) async {
        let error = ofContinuation ? await Self.resumed(Self.failures[index]) : Self.failures[index]
        #expect(!error.isCancellation)
        let child = ThrowingBlockOperation { throw error }
        let run = Strategy.sequentialItems.make(policy: .cancelRemaining) { $1(error) }.makeOperation(on: [1, 2, 3])
        let compound = CompoundOperation(operations: [child, run])
        await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(compound) }
        #expect((compound.error as? CompoundOperationError)?.suboperationErrors.count == 2)
        #expect(run.errors.map { $0.map(\.isCancellation) } == [false, true, true])
    }

    @Test(
        "The reason takes the place of what work reports that was stopped, whatever that is called, which stands without one",
        arguments: [TestError.reason, nil],
        [CancellationError(), URLError(.cancelled), Stop.byUser] as [any Error & Sendable])
    func reasonWins(reason: TestError?, error: any Error & Sendable) async {
        let holder = Shared<AsyncOperation?>(nil)
        let cancel = { @Sendable in
            if let reason { holder.value?.cancel(withError: reason) } else { holder.value?.cancel() }
        }
        let stop: @Sendable () throws -> Void = {
            cancel()
            throw error
        }
        let operations: [AsyncOperation] = [
            ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: error) }),
            AsyncBlockOperation { finish in finish.onCancel { finish(error) } },
            IOBlockOperation<Void, Int>.finishing { _, finish in finish.onCancel { finish(error) } },
            TaskOperation {
                do { try await cancellation() } catch _ { throw error }
            },
            ThrowingBlockOperation { try stop() }, IOBlockOperation<Void, Void> { try stop() },
            IOBlockOperation<Void, Void>.observing { _, _ in try stop() },
            IOBlockOperation<Void, Void>.finishing { _, finish in do { try stop() } catch { finish(error) } },
        ]
        for operation in operations {
            holder.value = operation
            operation.start()
            cancel()
            try? await operation.finished()
            #expect(operation.error.map { "\($0)" } == "\(reason ?? error)", "\(type(of: operation))")
        }
        holder.value = nil
    }

    @Test(
        "The reason takes the place of an outcome that was given before, if that says that the work was stopped",
        arguments: [TestError.reason, Stop.byUser] as [any Error & Sendable])
    func reasonComesLater(_ reason: any Error & Sendable) async {
        for error in [CancellationError(), URLError(.cancelled), TestError.first] as [any Error] {
            for operation in [ScriptedOperation(), CompoundOperation()] as [AsyncOperation] {
                operation.finish(withError: error)
                operation.cancel(withError: reason)
                operation.start()
                try? await operation.finished()
                let expected = error is TestError ? error : reason
                #expect(operation.error.map { "\($0)" } == "\(expected)")
            }
        }
    }

    @Test("The reason takes the place of what a compound makes of its end, unless that is the compound's own error")
    func decisions() async {
        for replacement in [URLError(.cancelled), nil] {
            let child = ScriptedOperation(main: { _ in }, didCancel: { $0.finish() })
            let compound = ScriptedCompound(
                operations: [child], decide: { if let error = replacement ?? $1 as (any Error)? { throw error } })
            compound.start()
            compound.cancel(withError: Stop.byUser)
            try? await compound.finished()
            #expect(replacement == nil ? compound.error is CompoundOperationError : compound.error is Stop)
        }
    }

    @Test("No description passes on what Foundation says of a cancellation")
    func descriptions() {
        for error in [CancellationError(), CancellationError() as NSError, URLError(.cancelled)] as [any Error] {
            let compound = CompoundOperationError.suboperationFailure(
                name: "c",
                errors: [Self.failure(error), SuboperationError(name: "d", index: 1, error: TestError.first)])
            #expect(compound.localizedDescription.hasPrefix("“c”: 2 operations failed: “a” was cancelled; “d”: "))
            #expect(Self.failure(error).localizedDescription == "“a” was cancelled.")
            #expect(
                Self.dependency(error).localizedDescription
                    == "The operation “b” did not run, because “a” was cancelled.")
            #expect(
                CompoundOperationError.cancelled(name: "c", errors: [], reason: error).localizedDescription
                    == "“c” was cancelled.")
        }
        #expect(
            CompoundOperationError.cancelled(name: "c", errors: [], reason: Stop.byUser).localizedDescription
                == "“c” was cancelled (The user pressed Stop).")
        let inner = CompoundOperationError.cancelled(name: "c", errors: [])
        #expect(
            Self.dependency(inner).localizedDescription
                == "The operation “b” did not run, because “a” was cancelled.")
    }

    @Test("Reasons inside reasons are followed on a small stack")
    func deepReasons() async {
        await onThread(stackSize: workerStackSize) {
            var error: any Error = CancellationError()
            for level in 0..<10_000 {
                error = Self.failure(CompoundOperationError.cancelled(name: "\(level)", errors: [], reason: error))
            }
            #expect(error.isCancellation)
        }
    }

    private struct CountingError: CancellableError {
        let questions = Shared(0)

        var isCancelled: Bool { questions.increment() < 0 }
    }

    @Test("The question takes no longer for budgets exhausted inside each other") func nestedBudgets() {
        let innermost = CountingError()
        var error: any Error = innermost
        for depth in 0..<20_000 {
            #expect(!error.isCancellation)
            error = RetryError.budgetExhausted(operation: "\(depth)", attempts: 1, error: error)
        }
        #expect(innermost.questions.value <= 3)
        let cancelled = RetryError.budgetExhausted(operation: "retry", attempts: 1, error: CancellationError())
        #expect(cancelled.isCancellation)
        // They are freed one by one, because nested calls would overflow the stack.
        while case RetryError.budgetExhausted(_, _, let inner) = error { error = inner }
    }
}

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

    private struct Coordinator: ParallelOperationCoordinator {}

    /// Why an operation did not run that requires the success of another one.
    private func causeOfDependent(on operation: Operation) async throws -> (any Error)? {
        let dependent = AsyncOperation()
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
