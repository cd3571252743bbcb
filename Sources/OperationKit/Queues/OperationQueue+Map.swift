public import Foundation

extension OperationQueue {
    /// Turns each element of a sequence into an output, and returns the outputs in the order of the elements.
    ///
    /// ```swift
    /// let queue = OperationQueue()
    /// let lengths = try await queue.map(["one", "three"], limit: 8) { word in word.count }
    /// assert(lengths == [3, 5])
    /// ```
    ///
    /// Each element runs in a child task of the caller, or with a limit of 1 in its task, and takes a place on the queue, one of those that its limit
    /// counts, as `run(name:_:)` does. So the limit, the suspension and the order of the queue apply, and task-local
    /// values, the priority and the cancellation of the task are inherited. With a limit of 2 or more, neighbors may come to the queue,
    /// and begin, in another order than that of the sequence.
    ///
    /// An element is taken from the sequence when there is room for it. So there are never more elements in memory, and
    /// places taken, than the limit allows; only the outputs are kept.
    ///
    /// The first error is thrown: no further element starts, those in flight are cancelled, and the call returns when
    /// they have ended. Cancelling the task does the same. Elements that wait for their turn end immediately.
    ///
    /// - Parameters:
    ///   - elements: The elements. The sequence is read in the task of the caller.
    ///   - limit: The maximum number of elements in flight, waiting for their turn or running. The default is the limit of the
    ///     queue, or the number of active processors if it has none.
    ///   - transform: Makes an output of an element. It may be synchronous.
    /// - Returns: The outputs.
    /// - Throws: The first error of an element. `CancellationError` if the task is cancelled before all elements are known to have begun,
    ///   and the reason if an operation that holds a place is cancelled before its turn. ``OperationQueueError/invalidLimit(queue:limit:)``
    ///   if the limit is less than 1.
    public nonisolated(nonsending) func map<Elements: Sequence, Output: Sendable>(
        _ elements: Elements, limit: Int? = nil,
        _ transform: @escaping @Sendable (Elements.Element) async throws -> Output
    ) async throws -> [Output] where Elements.Element: Sendable {
        try await collect(elements, limit: limit, stopsAtFirstError: true, transform).map { try $0.get() }
    }

    /// Turns each element of a sequence into an output, and returns a result for each, in the order of the elements.
    ///
    /// Runs, limits and reads like `map(_:limit:_:)`, but an error of an element leaves the others alone.
    ///
    /// Cancelling the task keeps further elements from being taken, and cancels those in flight. Unless all elements are known to have
    /// begun, `CancellationError` is thrown after those in flight have ended.
    ///
    /// - Parameters:
    ///   - elements: The elements. The sequence is read in the task of the caller.
    ///   - limit: The maximum number of elements in flight, waiting for their turn or running. The default is the limit of the
    ///     queue, or the number of active processors if it has none.
    ///   - transform: Makes an output of an element. It may be synchronous.
    /// - Returns: The output or the error of each element. ``Swift/Sequence/failures(of:)`` pairs the errors with the elements.
    /// - Throws: `CancellationError` if the task is cancelled before all elements are known to have begun.
    ///   ``OperationQueueError/invalidLimit(queue:limit:)`` if the limit is less than 1.
    public nonisolated(nonsending) func mapToResults<Elements: Sequence, Output: Sendable>(
        _ elements: Elements, limit: Int? = nil,
        _ transform: @escaping @Sendable (Elements.Element) async throws -> Output
    ) async throws -> [Result<Output, any Error>] where Elements.Element: Sendable {
        try await collect(elements, limit: limit, stopsAtFirstError: false, transform)
    }

    private nonisolated(nonsending) func collect<Elements: Sequence, Output: Sendable>(
        _ elements: Elements, limit: Int?, stopsAtFirstError: Bool,
        _ transform: @escaping @Sendable (Elements.Element) async throws -> Output
    ) async throws -> [Result<Output, any Error>] where Elements.Element: Sendable {
        let ownLimit = maxConcurrentOperationCount
        let limit = limit ?? (ownLimit < 0 ? ProcessInfo.processInfo.activeProcessorCount : max(ownLimit, 1))
        if limit < 1 { throw OperationQueueError.invalidLimit(queue: displayName, limit: limit) }
        var iterator = elements.makeIterator()
        // In the order of the elements, in whatever order they end. `nil` for those that have not ended.
        var results: [Result<Output, any Error>?] = []
        var firstError: (any Error)?
        func next() -> Elements.Element? {
            let element = iterator.next()
            if element != nil { results.append(nil) }
            return element
        }
        do {
            try await forEachConcurrently(
                limit: limit, next: next,
                perform: { _, element in await Result { try await self.run { try await transform(element) } } },
                ended: { index, result in
                    results[index] = result
                    firstError = stopsAtFirstError ? firstError ?? result.error : nil
                    return firstError == nil
                })
        } catch {
            // Not if it was cancelled while the last elements ran. Another one is not asked for, nor are those of a lazy collection
            // counted: both could take any time.
            let counted: (any Collection)? =
                elements as? any RandomAccessCollection
                ?? (elements is any LazySequenceProtocol ? nil : elements as? any Collection)
            if results.contains(where: { $0 == nil }) || results.count != counted?.count { throw error }
        }
        if let firstError { throw firstError }
        return results.compactMap(\.self)
    }
}
