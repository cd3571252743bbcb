import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// What a conforming class may look like.
@Suite("Coordination: classes without Sendable", .hangGuard) struct UncheckedConformanceTests {
    /// No `Sendable`, as in code that is older than the word: it sees to its safety itself.
    private final class Unchecked: SequentialItemOperation {
        var seen: [Int] = []

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            seen.append(item)
            completion(item == 2 ? TestError.first : nil)
        }
    }

    @Test("A class need not be `Sendable`")
    func classWithoutSendable() async throws {
        let operation = Unchecked()
        let isDone = Gate()
        operation.performOperation(on: [1, 2, 3]) { errors in
            #expect(errors.map { $0 as? TestError } == [nil, .first, nil])
            isDone.open()
        }
        await isDone.opened()
        #expect(operation.seen == [1, 2, 3])
        #expect(await operation.performOperation(on: [4]).count == 1)
        #expect(try await operation.performOperation(onEach: 5...6).isEmpty)
        try await OperationQueue().run(operation.makeOperation(on: [7]))
        #expect(operation.seen == Array(1...7))
    }

    /// One of the methods would never be called.
    private final class Both: SequentialItemOperation, SequentialBatchOperation, Sendable {
        let batchSize = 2
        let unitName = "item"
        let log = EventLog()

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            log.add("item \(item)")
            completion(nil)
        }

        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) {
            log.add("batch \(batch)")
            completion(nil)
        }
    }

    @Test("A class that works by items and by batches is an error that names it, and nothing is performed")
    func itemsAndBatches() async throws {
        let both = Both()
        let errors = await both.performOperation(on: [1, 2, 3])
        #expect(errors.map { $0 as? CoordinationError } == [.itemsAndBatches(type: "Both")])
        await #expect(throws: CoordinationError.itemsAndBatches(type: "Both")) {
            try await both.performOperation(onEach: 1...3)
        }
        let run = both.makeOperation(on: [1, 2, 3])
        await #expect(throws: (any Error).self) { try await OperationQueue().run(run) }
        #expect(both.log.events.isEmpty)
    }
}
