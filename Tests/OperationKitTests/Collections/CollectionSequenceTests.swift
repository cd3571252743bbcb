import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Sequences, which are never loaded whole.
@Suite("Collection operations over sequences", .serialized, .hangGuard) struct CollectionSequenceTests {
    /// Counts how many items were taken.
    private struct Counted: Sequence, IteratorProtocol, Sendable {
        let taken: Shared<Int>
        let count: Int
        var position = 0

        mutating func next() -> Int? {
            guard position < count else { return nil }
            taken.change { $0 += 1 }
            defer { position += 1 }
            return position
        }
    }

    /// The same, asynchronously; fails at the end if told to.
    private struct AsyncCounted: AsyncSequence, AsyncIteratorProtocol, Sendable {
        var counted: Counted
        var failure: TestError?

        mutating func next() async throws -> Int? {
            await Task.yield()
            if let next = counted.next() { return next }
            if let failure { throw failure }
            return nil
        }

        func makeAsyncIterator() -> AsyncCounted { self }
    }

    @Test("All items are performed, and the failures returned", arguments: Strategy.allCases, [false, true])
    func failures(strategy: Strategy, isAsync: Bool) async throws {
        for count in [0, 1, 6, 7, 8, 100] {
            for batchSize in [1, 2, 7, 200] {
                let log = WorkLog()
                let operation = strategy.make(batchSize: batchSize) { items, completion in
                    log.began(items)
                    completion(items[0] % 2 == 1 ? TestError.numbered(items[0]) : nil)
                }
                let sequence = Counted(taken: Shared(0), count: count)
                let failures =
                    isAsync
                    ? try await operation.performOperation(onEach: AsyncCounted(counted: sequence))
                    : try await operation.performOperation(onEach: sequence)
                let units = strategy.units(count, batchSize: batchSize)
                #expect(log.units.sorted { $0[0] < $1[0] } == units)
                let failed = units.filter { $0[0] % 2 == 1 }
                #expect(failures.map(\.item) == failed.flatMap { $0 } && failures.map(\.index) == failures.map(\.item))
                let errors = failed.flatMap { unit in unit.map { _ in "numbered(\(unit[0]))" } }
                #expect(failures.map { text($0.error) } == errors)
            }
        }
    }

    @Test("No more items are taken than may be in flight", arguments: Strategy.allCases, [false, true])
    func itemsInMemory(strategy: Strategy, isAsync: Bool) async throws {
        for batchSize in [1, 4] {
            let size = strategy.isBatch ? batchSize : 1
            let taken = Shared(0)
            let log = WorkLog()
            let most = Shared(0)
            let ended = Shared(0)
            let operation = strategy.make(batchSize: batchSize) { items, completion in
                log.began(items)
                most.change { $0 = max($0, taken.value - ended.value) }
                DispatchQueue.global().async {
                    log.ended()
                    ended.change { $0 += items.count }
                    completion(nil)
                }
            }
            let sequence = Counted(taken: taken, count: 1000)
            if isAsync {
                _ = try await operation.performOperation(onEach: AsyncCounted(counted: sequence))
            } else {
                _ = try await operation.performOperation(onEach: sequence)
            }
            #expect(ended.value == 1000)
            #expect(most.value <= strategy.width(3) * size)
            #expect(log.mostInFlight <= strategy.width(3))
        }
    }

    @Test("The limit is reached", arguments: Strategy.allCases)
    func limit(strategy: Strategy) async throws {
        let log = WorkLog()
        let full = Gate()
        let taken = Shared(0)
        let operation = strategy.make { items, completion in
            log.began(items)
            log.keep(completion)
            if log.keptCount == strategy.width(3) { full.open() }
        }
        let task = Task { try await operation.performOperation(onEach: Counted(taken: taken, count: .max)) }
        await full.opened()
        #expect(taken.value == strategy.width(3))
        task.cancel()
        for completion in log.takeKept() { completion(nil) }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(log.units.count == strategy.width(3) && taken.value <= strategy.width(3) + 1)
    }

    @Test("The first failure ends the run if the policy says so", arguments: Strategy.allCases)
    func failurePolicy(strategy: Strategy) async throws {
        let log = WorkLog()
        let operation = strategy.make(policy: .cancelRemaining) { items, completion in
            log.began(items)
            completion(items[0] == 5 ? TestError.first : items[0] == 3 ? CancellationError() : nil)
        }
        let failures = try await operation.performOperation(onEach: 0...)
        #expect(failures.map { text($0.error) } == ["cancelled", "first"])
        // In parallel, others go on until this one has failed. That the run ends at all is what counts: there is no
        // end.
        #expect(strategy.isParallel ? log.units.count >= 6 : log.units.count == 6)
    }

    @Test("The error of the sequence is thrown after the items in flight have ended")
    func errorOfTheSequence() async {
        let log = WorkLog()
        let operation = ParallelItems(3, 1, .continueAll) { items, completion in
            log.began(items)
            DispatchQueue.global().async {
                log.ended()
                completion(TestError.numbered(items[0]))
            }
        }
        let failed = Shared<[Int]>([])
        let sequence = AsyncCounted(counted: Counted(taken: Shared(0), count: 5), failure: .reason)
        await #expect(throws: TestError.reason) {
            try await operation.performOperation(onEach: sequence) { failure in
                failed.change { $0.append(failure.item) }
            }
        }
        #expect(log.inFlight == 0 && failed.value.sorted() == [0, 1, 2, 3, 4])
    }

    @Test("Invalid options are thrown, and no item is taken")
    func invalidOptions() async {
        let taken = Shared(0)
        let sequence = Counted(taken: taken, count: 5)
        await #expect(throws: CoordinationError.invalidBatchSize(type: "ParallelBatches", batchSize: 0)) {
            _ = try await ParallelBatches(1, 0, .continueAll) { _, _ in }.performOperation(onEach: sequence)
        }
        await #expect(throws: CoordinationError.invalidLimit(type: "ParallelItems", maxConcurrentOperationCount: 0)) {
            _ = try await ParallelItems(0, 1, .continueAll) { _, _ in }.performOperation(onEach: sequence)
        }
        #expect(taken.value == 0)
    }

    private final class Sleepers: ParallelItemOperation, AsyncItemOperation, Sendable {
        let maxConcurrentOperationCount = 2
        let never = Gate()
        let begun = WorkLog()

        func performOperation(onItem item: Int) async throws {
            begun.began([item])
            await never.opened()
            try Task.checkCancellation()
        }
    }

    @Test("Async methods are cancelled with the task")
    func cancelledTask() async {
        let sleepers = Sleepers()
        let task = Task { try await sleepers.performOperation(onEach: 0...) }
        await eventually("not begun") { sleepers.begun.units.count == 2 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    private final class FailingSleepers: ParallelItemOperation, AsyncItemOperation, Sendable {
        let maxConcurrentOperationCount = 2
        let failurePolicy = FailurePolicy.cancelRemaining
        let begun = Gate()

        func performOperation(onItem item: Int) async throws {
            if item == 0 {
                begun.open()
                try await cancellation()
            }
            await begun.opened()
            throw TestError.first
        }
    }

    @Test("The first failure cancels the async items in flight if the policy says so")
    func failureWithItemsInFlight() async throws {
        let failures = try await FailingSleepers().performOperation(onEach: 0...)
        #expect(failures.map { text($0.error) } == ["cancelled", "first"])
    }

    private final class Batches: SequentialBatchOperation, AsyncBatchOperation {
        let batchSize = 3
        func performOperation(onBatch batch: [Int]) async throws { if batch[0] == 3 { throw TestError.first } }
    }

    private final class Own: CollectionOperation {
        func performOperation(on collection: [Int], completion: @escaping Completion) {
            completion(collection.map { $0 == 1 ? TestError.first : nil })
        }
    }

    @Test("Async batches and types with a strategy of their own take sequences, too")
    func otherTypes() async throws {
        #expect(try await Batches().performOperation(onEach: 0..<7).map(\.item) == [3, 4, 5])
        #expect(try await Own().performOperation(onEach: 0..<3).map(\.item) == [1])
    }
}
