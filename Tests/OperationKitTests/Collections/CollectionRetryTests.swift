import OperationKitTestSupport

@testable import OperationKit

@Suite("Retries in collections", .hangGuard) struct CollectionRetryTests {
    private static let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(1)), jitter: .none)

    /// What all types of this suite do: number 3 fails at the first attempt, number 5 always.
    class Work: @unchecked Sendable {
        let retryPolicy: RetryPolicy?
        let clock: any Clock<Duration>
        let log = Shared<[Int]>([])

        init(_ policy: RetryPolicy? = CollectionRetryTests.policy, clock: any Clock<Duration> = StandingClock()) {
            (retryPolicy, self.clock) = (policy, clock)
        }

        func attempt(_ number: Int) -> (any Error)? {
            let earlier = log.change { log in
                defer { log.append(number) }
                return log.count { $0 == number }
            }
            return number == 5 || (number == 3 && earlier == 0) ? TestError.first : nil
        }

        func performOperation(onItem number: Int, completion: @escaping @Sendable ((any Error)?) -> Void) {
            completion(attempt(number))
        }

        func performOperation(onItem number: Int) async throws {
            if let error = attempt(number) { throw error }
        }

        func performOperation(onBatch numbers: [Int], completion: @escaping @Sendable ((any Error)?) -> Void) {
            completion(numbers.compactMap { attempt($0) }.first)
        }
    }

    final class Items: Work, SequentialItemOperation, @unchecked Sendable {}
    final class ParallelItems: Work, ParallelItemOperation, AsyncItemOperation, @unchecked Sendable {}
    final class Batches: Work, SequentialBatchOperation, @unchecked Sendable { let batchSize = 2 }

    /// What is performed one item at a time.
    private static let kinds: [@Sendable () -> Work] = [{ Items() }, { ParallelItems() }, { Work() }]

    @Test("An item or element that fails is performed again, as often as the policy allows", arguments: kinds.indices)
    func items(kind: Int) async throws {
        let work = Self.kinds[kind]()
        let errors: [(any Error)?]
        switch work {
        case let items as Items: errors = await items.performOperation(on: Array(1...6))
        case let items as ParallelItems: errors = await items.performOperation(on: Array(1...6))
        default:
            let map = MapOperation<Int, Void>(retry: work.retryPolicy) { try await work.performOperation(onItem: $0) }
            map.clock = work.clock
            _ = try? await OperationQueue().run(map.with(input: Array(1...6)))
            errors = map.results.map(\.failure)
        }
        #expect(errors.map { $0 as? TestError } == [nil, nil, nil, nil, .first, nil])
        let log = work.log.value
        #expect((1...6).map { number in log.count { $0 == number } } == [1, 1, 2, 1, 3, 1])
    }

    @Test("A batch, or an item of a sequence, that fails is performed again") func others() async throws {
        let (batches, items) = (Batches(), Items())
        let errors = await batches.performOperation(on: Array(1...6))
        #expect(errors.map { $0 as? TestError } == [nil, nil, .first])
        #expect(batches.log.value == [1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6])
        #expect(try await items.performOperation(onEach: 1...6).map(\.index) == [4])
        #expect(items.log.value == [1, 2, 3, 3, 4, 5, 5, 5, 6])
    }

    @Test("A retry waits by the clock of its type, and cancelling the run ends the wait") func cancelled() async {
        let clock = ManualClock()
        let work = Items(clock: clock)
        let run = work.makeOperation(on: [5, 1])
        run.start()
        await clock.sleepers()
        run.cancel()
        await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        #expect(work.log.value == [5] && run.errors.map { $0 is CancellationError } == [true, true])
        await clock.expectNoSleepers()
    }

    @Test("A policy that makes no sense is reported, and no item is performed") func invalidPolicy() async {
        let work = Items(RetryPolicy(maximumAttempts: 0))
        let errors = await work.performOperation(on: [1, 2])
        #expect(
            errors.map { $0 as? CoordinationError } == [
                .invalidRetryPolicy(type: "Items", problem: "its maximumAttempts is 0")
            ])
        #expect(work.log.value.isEmpty)
    }

    @Test("Where the budget is exhausted, the error names the item and has its error") func budget() async throws {
        var policy = Self.policy
        policy.budget = RetryBudget(fraction: 0, minimumRetries: 0)
        let errors = await Items(policy).performOperation(on: [1, 3])
        #expect(errors[0] == nil)
        let error = try #require(errors[1] as? RetryError)
        #expect(brief(error) == "Items, item 1, 1 attempts: first")
        #expect(error.errorsInside(atMost: 1).map(\.name) == ["Items, item 1"])
        let map = MapOperation<Int, Int>(name: "lengths", retry: policy) { _ in throw TestError.first }
        map.input = [1]
        map.start()
        await #expect(throws: (any Error).self) { try await map.finished() }
        #expect(map.error?.localizedDescription.contains("The operation “lengths, item 0” was not tried again") == true)
    }
}
