public import Foundation

/// An item that failed, with its error.
public struct CollectionFailure<Item: Sendable>: Sendable {
    /// The index of the item in the collection or sequence, from 0.
    public let index: Int
    /// The item.
    public let item: Item
    /// The error of the item, or of the batch that it was part of.
    public let error: any Error

    /// Creates the failure of an item.
    ///
    /// - Parameters:
    ///   - index: Its index, from 0.
    ///   - item: The item.
    ///   - error: Its error.
    public init(index: Int, item: Item, error: any Error) {
        self.index = index
        self.item = item
        self.error = error
    }

    /// Reports the items of a batch that has failed.
    static func report(
        _ error: any Error, of batch: [Item], from start: Int, to failed: (CollectionFailure) -> Void
    ) {
        for (offset, item) in batch.enumerated() {
            failed(CollectionFailure(index: start + offset, item: item, error: error))
        }
    }

    /// Pairs items with the errors of the batches, or the items one by one, that they were part of.
    static func pairs(_ items: [Item], _ errors: [(any Error)?], batchSize: Int) -> [CollectionFailure] {
        func failures(_ error: (any Error)?, of batch: Range<Int>) -> [CollectionFailure] {
            error.map { error in batch.map { CollectionFailure(index: $0, item: items[$0], error: error) } } ?? []
        }
        guard batchSize >= 1, errors.count == batchCount(items.count, size: batchSize) else {
            // Nothing was run, and the only error says why.
            return failures(errors.lazy.compactMap(\.self).first, of: items.indices)
        }
        return errors.enumerated().flatMap { batch, error in
            failures(error, of: batchRange(batch, size: batchSize, count: items.count))
        }
    }
}

extension Sequence {
    /// Returns the elements of a map whose results are failures, each with its error: what to try again.
    ///
    /// ```swift
    /// let pages = [1, 2, 3]
    /// let results = try await OperationQueue().mapToResults(pages) { page in
    ///     if page == 2 { throw CocoaError(.fileNoSuchFile) }
    /// }
    /// assert(results.failures(of: pages).map(\.item) == [2])
    /// ```
    ///
    /// - Parameter elements: The elements that `mapToResults(_:limit:_:)` or a ``MapOperation`` was given.
    /// - Returns: The failures, in the order of the elements.
    public func failures<Output, Elements: Sequence>(
        of elements: Elements
    ) -> [CollectionFailure<Elements.Element>] where Element == Result<Output, any Error>, Elements.Element: Sendable {
        zip(self, elements).enumerated().compactMap { index, pair in
            pair.0.error.map { CollectionFailure(index: index, item: pair.1, error: $0) }
        }
    }
}

/// A mistake in the options of a collection operation or a coordinator, or in the operations that it was given.
public enum CoordinationError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The batch size is less than 1; nothing was run. `type` is the type that asked for it. Code 1.
    case invalidBatchSize(type: String, batchSize: Int)
    /// The concurrency limit is less than 1; nothing was run. `type` is the type, or the name of the operation, that asked for it. Code 2.
    case invalidLimit(type: String, maxConcurrentOperationCount: Int)
    /// The operation had been started before, so the coordinator left it alone. Code 3.
    case alreadyStarted(operation: String, coordinator: String)
    /// The operation was given twice. It ran once, and the first of its slots has its outcome. Code 4.
    case givenTwice(operation: String, coordinator: String)
    /// The retry policy makes no sense; nothing was run. `problem` says what is wrong with it. Code 5.
    case invalidRetryPolicy(type: String, problem: String)
    /// The type conforms to a protocol for items and to one for batches; nothing was run. Code 6.
    case itemsAndBatches(type: String)

    package var numericCode: Int {
        switch self {
        case .invalidBatchSize: 1
        case .invalidLimit: 2
        case .alreadyStarted: 3
        case .givenTwice: 4
        case .invalidRetryPolicy: 5
        case .itemsAndBatches: 6
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .invalidBatchSize(let type, let batchSize):
            "“\(type)” asks for batches of \(batchSize) items. Set its batchSize to 1 or more."
        case .invalidLimit(let type, let limit):
            "“\(type)” allows \(limit) at a time. Set its maxConcurrentOperationCount to 1 or more."
        case .alreadyStarted(let operation, let coordinator):
            "The operation “\(operation)” was not run by “\(coordinator)”, because it has been started before. Create a new one for each run."
        case .givenTwice(let operation, let coordinator):
            "The operation “\(operation)” was given to “\(coordinator)” twice. It ran once: give each operation once."
        case .invalidRetryPolicy(let type, let problem):
            "“\(type)” did not run, because of its retry policy: \(problem)."
        case .itemsAndBatches(let type):
            "“\(type)” works item by item and by batches. Conform to one of these protocols only."
        }
    }
}
