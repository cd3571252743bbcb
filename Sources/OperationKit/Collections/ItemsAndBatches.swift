import Foundation

/// A collection operation that works item by item. Conform to ``ParallelItemOperation`` or
/// ``SequentialItemOperation``.
public protocol ItemOperation<CollectionType>: CollectionOperation {
    // Restated next to the method from which it is inferred. The strategies must not restate it: they have no such
    // method, and the inference would fail.
    associatedtype CollectionType

    /// Receives the outcome of an item: its error, or `nil` for success.
    ///
    /// May be called from any thread, before the method returns or later. Only the first call for an item counts. It
    /// has to be called on every path: when it is released without a call, the item ends with ``LostFinishError``, soon
    /// and on another thread, or with `CancellationError` if the run is cancelled.
    typealias ItemCompletion = @Sendable (_ error: (any Error)?) -> Void

    /// Performs the operation on one item.
    ///
    /// Called once for each item, or each attempt at it where there is a ``CollectionOperation/retryPolicy``, on a thread of
    /// a dispatch queue, never from inside the completion of another item. An item is in flight until this method has
    /// returned and the completion has been called.
    ///
    /// - Parameters:
    ///   - item: The item.
    ///   - completion: Call it when the work is done.
    func performOperation(onItem item: CollectionType, completion: @escaping ItemCompletion)
}

/// An item operation whose method is an `async` function that throws.
///
/// Conform to it in addition to a strategy, and implement the `async` method instead of the one with a completion:
///
/// ```swift
/// final class Thumbnails: ParallelItemOperation, AsyncItemOperation, Sendable {
///     func performOperation(onItem name: String) async throws {
///         try await Task.sleep(for: .milliseconds(1))
///         if name.isEmpty { throw CocoaError(.fileNoSuchFile) }
///     }
/// }
///
/// let errors = await Thumbnails().performOperation(on: ["cat.jpg", ""])
/// assert(errors[0] == nil && errors[1] != nil)
/// ```
///
/// Each item runs in a task that is cancelled when the run is: one of its own, or, in a sequential run over a sequence,
/// that of the caller. Cancellation stays a request: an item that
/// does not check for it ends when its work does.
public protocol AsyncItemOperation<CollectionType>: ItemOperation {
    associatedtype CollectionType

    /// Performs the operation on one item: returns for success, throws for failure.
    ///
    /// - Parameter item: The item.
    /// - Throws: The error of the item, which becomes its outcome.
    func performOperation(onItem item: CollectionType) async throws
}

extension AsyncItemOperation {
    /// Performs the operation on one item in a task of its own, and hands over what it throws.
    public func performOperation(onItem item: CollectionType, completion: @escaping ItemCompletion) {
        let operation = UncheckedSendable(self)
        performInTask({ try await operation.value.performOperation(onItem: item) }, completion: completion)
    }
}

/// An item operation that works on several items concurrently.
///
/// Items are given to threads in the order of the collection. As many are in flight as ``maxConcurrentOperationCount`` allows.
public protocol ParallelItemOperation<CollectionType>: ItemOperation, ManagedCollectionOperation {
    /// The maximum number of items in flight. The default is the number of active processors, which suits items that
    /// compute; for items that mostly wait, set more.
    ///
    /// Less than 1 is reported as ``CoordinationError/invalidLimit(type:maxConcurrentOperationCount:)``. Read once for
    /// each run.
    var maxConcurrentOperationCount: Int { get }
}

/// An item operation that works on one item after the other, in the order of the collection.
public protocol SequentialItemOperation<CollectionType>: ItemOperation, ManagedCollectionOperation {}

extension ParallelItemOperation {
    /// The number of active processors.
    public var maxConcurrentOperationCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}

/// A collection operation that works on several items in one go. Conform to ``ParallelBatchOperation`` or
/// ``SequentialBatchOperation``.
public protocol BatchOperation<CollectionType>: CollectionOperation {
    associatedtype CollectionType

    /// Receives the outcome of a batch: its error, or `nil` for success.
    ///
    /// May be called from any thread, before the method returns or later. Only the first call for a batch counts. It
    /// has to be called on every path: when it is released without a call, the batch ends with ``LostFinishError``, soon
    /// and on another thread, or with `CancellationError` if the run is cancelled.
    typealias BatchCompletion = @Sendable (_ error: (any Error)?) -> Void

    /// The number of items of a batch. Only the last batch may have fewer.
    ///
    /// Less than 1 is reported as ``CoordinationError/invalidBatchSize(type:batchSize:)``. Read once for each run.
    var batchSize: Int { get }

    /// Performs the operation on one batch.
    ///
    /// Called once for each batch, or each attempt at it where there is a ``CollectionOperation/retryPolicy``, on a thread of
    /// a dispatch queue, never from inside the completion of another batch.
    /// A batch is in flight until this method has returned and the completion has been called.
    ///
    /// - Parameters:
    ///   - batch: The items, at least one, in the order of the collection.
    ///   - completion: Call it when the work is done.
    func performOperation(onBatch batch: [CollectionType], completion: @escaping BatchCompletion)
}

/// A batch operation whose method is an `async` function that throws.
///
/// Conform to it in addition to a strategy, and implement the `async` method instead of the one with a completion.
///
/// Each batch runs in a task that is cancelled when the run is: one of its own, or, in a sequential run over a sequence,
/// that of the caller. Cancellation stays a request: a batch that
/// does not check for it ends when its work does.
public protocol AsyncBatchOperation<CollectionType>: BatchOperation {
    associatedtype CollectionType

    /// Performs the operation on one batch: returns for success, throws for failure.
    ///
    /// - Parameter batch: The items, at least one, in the order of the collection.
    /// - Throws: The error of the batch, which becomes its outcome.
    func performOperation(onBatch batch: [CollectionType]) async throws
}

extension AsyncBatchOperation {
    /// Performs the operation on one batch in a task of its own, and hands over what it throws.
    public func performOperation(onBatch batch: [CollectionType], completion: @escaping BatchCompletion) {
        let operation = UncheckedSendable(self)
        performInTask({ try await operation.value.performOperation(onBatch: batch) }, completion: completion)
    }
}

/// A batch operation that works on several batches concurrently.
///
/// Batches are given to threads in the order of the collection. As many are in flight as ``maxConcurrentOperationCount`` allows.
public protocol ParallelBatchOperation<CollectionType>: BatchOperation, ManagedCollectionOperation {
    /// The maximum number of batches in flight. The default is the number of active processors, which suits batches
    /// that compute; for batches that mostly wait, set more.
    ///
    /// Less than 1 is reported as ``CoordinationError/invalidLimit(type:maxConcurrentOperationCount:)``. Read once for
    /// each run.
    var maxConcurrentOperationCount: Int { get }
}

/// A batch operation that works on one batch after the other, in the order of the collection.
public protocol SequentialBatchOperation<CollectionType>: BatchOperation, ManagedCollectionOperation {}

extension BatchOperation {
    /// Each item of a failed batch with the error of the batch. The ``batchSize`` has to be the one that the run had.
    public func failures(
        in collection: [CollectionType], errors: [(any Error)?]
    ) -> [CollectionFailure<CollectionType>] {
        CollectionFailure.pairs(collection, errors, batchSize: batchSize)
    }
}

extension ParallelBatchOperation {
    /// The number of active processors.
    public var maxConcurrentOperationCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}
