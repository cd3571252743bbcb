/// A type that performs its operation on all items of a collection, with an outcome for each.
///
/// Conform to one of the protocols that bring a strategy along, not to this one:
///
/// | | item by item | batch by batch |
/// |---|---|---|
/// | in parallel | ``ParallelItemOperation`` | ``ParallelBatchOperation`` |
/// | in sequence | ``SequentialItemOperation`` | ``SequentialBatchOperation`` |
///
/// ```swift
/// final class ImageSync: ParallelItemOperation, Sendable {
///     let maxConcurrentOperationCount = 8
///
///     func performOperation(onItem image: String, completion: @escaping ItemCompletion) {
///         DispatchQueue.global().async { completion(image.isEmpty ? CocoaError(.fileNoSuchFile) : nil) }
///     }
/// }
///
/// let sync = ImageSync()
/// let images = ["cat.jpg", "", "dog.jpg"]
/// let errors = await sync.performOperation(on: images)
/// for failure in sync.failures(in: images, errors: errors) { print(failure.index, failure.error) }
/// ```
///
/// Conformance adds all forms of a run: with a completion block, with `await`, as an operation, and over sequences of any
/// length. To change the strategy, change the protocol in the declaration; callers stay as they are.
///
/// Items are performed on threads of a dispatch queue, or in tasks if their method is `async`; those of parallel types concurrently.
/// Declare the class `Sendable`, as here: then the compiler refuses a variable that two items could change at the same time. The options
/// of the type, such as its ``failurePolicy``, are read when a run starts, on the thread that starts it.
public protocol CollectionOperation<CollectionType>: AnyObject, SendableMetatype {
    /// The type of one item: `String` for a type that works on collections of strings. It is inferred from the method
    /// that performs an item or a batch, so you don't declare it. Where the compiler doesn't find it, and the method is `async`,
    /// conform to ``AsyncItemOperation`` or ``AsyncBatchOperation``, too.
    associatedtype CollectionType: Sendable

    /// Receives the result of a run: an array with one *slot* for each item or batch, in the order of the collection.
    /// The slot has the error of the item or batch, or `nil` for success.
    typealias Completion = @Sendable (_ errors: [(any Error)?]) -> Void

    /// What the first failure means for the other items. The default is `continueAll`.
    ///
    /// With `cancelRemaining`, items that have not started don't start, and have `CancellationError` in their slots.
    /// Those in flight are waited for, and cancelled if the method that performs them is `async`; what they return or
    /// throw is their outcome. An item that ends with an error whose `isCancellation` is true has not failed. Read once
    /// for each run.
    var failurePolicy: FailurePolicy { get }

    /// When an item, or a batch, that has failed is performed again. The default is `nil`: not at all.
    ///
    /// An item keeps its place among those in flight until its last attempt has ended, which is its outcome. The method that
    /// performs it is called for each attempt, in a task if it is `async`. Retries send no events. If the run is
    /// cancelled during the pause before a retry, the item ends with `CancellationError`.
    ///
    /// The policy's ``RetryPolicy/attemptTimeout`` cancels an attempt if the method is `async`; one with a completion cannot be
    /// stopped. With a seed, each item has other delays. A policy that makes no sense is reported as
    /// ``CoordinationError/invalidRetryPolicy(type:problem:)``. Read once for each run.
    var retryPolicy: RetryPolicy? { get }

    /// What the time between attempts is measured with. The default is a `ContinuousClock`. Declare its type, which is
    /// `any Clock<Duration>`. Read once for each run.
    var clock: any Clock<Duration> { get }

    /// Performs the operation on all items of a collection.
    ///
    /// Returns without waiting for the items. Several runs may go on at the same time. The object is kept alive until the
    /// run is finished.
    ///
    /// The strategies bring an implementation along. A type may have its own, as a mock does: all other forms of a run
    /// call it, except for those over sequences. They call it once, with all items, on the thread that starts the run,
    /// and only if that was not cancelled before; from then on the run ends when `completion` is called, and cannot be
    /// cancelled. The first call of `completion` counts.
    ///
    /// - Parameters:
    ///   - collection: The items.
    ///   - completion: Called once, with a slot for each item or batch, when all have ended and the methods that perform them
    ///     have returned: never from inside the completion of an item whose method is still on the stack. It is called on
    ///     the thread that came last, and on a thread of a dispatch queue if the items are performed in tasks. For an
    ///     empty collection it is called before this method returns, with `[]`. If the options are wrong, it is called
    ///     before this method returns, with one ``CoordinationError``, also for an empty collection, and nothing runs.
    func performOperation(on collection: [CollectionType], completion: @escaping Completion)

    /// Returns the items that have an error in their slots, cancellations included, each with that error: what to try again.
    ///
    /// The items of a failed batch all have the error of the batch. If the options were wrong, all items have that error.
    ///
    /// - Parameters:
    ///   - collection: The items that a run was given.
    ///   - errors: The errors that it reported.
    /// - Returns: The failures, in the order of the collection.
    func failures(in collection: [CollectionType], errors: [(any Error)?]) -> [CollectionFailure<CollectionType>]
}

extension CollectionOperation {
    /// Performs all items, also when some fail.
    public var failurePolicy: FailurePolicy { .continueAll }

    /// No item is performed again.
    public var retryPolicy: RetryPolicy? { nil }

    /// A `ContinuousClock`.
    public var clock: any Clock<Duration> { ContinuousClock() }

    /// Returns each item that has an error in its slot, with that error.
    public func failures(
        in collection: [CollectionType], errors: [(any Error)?]
    ) -> [CollectionFailure<CollectionType>] {
        CollectionFailure.pairs(collection, errors, batchSize: 1)
    }
}

extension CollectionOperation {
    /// Creates an operation that is a run over a collection that is given later, by a chain for example.
    ///
    /// - Returns: An operation whose `input` is the collection.
    public func makeOperation() -> CollectionRun<CollectionType> {
        CollectionRun(of: self)
    }

    /// Creates an operation that is a run over a collection, to be put on a queue, into a compound or into a chain.
    ///
    /// ```swift
    /// final class Upload: SequentialItemOperation, Sendable {
    ///     func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
    /// }
    ///
    /// try await OperationQueue().run(Upload().makeOperation(on: [1, 2, 3]))
    /// ```
    ///
    /// - Parameter collection: The items. They become the operation's `input`.
    /// - Returns: An operation that has not been started.
    public func makeOperation(on collection: [CollectionType]) -> CollectionRun<CollectionType> {
        let operation = makeOperation()
        operation.input = collection
        return operation
    }

    /// Performs the operation on all items of a collection, and suspends until that is done.
    ///
    /// Cancelling the task cancels the run: no further item starts, and those that have not started are reported with
    /// `CancellationError`. Items in flight are waited for, and cancelled if the method that performs them is `async`.
    /// The run is cancelled on another thread, so an item may still start after `Task.cancel()` has returned. In a task
    /// that was cancelled before, no item starts. A type's own `performOperation(on:completion:)` is not called then,
    /// and cannot be cancelled later.
    ///
    /// - Parameter collection: The items.
    /// - Returns: A slot for each item or batch, in the order of the collection, with its error or `nil` for success. If
    ///   the options are wrong, one ``CoordinationError``.
    public nonisolated(nonsending) func performOperation(on collection: [CollectionType]) async -> [(any Error)?] {
        let run = makeOperation(on: collection)
        await withCancellationDelivered(to: run.cancel) {
            run.start()
            await run.waitForFinishUncancellably()
        }
        return run.errors
    }

    /// The name of the type, for errors.
    var displayName: String { String(describing: Self.self) }

    /// What errors call an item or a batch.
    var noun: String { self is any BatchOperation ? "batch" : "item" }
}
