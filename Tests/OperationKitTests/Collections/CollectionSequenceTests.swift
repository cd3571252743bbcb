import OperationKitTestSupport

/// How items are taken from sequences, which are never loaded whole. They block dispatch threads, so one at a time.
@Suite("Collection operations over sequences", .serialized, .hangGuard) struct CollectionSequenceTests {
    @TaskLocal static var local = 0

    @Test("Items are read one at a time, by several threads", arguments: Strategy.allCases, [false, true])
    func oneReader(strategy: Strategy, endsElsewhere: Bool) async throws {
        let (readers, most, log) = (Shared(0), Shared(0), WorkLog())
        let operation = strategy.make(limit: 4) { items, completion in
            log.began(items)
            let end: @Sendable () -> Void = {
                log.ended()
                completion(nil)
            }
            if endsElsewhere { elsewhere(end) } else { end() }
        }
        let count = 3000
        let sequence = Reads { index in
            let now = readers.increment()
            most.change { $0 = max($0, now) }
            defer { readers.change { $0 -= 1 } }
            return index < count ? index : nil
        }
        #expect(try await operation.performOperation(onEach: sequence).isEmpty)
        #expect(most.value == 1 && log.mostInFlight <= strategy.width(4))
        let items = log.units.map { $0[0] }
        #expect((strategy.isParallel ? items.sorted() : items) == Array(0..<count))
    }

    @Test("A sequence is read outside of tasks, or in the task of the caller if the method is async")
    func task() async throws {
        let seen = EventLog()
        let sequence = Reads { index in
            seen.add("\(Self.local) \(unsafe withUnsafeCurrentTask { unsafe $0 == nil })")
            return index == 0 ? 0 : nil
        }
        try await Self.$local.withValue(1) {
            for strategy in Strategy.allCases {
                _ = try await strategy.make { _, completion in completion(nil) }.performOperation(onEach: sequence)
            }
            _ = try await Strategy.sequentialItems.makeAsync { _ in }.performOperation(onEach: sequence)
        }
        #expect(seen.events == Array(repeating: "0 true", count: 8) + ["1 false", "1 false"])
    }

    @Test("The error of the sequence is thrown after the items in flight have ended")
    func errorOfTheSequence() async {
        let (log, failed) = (WorkLog(), Shared<[Int]>([]))
        let operation = ParallelItems(3, 1, .continueAll) { items, completion in
            log.began(items)
            elsewhere {
                log.ended()
                completion(TestError.numbered(items[0]))
            }
        }
        let sequence = AsyncReads(sequence: Reads { $0 < 5 ? $0 : nil }, failure: .reason)
        await #expect(throws: TestError.reason) {
            try await operation.performOperation(onEach: sequence) { failure in
                failed.change { $0.append(failure.item) }
            }
        }
        #expect(log.inFlight == 0 && failed.value.sorted() == [0, 1, 2, 3, 4])
    }

    @Test("What was read before the error of the sequence is performed", arguments: Strategy.allCases)
    func readBeforeTheError(strategy: Strategy) async {
        let (log, ends) = (WorkLog(), Shared(0))
        let operation = strategy.make(batchSize: 3) { items, completion in
            log.began(items)
            log.ended()
            completion(nil)
        }
        let reads = Reads { index in
            if index < 5 { return index }
            ends.change { $0 += 1 }
            return nil
        }
        let sequence = AsyncReads(sequence: reads, failure: .reason)
        await #expect(throws: TestError.reason) { try await operation.performOperation(onEach: sequence) }
        #expect(ends.value == 1)
        #expect(log.units.sorted { $0[0] < $1[0] } == strategy.units(5, batchSize: 3))
    }

    @Test(
        "The error of the sequence is thrown, too, if what was read before it fails and stops the run",
        arguments: [Strategy.parallelBatches, .sequentialBatches])
    func failureBeforeTheError(strategy: Strategy) async {
        let operation = strategy.make(batchSize: 3, policy: .cancelRemaining) { _, completion in
            completion(TestError.first)
        }
        let sequence = AsyncReads(sequence: Reads { $0 < 1 ? $0 : nil }, failure: .reason)
        let failed = Shared<[Int]>([])
        await #expect(throws: TestError.reason) {
            try await operation.performOperation(onEach: sequence) { failure in
                failed.change { $0.append(failure.item) }
            }
        }
        #expect(failed.value == [0])
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

    private final class Failing: ParallelBatchOperation, AsyncBatchOperation {
        let (batchSize, maxConcurrentOperationCount, failurePolicy) = (2, 2, FailurePolicy.cancelRemaining)
        let mayFail = Gate()

        func performOperation(onBatch batch: [Int]) async throws {
            await mayFail.opened()
            throw TestError.first
        }
    }

    @Test("After a failure the batch that is being read gets no further item") func failureWhileReading() async throws {
        let (batches, log, reported) = (Failing(), EventLog(), Gate())
        let (mayFail, count) = (batches.mayFail, Shared(0))
        let sequence = AsyncStream<Int> {
            let number = count.increment()
            log.add("\(number)")
            if number == 3 {
                mayFail.open()
                await reported.opened()
            }
            return number
        }
        try await batches.performOperation(onEach: sequence) { _ in reported.open() }
        #expect(log.events == ["1", "2", "3"])
    }

    @Test("Async batches and types with a strategy of their own take sequences, too")
    func otherTypes() async throws {
        #expect(try await Batches().performOperation(onEach: 0..<7).map(\.item) == [3, 4, 5])
        #expect(try await Own().performOperation(onEach: 0..<3).map(\.item) == [1])
    }
}
