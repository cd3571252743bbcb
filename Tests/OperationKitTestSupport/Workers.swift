import Dispatch
import Foundation
package import OperationKit

/// What the objects under test write down.
package final class WorkLog: @unchecked Sendable {
    private let lock = NSLock()
    private var now = 0
    package private(set) var most = 0
    private var seen: [[Int]] = []
    private var stashed: [@Sendable ((any Error)?) -> Void] = []

    package init() {}

    /// A unit has begun.
    package func began(_ items: [Int]) {
        lock.withLock {
            seen.append(items)
            now += 1
            most = max(most, now)
        }
    }

    package func ended() {
        lock.withLock { now -= 1 }
    }

    package var units: [[Int]] { lock.withLock { seen } }
    package var mostInFlight: Int { lock.withLock { most } }
    package var inFlight: Int { lock.withLock { now } }

    package func keep(_ completion: @escaping @Sendable ((any Error)?) -> Void) {
        lock.withLock { stashed.append(completion) }
    }

    /// The completions that were kept; none of them if there are fewer than `least`.
    package func takeKept(atLeast least: Int = 0) -> [@Sendable ((any Error)?) -> Void] {
        lock.withLock {
            guard stashed.count >= least else { return [] }
            defer { stashed = [] }
            return stashed
        }
    }

    package var keptCount: Int { lock.withLock { stashed.count } }
}

/// What a unit does.
package typealias Work = @Sendable (_ items: [Int], _ completion: @escaping @Sendable ((any Error)?) -> Void) -> Void

/// The four strategies over numbers, each with the same work.
package enum Strategy: CaseIterable, Sendable {
    case parallelItems, parallelBatches, sequentialItems, sequentialBatches

    package var isParallel: Bool { self == .parallelItems || self == .parallelBatches }
    package var isBatch: Bool { self == .parallelBatches || self == .sequentialBatches }

    package func make(
        limit: Int = 3, batchSize: Int = 1, policy: FailurePolicy = .continueAll,
        _ work: @escaping Work
    ) -> any CollectionOperation<Int> & Sendable {
        switch self {
        case .parallelItems: ParallelItems(limit, batchSize, policy, work)
        case .parallelBatches: ParallelBatches(limit, batchSize, policy, work)
        case .sequentialItems: SequentialItems(limit, batchSize, policy, work)
        case .sequentialBatches: SequentialBatches(limit, batchSize, policy, work)
        }
    }

    /// How many units may be in flight at the same time.
    package func width(_ limit: Int) -> Int { isParallel ? limit : 1 }

    /// The units that a number of items make.
    package func units(_ count: Int, batchSize: Int) -> [[Int]] {
        let size = isBatch ? batchSize : 1
        return stride(from: 0, to: count, by: size).map { Array($0..<min(count, $0 + size)) }
    }
}

extension Strategy {
    /// The same with an asynchronous method; a batch has one item.
    package func makeAsync(
        _ policy: FailurePolicy = .continueAll, _ work: @escaping @Sendable (Int) async throws -> Void
    ) -> any CollectionOperation<Int> & Sendable {
        switch self {
        case .parallelItems: AsyncParallelItems(policy, work)
        case .parallelBatches: AsyncParallelBatches(policy, work)
        case .sequentialItems: AsyncSequentialItems(policy, work)
        case .sequentialBatches: AsyncSequentialBatches(policy, work)
        }
    }
}

package class AsyncNumbers: @unchecked Sendable {
    package let maxConcurrentOperationCount = 3
    package let batchSize: Int
    package let failurePolicy: FailurePolicy
    private let work: @Sendable (Int) async throws -> Void

    /// Creates an object whose work is done with each item, and with the first one of each batch.
    package init(
        _ failurePolicy: FailurePolicy, batchSize: Int = 1, _ work: @escaping @Sendable (Int) async throws -> Void
    ) {
        self.batchSize = batchSize
        self.failurePolicy = failurePolicy
        self.work = work
    }

    package func performOperation(onItem item: Int) async throws { try await work(item) }
    package func performOperation(onBatch batch: [Int]) async throws { try await work(batch[0]) }
}

package final class AsyncParallelItems: AsyncNumbers, ParallelItemOperation, AsyncItemOperation, @unchecked Sendable {}
package final class AsyncParallelBatches: AsyncNumbers, ParallelBatchOperation, AsyncBatchOperation, @unchecked Sendable
{}
package final class AsyncSequentialItems: AsyncNumbers, SequentialItemOperation, AsyncItemOperation, @unchecked Sendable
{}
package final class AsyncSequentialBatches: AsyncNumbers, SequentialBatchOperation, AsyncBatchOperation,
    @unchecked Sendable
{}

/// What the four have in common. Only one word differs between their declarations.
package class Numbers: @unchecked Sendable {
    package let maxConcurrentOperationCount: Int
    package let batchSize: Int
    package let failurePolicy: FailurePolicy
    package let work: Work

    package init(
        _ limit: Int, _ batchSize: Int, _ failurePolicy: FailurePolicy, _ work: @escaping Work
    ) {
        maxConcurrentOperationCount = limit
        self.batchSize = batchSize
        self.failurePolicy = failurePolicy
        self.work = work
    }

    package func performOperation(onItem item: Int, completion: @escaping @Sendable ((any Error)?) -> Void) {
        work([item], completion)
    }

    package func performOperation(onBatch batch: [Int], completion: @escaping @Sendable ((any Error)?) -> Void) {
        work(batch, completion)
    }
}

package final class ParallelItems: Numbers, ParallelItemOperation, @unchecked Sendable {}
package final class ParallelBatches: Numbers, ParallelBatchOperation, @unchecked Sendable {}
package final class SequentialItems: Numbers, SequentialItemOperation, @unchecked Sendable {}
package final class SequentialBatches: Numbers, SequentialBatchOperation, @unchecked Sendable {}

/// A type with a strategy of its own.
package final class OwnStrategy: CollectionOperation, Sendable {
    package typealias CollectionType = Int

    private let strategy: @Sendable (_ items: [Int], _ completion: @escaping Completion) -> Void

    package init(_ strategy: @escaping @Sendable (_ items: [Int], _ completion: @escaping Completion) -> Void) {
        self.strategy = strategy
    }

    package func performOperation(on collection: [Int], completion: @escaping Completion) {
        strategy(collection, completion)
    }
}

extension CollectionOperation {
    /// Runs the form with a completion block, and says how often that was called.
    package func run(on collection: [CollectionType]) async -> (errors: [(any Error)?], calls: Int) {
        let calls = Shared(0)
        let errors = await withCheckedContinuation { continuation in
            performOperation(on: collection) { errors in
                let isFirst = calls.change {
                    $0 += 1
                    return $0 == 1
                }
                if isFirst { continuation.resume(returning: errors) }
            }
        }
        return (errors, calls.value)
    }
}
