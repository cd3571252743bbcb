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

    private static func cancelled(_ errors: [SuboperationError] = [], reason: (any Error)? = nil) -> any Error {
        CompoundOperationError.cancelled(name: "c", errors: errors, reason: reason)
    }

    static var cancellations: [any Error] {
        let mild = CompoundOperationError.cancelled(name: "c", errors: [])
        return [
            CancellationError(), CancellationError() as NSError, Stop.byUser,
            URLError(.cancelled), URLError(.cancelled) as NSError, CocoaError(.userCancelled),
            NSError(domain: NSCocoaErrorDomain, code: CocoaError.Code.userCancelled.rawValue), mild, mild as NSError,
            cancelled(reason: CancellationError()), cancelled(reason: cancelled(reason: Stop.byUser)),
            failure(CancellationError()), failure(CancellationError()) as NSError, dependency(Stop.byUser),
            dependency(mild), RetryError.budgetExhausted(operation: "a", attempts: 1, error: CancellationError()),
            ConditionError.failed(operation: "a", condition: "b", error: CancellationError()),
            ConditionError.prerequisiteFailed(operation: "a", condition: "b", prerequisite: "c", error: mild),
        ]
    }

    static var failures: [any Error] {
        [
            TestError.first, Stop.byFailure, URLError(.timedOut), CocoaError(.fileNoSuchFile),
            NSError(domain: "test", code: -999), IOOperationError.missingInput(operation: "a"),
            LostFinishError.operation(name: "a"), cancelled(reason: TestError.reason),
            cancelled([failure(TestError.first)]), cancelled([failure(TestError.first)]) as NSError,
            CompoundOperationError.suboperationFailure(name: "c", errors: []),
            CompoundOperationError.dependencyCycle(name: "c", path: []),
            failure(TestError.first), failure(TestError.first) as NSError, dependency(TestError.first),
            DependencyError.dependencyUnfinished(operation: "b", dependency: "a"),
        ]
    }

    /// The error as a continuation throws it that is resumed with it: wrapped once more.
    private static func resumed(_ error: any Error) async -> any Error {
        let task = Task {
            try await withCheckedThrowingContinuation { $0.resume(with: Result<Void, any Error>.failure(error)) }
        }
        return await task.result.failure ?? error
    }

    @Test("Nothing fails with an error that is a cancellation", arguments: cancellations.indices, [false, true])
    func noFailure(index: Int, ofContinuation: Bool) async {
        for (list, isCancellation) in [(Self.cancellations, true), (Self.failures, false)] where index < list.count {
            let error = ofContinuation ? await Self.resumed(list[index]) : list[index]
            #expect(error.isCancellation == isCancellation)
            let child = ThrowingBlockOperation { throw error }
            let items = Strategy.sequentialItems.make(policy: .cancelRemaining) { $1($0 == [0] ? error : nil) }
            let run = items.makeOperation(on: [0, 1, 2])
            let compound = CompoundOperation(operations: [child, run])
            try? await OperationQueue().run(compound)
            let failures = (compound.error as? CompoundOperationError)?.suboperationErrors
            #expect(failures?.count == (isCancellation ? nil : 2))
            #expect(
                run.errors.map { $0?.isCancellation } == (isCancellation ? [true, nil, nil] : [false, true, true]))
        }
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

    @Test("The reason takes the place of what a compound makes of its end", arguments: [URLError(.cancelled), nil])
    func decisions(replacement: URLError?) async {
        let child = ScriptedOperation(main: { _ in }, didCancel: { $0.finish() })
        let compound = ScriptedCompound(
            operations: [child], decide: { if let error = replacement ?? $1 as (any Error)? { throw error } })
        compound.start()
        compound.cancel(withError: Stop.byUser)
        try? await compound.finished()
        #expect(replacement == nil ? compound.error is CompoundOperationError : compound.error is Stop)
    }

    @Test("No description passes on what Foundation says of a cancellation") func descriptions() {
        let dependent = "The operation “b” did not run, because “a” was cancelled."
        for error in [CancellationError(), CancellationError() as NSError, URLError(.cancelled)] as [any Error] {
            let failures = [Self.failure(error), SuboperationError(name: "d", index: 1, error: TestError.first)]
            let compound = CompoundOperationError.suboperationFailure(name: "c", errors: failures)
            #expect(compound.localizedDescription.hasPrefix("“c”: 2 operations failed: “a” was cancelled; “d”: "))
            #expect(failures[0].localizedDescription == "“a” was cancelled.")
            #expect(Self.dependency(error).localizedDescription == dependent)
            #expect(Self.cancelled(reason: error).localizedDescription == "“c” was cancelled.")
        }
        let stopped = Self.cancelled(reason: Stop.byUser).localizedDescription
        #expect(stopped == "“c” was cancelled (The user pressed Stop).")
        #expect(Self.dependency(Self.cancelled()).localizedDescription == dependent)
    }

    @Test("Reasons inside reasons are followed on a small stack") func deepReasons() async {
        await onThread(stackSize: workerStackSize) {
            let error = (0..<10_000).reduce(CancellationError() as any Error) { error, level in
                Self.failure(CompoundOperationError.cancelled(name: "\(level)", errors: [], reason: error))
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
    }

    private struct Coordinator: ParallelOperationCoordinator {}

    @Test(
        "The error of a failable operation reaches its compound, its coordinator, its dependents and `run`; a cancelled one without an error is no success of these, and no failure of its compound",
        arguments: [TestError.first, nil])
    func reports(failure: TestError?) async throws {
        /// One that is cancelled before it begins, so that Foundation does not call `main()`, if it does not fail.
        func make() -> Decode {
            let operation = Decode(failure: failure)
            if failure == nil { operation.cancel() }
            return operation
        }
        let (queue, expected) = (OperationQueue(), failure.map(text) ?? "cancelled")
        let others = failure == nil ? [Decode(), Decode(failure: CancellationError())] : []
        let compound = CompoundOperation(name: "all", operations: [make()] + others)
        #expect(brief(await outcome(of: compound)) == (failure == nil ? "success" : "all failed [0 decode]"))
        #expect(await text(Task { try await queue.run(make()) }.result.failure) == expected)
        let slots = await Coordinator().performOperations([make(), Decode()])
        #expect(slots.map(text) == [expected, "success"])
        let (source, dependent) = (make(), ScriptedOperation("dependent"))
        dependent.requireSuccess(of: source)
        // In this order: on Linux, a queue may not notice a dependency that finishes during the addition.
        for operation in [dependent, source] { queue.addOperation(operation) }
        try await queue.allOperationsFinished()
        #expect(brief(dependent.error) == "dependent after decode: \(expected)")
    }
}
