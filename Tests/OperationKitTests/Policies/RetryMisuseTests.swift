import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Misuse of retries", .hangGuard) struct RetryMisuseTests {
    private let immediately = RetryPolicy(maximumAttempts: 3, backoff: .none)

    private static let invalidPolicies: [(RetryPolicy, String)] = [
        (RetryPolicy(maximumAttempts: 0), "its maximumAttempts is 0"),
        (RetryPolicy(maximumAttempts: -1), "its maximumAttempts is -1"),
        (RetryPolicy(backoff: .constant(.seconds(-1))), "its backoff begins with a delay of -1.0 seconds"),
        (RetryPolicy(backoff: .exponential(.seconds(1), factor: .infinity)), "its backoff grows by a factor of inf"),
    ]

    @Test("A policy that makes no sense ends the operation without an attempt", arguments: 0..<4)
    func invalidPolicy(index: Int) async {
        let (policy, problem) = Self.invalidPolicies[index]
        let log = EventLog()
        let retry = RetryOperation(policy, name: "load") { _ in
            log.add("made")
            return TaskOperation { 1 }
        }
        retry.start()
        do {
            _ = try await retry.value
            Issue.record("It succeeded.")
        } catch RetryError.invalidPolicy("load", problem) {
        } catch {
            Issue.record(error)
        }
        #expect(log.events.isEmpty && retry.attempts.isEmpty)
    }

    @Test("A retry without an input ends with an error, and makes no attempt") func missingInput() async {
        let retry = RetryOperation<String, Int>(immediately, name: "load") { _ in IOBlockOperation { $0.count } }
        retry.start()
        await #expect(throws: IOOperationError.missingInput(operation: "load")) { try await retry.value }
        #expect(retry.attempts.isEmpty)
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

    @Test("A closure that returns an operation that was started is an error", arguments: [false, true])
    func started(isFinished: Bool) async {
        let other = isFinished ? ScriptedOperation("other") : .idle("other")
        other.start()
        let error = await error { _, _ in other }
        guard case RetryError.operationReused("load", attempt: 2)? = error else {
            Issue.record("\(text(error))")
            return
        }
        other.finish()
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

    @Test("A closure that returns its own operation is an error that names it once") func itself() async {
        let error = await error { retry, _ in retry }
        #expect(error?.localizedDescription == "“load” would wait for itself.")
    }

    @Test("A closure that returns what the retry is inside of is an error with both names") func around() async {
        let compound = Shared<CompoundOperation?>(nil)
        let error = await error { retry, _ in
            let around = CompoundOperation(name: "around")
            compound.value = around
            expectNoError { try around.addOperation(retry) }
            return around
        }
        guard case CompoundOperationError.dependencyCycle("load", path: ["load", "around"])? = error else {
            Issue.record("\(text(error))")
            return
        }
        compound.value?.start()
        try? await compound.value?.finished()
    }

    @Test("A closure that returns an operation that waits for the retry is an error with both names")
    func waits() async {
        let error = await error { retry, _ in
            let waiting = ScriptedOperation("waiting")
            waiting.addDependency(retry)
            return waiting
        }
        guard case CompoundOperationError.dependencyCycle("load", path: ["waiting", "load"])? = error else {
            Issue.record("\(text(error))")
            return
        }
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
