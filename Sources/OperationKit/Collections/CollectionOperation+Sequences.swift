import Foundation

// Sequences of any length: an item is taken when there is room for it, and released when it has ended.
extension CollectionOperation {
    /// Performs the operation on all items of a sequence, without loading it whole, and suspends until that is done.
    ///
    /// An item is taken from the sequence when there is room for it. So there are never more items in memory than may
    /// be in flight; with batches, as many times the batch size. The strategy, its limit and its failure policy apply
    /// as for collections. With `cancelRemaining`, the first failure also cancels the items in flight if the method
    /// that performs them is `async`, and the run ends once the sequence has given an item that it was asked for. The
    /// item or batch method is called, even if the type has its own `performOperation(on:completion:)`.
    ///
    /// The sequence is read one item at a time, by the thread of a dispatch queue that performs the item. Neither the
    /// caller's task nor its task-local values are there, and nothing of the sequence may belong to an actor, which the compiler does
    /// not see everywhere: closures of a lazy sequence, and of `sequence(first:next:)`, have to be `@Sendable`, and a conformance
    /// to `Sequence` is `nonisolated`. Only if the items are performed in tasks, because their method is `async` or there is a
    /// ``retryPolicy``, the sequence is read in the task of the caller, on its actor.
    ///
    /// Cancelling the task cancels the run: no further item is taken, and `CancellationError` is thrown after the items
    /// in flight have ended, and the sequence has given an item that it was asked for. These are cancelled if their method is `async`.
    /// Nothing is thrown if a failure has ended the run, or the sequence was asked for another batch before, and had no item for one.
    /// What was read of a batch by then is neither performed nor reported.
    ///
    /// Where the method has a completion, and there is no ``retryPolicy``, an item that has ended is released before another one is
    /// read in its place, and before the run ends: by the thread that reported its success, if that came after the method had
    /// returned. A completion that is called with a lock held must not be that of an item whose deinitializer takes the same lock.
    /// Otherwise, while an item is being released, the next one may be read, and the run may end.
    ///
    /// - Parameters:
    ///   - sequence: The items.
    ///   - failed: Called with each item that ended with an error, a cancellation included, soon after it has, never from
    ///     inside a completion, and before the run ends, on a thread that it may block; for parallel types concurrently, from several
    ///     threads.
    /// - Throws: ``CoordinationError`` if the options are wrong; nothing runs then. `CancellationError` if the task is
    ///   cancelled.
    public nonisolated(nonsending) func performOperation<Items: Sequence>(
        onEach sequence: sending Items, failed: @escaping @Sendable (CollectionFailure<CollectionType>) -> Void
    ) async throws where Items.Element == CollectionType {
        let strategy = try CollectionStrategy(of: self)
        var iterator = sequence.makeIterator()
        guard case .completion(let perform) = strategy.method else {
            return try await performOperation(by: strategy, next: { iterator.next() }, failed: failed)
        }
        let source = SequenceSource(iterator, batchSize: strategy.batchSize, perform: perform, failed: failed)
        let work = CollectionWork(
            source: source, names: strategy.names, limit: strategy.limit, failurePolicy: strategy.failurePolicy)
        if await CollectionDriver(work).run().isCancelled { throw CancellationError() }
    }

    /// Performs the operation on all items of an asynchronous sequence, without loading it whole, and suspends until
    /// that is done.
    ///
    /// An item is taken from the sequence when there is room for it. So there are never more items in memory than may
    /// be in flight; with batches, as many times the batch size. The strategy, its limit and its failure policy apply
    /// as for collections. With `cancelRemaining`, the first failure also cancels the items in flight if the method
    /// that performs them is `async`, and the run ends once the sequence has given the next item. The item or batch
    /// method is called, even if the type has its own `performOperation(on:completion:)`.
    ///
    /// Cancelling the task cancels the run: no further item is taken, and `CancellationError` is thrown after the items
    /// in flight have ended, and the sequence has given an item that it was asked for. These are cancelled if their method is `async`.
    /// Nothing is thrown if a failure has ended the run, or the sequence was asked for another batch before, and had no item for one.
    /// What was read of a batch by then is neither performed nor reported.
    ///
    /// - Parameters:
    ///   - sequence: The items. It is read in the task of the caller, one item at a time.
    ///   - failed: Called with each item that ended with an error, a cancellation included, soon after it has, on a thread
    ///     that it may block; for parallel types concurrently, from several threads.
    /// - Throws: ``CoordinationError`` if the options are wrong; nothing runs then. `CancellationError` if the task is
    ///   cancelled. What the sequence throws, after all items that it gave before have ended.
    public nonisolated(nonsending) func performOperation<Items: AsyncSequence>(
        onEach sequence: sending Items, failed: @escaping @Sendable (CollectionFailure<CollectionType>) -> Void
    ) async throws where Items.Element == CollectionType {
        let strategy = try CollectionStrategy(of: self)
        var iterator = sequence.makeAsyncIterator()
        try await performOperation(by: strategy, next: { @concurrent in try await iterator.next() }, failed: failed)
    }

    /// Performs the operation on all items of a sequence, without loading it whole, and returns those that failed.
    ///
    /// ```swift
    /// final class Import: SequentialBatchOperation, Sendable {
    ///     let batchSize = 500
    ///     func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) { completion(nil) }
    /// }
    ///
    /// let failures = try await Import().performOperation(onEach: (1...1_000_000).lazy.map { @Sendable in $0 * 2 })
    /// assert(failures.isEmpty)
    /// ```
    ///
    /// Reads, limits and cancels like the form with `failed`.
    ///
    /// - Parameter sequence: The items.
    /// - Returns: The failures, in the order of the sequence.
    /// - Throws: What the form with `failed` throws.
    public nonisolated(nonsending) func performOperation<Items: Sequence>(
        onEach sequence: sending Items
    ) async throws -> [CollectionFailure<CollectionType>] where Items.Element == CollectionType {
        let failures = Locked<[CollectionFailure<CollectionType>]>([])
        try await performOperation(onEach: sequence) { failure in failures.withLock { $0.append(failure) } }
        return failures.withLock(\.self).sorted { $0.index < $1.index }
    }

    /// Performs the operation on all items of an asynchronous sequence, without loading it whole, and returns those
    /// that failed.
    ///
    /// Reads, limits and cancels like the form with `failed`.
    ///
    /// - Parameter sequence: The items.
    /// - Returns: The failures, in the order of the sequence.
    /// - Throws: What the form with `failed` throws.
    public nonisolated(nonsending) func performOperation<Items: AsyncSequence>(
        onEach sequence: sending Items
    ) async throws -> [CollectionFailure<CollectionType>] where Items.Element == CollectionType {
        let failures = Locked<[CollectionFailure<CollectionType>]>([])
        try await performOperation(onEach: sequence) { failure in failures.withLock { $0.append(failure) } }
        return failures.withLock(\.self).sorted { $0.index < $1.index }
    }

    /// Performs batches in tasks, as many at a time as the strategy allows.
    private nonisolated(nonsending) func performOperation(
        by strategy: CollectionStrategy<CollectionType>,
        next: nonisolated(nonsending) () async throws -> CollectionType?,
        failed: @escaping @Sendable (CollectionFailure<CollectionType>) -> Void
    ) async throws {
        let stopsAtFirstFailure = strategy.failurePolicy == .cancelRemaining
        // While the current task waits for the next item, it cannot cancel the batches in flight.
        let tasks = stopsAtFirstFailure && strategy.limit > 1 ? InFlightTasks() : nil
        let hasFailed = Locked(false)
        var problem: (any Error)?
        try await forEachConcurrently(
            limit: strategy.limit,
            next: {
                var batch: [CollectionType] = []
                do {
                    while problem == nil, batch.count < strategy.batchSize, !Task.isCancelled,
                        !hasFailed.withLock(\.self), let item = try await next()
                    { batch.append(item) }
                } catch {
                    problem = error
                }
                // Where the type is not known to the compiler, `isEmpty` and `indices` look for it each time.
                return batch.count > 0 ? batch : nil
            },
            perform: { index, batch in
                // Another batch may have failed while this one was read.
                if stopsAtFirstFailure, hasFailed.withLock(\.self) { return false }
                do {
                    let work = { @Sendable in
                        try await strategy.method.perform(batch, 0..<batch.count, index, strategy.names)
                    }
                    if let tasks { try await tasks.run(index, work) } else { try await work() }
                    return true
                } catch {
                    let goesOn = !stopsAtFirstFailure || error.isCancellation
                    if !goesOn {
                        hasFailed.withLock { $0 = true }
                        tasks?.cancel()
                    }
                    // It may block, so it is not called here, on the pool of tasks.
                    await withCheckedContinuation { continuation in
                        CollectionDriver.queue.performAsync {
                            CollectionFailure.report(error, of: batch, from: index * strategy.batchSize, to: failed)
                            continuation.resume()
                        }
                    }
                    return goesOn
                }
            },
            ended: { $1 })
        // After what was read before it.
        if let problem { throw problem }
    }
}
