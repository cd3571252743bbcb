import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Closures that are called again: of tasks, of queues, of the elements of an array and of the items of a collection.
@Suite("Retries of closures", .hangGuard) struct TaskRetryTests {
    private let clock = ManualClock()
    private let attempts = Shared(0)
    private let policy = RetryPolicy(maximumAttempts: 3, backoff: .exponential(.seconds(1)), jitter: .none)

    /// A closure that fails so many times.
    private func failing(_ count: Int, with error: any Error = TestError.first) -> @Sendable () async throws -> Int {
        { [attempts] in
            let attempt = attempts.change { attempts in
                attempts += 1
                return attempts
            }
            if attempt <= count { throw error }
            return attempt
        }
    }

    private func task(_ policy: RetryPolicy, _ body: @escaping @Sendable () async throws -> Int) -> TaskOperation<Int> {
        let operation = TaskOperation(name: "load", retry: policy, body)
        operation.clock = clock
        return operation
    }

    /// Lets so many pauses pass, each as long as it takes.
    private func pass(_ pauses: Int) async {
        for _ in 0..<pauses {
            await clock.sleepers()
            clock.advance(by: (clock.deadlines.first ?? .zero) - clock.now.offset)
        }
    }

    @Test("A closure that throws is called again after each pause, and its output is that of the operation")
    func retried() async throws {
        let operation = task(policy, failing(2))
        operation.start()
        await clock.sleepers()
        #expect(attempts.value == 1 && clock.deadlines == [.seconds(1)])
        clock.advance(by: .seconds(1))
        await clock.sleepers()
        #expect(attempts.value == 2 && clock.deadlines == [.seconds(3)])
        clock.advance(by: .seconds(2))
        #expect(try await operation.value == 3)
        #expect(clock.deadlines.isEmpty)
    }

    @Test("The error of the last attempt is that of the operation") func exhausted() async {
        let operation = task(policy, failing(5, with: TestError.second))
        operation.start()
        await pass(2)
        await #expect(throws: TestError.second) { try await operation.value }
        #expect(attempts.value == 3)
    }

    @Test("An input goes to each attempt") func input() async throws {
        let operation = IOTaskOperation<Int, Int>(retry: policy) { [body = failing(1)] input in try await body() + input
        }
        operation.clock = clock
        operation.input = 40
        operation.start()
        await pass(1)
        #expect(try await operation.value == 42)
    }

    @Test("Neither a cancellation nor an error that the policy does not want is tried again")
    func notRetried() async {
        var policy = policy
        let asked = Shared<[Int]>([])
        policy.shouldRetry = { error, attempt in
            asked.change { $0.append(attempt) }
            return error as? TestError != .second
        }
        for error in [CancellationError(), TestError.second] as [any Error] {
            let operation = task(policy, failing(1, with: error))
            operation.start()
            try? await operation.finished()
            #expect(operation.error.map { type(of: $0) == type(of: error) } == true && attempts.value == 1)
            attempts.value = 0
        }
        #expect(asked.value == [1])
    }

    @Test("Cancelling the operation ends the pause, and no further attempt begins") func cancelledInPause() async {
        let operation = task(policy, failing(5))
        operation.start()
        await clock.sleepers()
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.value }
        await clock.expectNoSleepers()
        #expect(attempts.value == 1)
    }

    @Test("An attempt that was cancelled with the operation is not tried again") func cancelledAtWork() async {
        let working = Gate()
        let isAsked = Shared(false)
        var policy = policy
        policy.shouldRetry = { _, _ in
            isAsked.value = true
            return true
        }
        let operation = task(policy) { [attempts] in
            attempts.value += 1
            working.open()
            try? await cancellation()
            throw TestError.first
        }
        operation.start()
        await working.opened()
        operation.cancel()
        await #expect(throws: TestError.first) { try await operation.value }
        #expect(attempts.value == 1 && !isAsked.value)
    }

    @Test("An attempt that takes too long is cancelled, and tried again") func attemptTimeout() async throws {
        var policy = policy
        policy.attemptTimeout = .seconds(10)
        policy.backoff = .none
        let operation = task(policy) { [attempts] in
            attempts.value += 1
            if attempts.value == 1 { try await cancellation() }
            return attempts.value
        }
        operation.start()
        await clock.pass(.seconds(10))
        #expect(try await operation.value == 2)
        await clock.expectNoSleepers()
    }

    @Test("The timeout of the last attempt is the error, and one that succeeds in spite of it has succeeded")
    func lastAttemptTimeout() async throws {
        for succeeds in [false, true] {
            var policy = RetryPolicy(maximumAttempts: 1)
            policy.attemptTimeout = .seconds(10)
            let operation = task(policy) {
                do { try await cancellation() } catch { if !succeeds { throw error } }
                return 1
            }
            operation.start()
            await clock.pass(.seconds(10))
            if succeeds {
                #expect(try await operation.value == 1)
            } else {
                let error = OperationTimeoutError(operation: "load", timeout: .seconds(10))
                await #expect(throws: error) { try await operation.value }
            }
        }
    }

    @Test("An error can ask for the pause before the next attempt") func requestedPause() async throws {
        struct Busy: RetryAfterProviding {
            var retryAfter: Duration? { .seconds(30) }
        }
        let operation = task(policy, failing(1, with: Busy()))
        operation.start()
        await clock.sleepers()
        #expect(clock.deadlines == [.seconds(30)])
        clock.advance(by: .seconds(30))
        #expect(try await operation.value == 2)
    }

    @Test("A budget that is exhausted ends the operation with an error that has that of the attempt")
    func budget() async {
        var policy = policy
        policy.budget = RetryBudget(fraction: 0, minimumRetries: 1, clock: clock)
        let operation = task(policy, failing(5))
        operation.start()
        await pass(1)
        do {
            _ = try await operation.value
            Issue.record("It has succeeded")
        } catch RetryError.budgetExhausted(let name, let attempts, let error) {
            #expect(name == "load" && attempts == 2 && error as? TestError == .first)
        } catch {
            Issue.record(error)
        }
    }

    @Test("A policy that makes no sense ends the operation without a call of its closure") func invalidPolicy() async {
        let operation = task(RetryPolicy(maximumAttempts: 0), failing(0))
        operation.start()
        await #expect(throws: RetryError.self) { try await operation.value }
        #expect(
            operation.error?.localizedDescription
                == "The operation “load” did not run, because of its policy: its maximumAttempts is 0.")
        #expect(attempts.value == 0)
    }

    @Test("The closure and what it holds are released at the end, and when the operation is dropped")
    func released() async {
        let tracker = LeakTracker()
        for isStarted in [true, false] {
            let held = tracker.track(Gate())
            let operation = tracker.track(
                TaskOperation(retry: policy) {
                    held.open()
                    return 1
                })
            if isStarted { await Start.byHand(operation) }
        }
        await tracker.expectAllReleased()
    }

    @Test("A queue calls a closure again, and its turn takes one place") func queue() async throws {
        let queue = OperationQueue.serial(name: "uploads")
        let (clock, policy, body) = (clock, policy, failing(1))
        let first = Task { try await queue.run(name: "first", retry: policy, clock: clock, body) }
        await clock.sleepers()
        let second = Task { try await queue.run(name: "second", retry: policy, clock: clock) { 0 } }
        await eventually("the second is not added") { queue.operationCount == 2 }
        #expect(queue.operations.map(\.isExecuting) == [true, false])
        clock.advance(by: .seconds(1))
        #expect(try await first.value == 2)
        #expect(try await second.value == 0)
    }

    @Test("A queue runs an operation for each attempt") func queueOfOperations() async throws {
        let queue = OperationQueue()
        let (clock, policy) = (clock, policy)
        let run = Task {
            try await queue.run(name: "load", retry: policy, clock: clock) { attempt in
                TaskOperation { if attempt < 2 { throw TestError.first } else { attempt } }
            }
        }
        await clock.sleepers()
        #expect(queue.operations.map(\.name) == ["load"])
        clock.advance(by: .seconds(1))
        #expect(try await run.value == 2)
    }
}
