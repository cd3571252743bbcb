import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Budgets that operations share, whose attempts are operations or calls of a closure.
@Suite("Retries with a RetryBudget", .hangGuard) struct RetryBudgetUseTests {
    /// What makes the attempts.
    enum Kind: CaseIterable {
        case operations, closure
    }

    private let clock = ManualClock()

    /// A policy with delays of one second, and with a budget for so many retries in 100 seconds.
    private func policy(retries: Int) -> RetryPolicy {
        var policy = RetryPolicy(maximumAttempts: 5, backoff: .constant(.seconds(1)), jitter: .none)
        policy.budget = RetryBudget(fraction: 0, minimumRetries: retries, per: .seconds(100), clock: clock)
        return policy
    }

    /// An operation whose first attempt fails, and whose second one succeeds.
    private func operation(_ kind: Kind, _ policy: RetryPolicy) -> IOOperation<Void, Int> {
        let made: IOOperation<Void, Int>
        switch kind {
        case .operations:
            made = RetryOperation(policy, name: "load") { attempt in
                IOBlockOperation<Void, Int> { _ in
                    if attempt == 1 { throw TestError.first }
                    return attempt
                }
            }
        case .closure:
            let attempts = Shared(0)
            made = TaskOperation(name: "load", retry: policy) {
                attempts.value += 1
                if attempts.value == 1 { throw TestError.first }
                return attempts.value
            }
        }
        made.clock = clock
        return made
    }

    /// Starts operations, and waits until each of them waits for its retry or has ended.
    private func start(_ operations: [IOOperation<Void, Int>]) async {
        for operation in operations { operation.start() }
        await eventually("an attempt has not ended") {
            clock.timer.armedCount + operations.count(where: \.isFinished) == operations.count
        }
    }

    private func expectExhausted(_ operation: AsyncOperation) {
        guard case RetryError.budgetExhausted("load", attempts: 1, let error)? = operation.error else {
            Issue.record("It ended with \(text(operation.error)).")
            return
        }
        #expect(error as? TestError == .first)
    }

    @Test(
        "A retry counts when it begins, and one that the budget does not allow then ends with the last error",
        arguments: Kind.allCases)
    func countedAtTheBegin(kind: Kind) async {
        let policy = policy(retries: 3)
        let operations = (0..<15).map { _ in operation(kind, policy) }
        await start(operations)
        let waiting = operations.count { !$0.isFinished }
        #expect(waiting == 15)
        await clock.pass(.seconds(1))
        for operation in operations { _ = try? await operation.finished() }
        #expect(operations.compactMap(\.output) == [2, 2, 2])
        for operation in operations where operation.output == nil { expectExhausted(operation) }
    }

    @Test("What is cancelled during the delay takes nothing from the budget", arguments: Kind.allCases)
    func cancelledInTheDelay(kind: Kind) async throws {
        let policy = policy(retries: 1)
        let cancelled = (0..<3).map { _ in operation(kind, policy) }
        await start(cancelled)
        for operation in cancelled {
            operation.cancel()
            await #expect(throws: CancellationError.self) { try await operation.value }
        }
        let last = operation(kind, policy)
        await start([last])
        try #require(!last.isFinished)
        await clock.pass(.seconds(1))
        #expect(try await last.value == 2)
    }

    @Test(
        "A budget that is exhausted when an attempt fails ends the operation without a delay", arguments: Kind.allCases)
    func exhaustedBefore(kind: Kind) async {
        let operation = operation(kind, policy(retries: 0))
        operation.start()
        await #expect(throws: RetryError.self) { try await operation.value }
        expectExhausted(operation)
        #expect(clock.timer.armedCount == 0 && clock.deadlines.isEmpty)
    }

    // MARK: - Asking the policy

    @Test(
        "A policy that cancels the operation ends it with the error of the attempt, before the budget and the delay",
        arguments: Kind.allCases, [0, 1])
    func cancelledByThePolicy(kind: Kind, retries: Int) async {
        let running = Shared<IOOperation<Void, Int>?>(nil)
        var policy = policy(retries: retries)
        policy.shouldRetry = { _, _ in
            running.value?.cancel()
            return true
        }
        let operation = operation(kind, policy)
        running.value = operation
        operation.start()
        await #expect(throws: TestError.first) { try await operation.value }
        running.value = nil
    }
}
