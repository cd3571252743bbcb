import Dispatch
import Foundation
package import OperationKit

/// What the objects under test write down.
package final class WorkLog: Sendable {
    package typealias Completion = @Sendable ((any Error)?) -> Void

    private struct State {
        var units: [[Int]] = []
        var inFlight = 0
        var most = 0
        var kept: [Completion] = []
    }

    private let state = Shared(State())

    package init() {}

    /// A unit has begun.
    package func began(_ items: [Int]) {
        state.change {
            $0.units.append(items)
            $0.inFlight += 1
            $0.most = max($0.most, $0.inFlight)
        }
    }

    package func ended() { state.change { $0.inFlight -= 1 } }

    package var units: [[Int]] { state.value.units }
    package var mostInFlight: Int { state.value.most }
    package var inFlight: Int { state.value.inFlight }

    package func keep(_ completion: @escaping Completion) { state.change { $0.kept.append(completion) } }

    /// The completions that were kept; none of them if there are fewer than `least`.
    package func takeKept(atLeast least: Int = 0) -> [Completion] {
        state.change { state in
            guard state.kept.count >= least else { return [] }
            defer { state.kept = [] }
            return state.kept
        }
    }

    package var keptCount: Int { state.value.kept.count }
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

package class CollectionSettings: @unchecked Sendable {
    package let maxConcurrentOperationCount: Int
    package let batchSize: Int
    package let failurePolicy: FailurePolicy

    package init(_ limit: Int, _ batchSize: Int, _ failurePolicy: FailurePolicy) {
        (maxConcurrentOperationCount, self.batchSize, self.failurePolicy) = (limit, batchSize, failurePolicy)
    }
}

package class AsyncNumbers: CollectionSettings, @unchecked Sendable {
    private let work: @Sendable (Int) async throws -> Void

    /// Creates an object whose work is done with each item, and with the first one of each batch.
    package init(
        _ failurePolicy: FailurePolicy, batchSize: Int = 1, _ work: @escaping @Sendable (Int) async throws -> Void
    ) {
        self.work = work
        super.init(3, batchSize, failurePolicy)
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
package class Numbers: CollectionSettings, @unchecked Sendable {
    private let work: Work

    package init(_ limit: Int, _ batchSize: Int, _ failurePolicy: FailurePolicy, _ work: @escaping Work) {
        self.work = work
        super.init(limit, batchSize, failurePolicy)
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
                if calls.increment() == 1 { continuation.resume(returning: errors) }
            }
        }
        return (errors, calls.value)
    }
}

/// A sequence whose items come from a closure, which is called for each with its index.
package struct Reads: Sequence, IteratorProtocol, Sendable {
    private let read: @Sendable (_ index: Int) -> Int?
    private var index = 0

    package init(_ read: @escaping @Sendable (_ index: Int) -> Int?) {
        self.read = read
    }

    package mutating func next() -> Int? {
        defer { index += 1 }
        return read(index)
    }
}
