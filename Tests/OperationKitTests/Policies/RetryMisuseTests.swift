import OperationKitTestSupport

@testable import OperationKit

@Suite("Misuse of retries", .hangGuard) struct RetryMisuseTests {
    private let immediately = RetryPolicy(maximumAttempts: 3, backoff: .none)

    private typealias Make = @Sendable (Int) -> IOOperation<Void, Int>

    @Test("A policy that makes no sense ends the operation with an error that says so, and nothing is made")
    func invalidPolicies() async {
        let log = EventLog()
        let make: Make = { _ in
            log.add("made")
            return TaskOperation { 1 }
        }
        let negative = RetryPolicy(backoff: .constant(.seconds(-1)))
        let operations: [(IOOperation<Void, Int>, String)] = [
            (
                RetryOperation(RetryPolicy(maximumAttempts: 0), name: "load", makeOperation: make),
                "its maximumAttempts is 0"
            ),
            (
                RetryOperation(negative, name: "load", makeOperation: make),
                "its backoff begins with a delay of -1.0 seconds"
            ),
            (TaskOperation(name: "load", retry: RetryPolicy(maximumAttempts: -1)) { 1 }, "its maximumAttempts is -1"),
            (RepeatOperation(every: .zero, name: "load", makeOperation: make), "its interval is 0.0 seconds"),
            (RepeatOperation(every: .seconds(-1), name: "load", makeOperation: make), "its interval is -1.0 seconds"),
            (
                RepeatOperation(every: .seconds(1), maximumCount: .min, name: "load", makeOperation: make),
                "its maximumCount is \(Int.min)"
            ),
            (HedgedOperation(after: .seconds(-1), name: "load", makeOperation: make), "its delay is -1.0 seconds"),
            (
                HedgedOperation(after: .zero, maximumAttempts: 0, name: "load", makeOperation: make),
                "its maximumAttempts is 0"
            ),
        ]
        for (operation, problem) in operations {
            operation.start()
            await #expect(throws: RetryError.self) { try await operation.value }
            let sentence = "The operation “load” did not run, because of its policy: \(problem)."
            #expect(operation.error?.localizedDescription == sentence)
        }
        #expect(log.events.isEmpty)
    }

    @Test("Compounds may be attempts and runs") func compounds() async throws {
        let make: @Sendable (Int) -> CompoundOperation = { _ in
            CompoundOperation(operations: [ThrowingBlockOperation {}])
        }
        for operation in [
            RetryOperation(immediately, makeOperation: make),
            HedgedOperation(after: .seconds(100), makeOperation: make),
            RepeatOperation(every: .seconds(1), maximumCount: 1, makeOperation: make),
        ] as [AsyncOperation] {
            try await OperationQueue().run(operation)
        }
    }

    /// Runs a retry whose second attempt is what the closure returns, and returns the error.
    private func error(
        _ second: @escaping @Sendable (_ retry: AsyncOperation, _ first: AsyncOperation) -> AsyncOperation
    ) async -> (any Error)? {
        let (reference, first) = (Shared<AsyncOperation?>(nil), Shared<AsyncOperation?>(nil))
        let retry = RetryOperation(immediately, name: "load") { attempt in
            if attempt > 1, let retry = reference.value, let first = first.value { return second(retry, first) }
            let operation = ScriptedOperation("first") { $0.finish(withError: TestError.first) }
            first.value = operation
            return operation
        }
        reference.value = retry
        retry.start()
        try? await retry.waitForFinish()
        (reference.value, first.value) = (nil, nil)
        #expect(retry.attempts.count <= 2)
        return retry.error
    }

    @Test("A closure that returns the operation of an earlier attempt is an error") func sameAgain() async {
        let error = await error { _, first in first }
        guard case RetryError.operationReused("load", attempt: 2)? = error else {
            Issue.record("\(text(error))")
            return
        }
    }

    @Test("A closure that returns a part of another operation is an error with both names, and leaves it alone")
    func partOfAnother() async throws {
        let child = ScriptedOperation()
        let compound = CompoundOperation(operations: [child])
        let error = await error { _, _ in child }
        #expect((error as? CompoundAdditionError)?.localizedDescription.contains("“load”") == true)
        #expect(child.name == nil)
        compound.start()
        try await compound.finished()
    }

    @Test("A closure that returns its own operation, or one that this is inside of, is an error with the names")
    func around() async throws {
        #expect(await error { retry, _ in retry }?.localizedDescription == "“load” would wait for itself.")
        let reference = Shared<AsyncOperation?>(nil)
        let retry = RetryOperation(immediately, name: "load") { _ in reference.value ?? ScriptedOperation() }
        let compound = CompoundOperation(name: "sync", operations: [retry])
        reference.value = compound
        compound.start()
        try? await compound.finished()
        reference.value = nil
        #expect(cyclePath(of: retry.error) == ["load", "load", "sync"])
    }

    @Test("An attempt that waits for its hedged operation ends that with an error, and cancels the attempts that run")
    func waitsForHedged() async {
        let (clock, itself) = (ManualClock(), Shared<AsyncOperation?>(nil))
        let first = ScriptedOperation("first", main: { _ in }, didCancel: { $0.finish(withError: TestError.first) })
        let hedged = HedgedOperation(after: .seconds(1), name: "page") { attempt in
            if attempt == 1 { return first }
            let second = ScriptedOperation("second")
            if let hedged = itself.value { second.addDependency(hedged) }
            return second
        }
        itself.value = hedged
        hedged.clock = clock
        hedged.start()
        await clock.pass(.seconds(1))
        await eventually("not cancelled: \(hedged.debugDescription)") { first.isFinished }
        try? await hedged.waitForFinish()
        itself.value = nil
        #expect(cyclePath(of: hedged.error) == ["page", "second", "page"])
    }

    @Test("A closure that throws ends the retry with its error", arguments: [1, 2]) func throwingClosure(at: Int) async
    {
        let retry = RetryOperation(immediately) { attempt in
            if attempt == at { throw TestError.second }
            return ScriptedOperation { $0.finish(withError: TestError.first) }
        }
        retry.start()
        await #expect(throws: TestError.second) { try await retry.finished() }
        #expect(retry.attempts.count == at - 1)
    }
}
