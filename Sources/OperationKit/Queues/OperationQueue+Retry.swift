public import Foundation

extension OperationQueue {
    /// Adds an operation that calls an asynchronous closure again when it throws, as a policy says, and returns its output.
    ///
    /// ```swift
    /// let downloads = OperationQueue.serial(name: "downloads")
    /// let policy = RetryPolicy(maximumAttempts: 3, backoff: .exponential(.milliseconds(100)))
    /// let size = try await downloads.run(name: "size", retry: policy) { "four".count }
    /// assert(size == 4)
    /// ```
    ///
    /// The same as `run(_:)` with a ``TaskOperation/init(name:retry:_:)``. All attempts, and the pauses between them, take one
    /// place on the queue. Cancelling the awaiting task, or the operation, ends a pause and cancels the closure, and no further
    /// attempt begins.
    ///
    /// - Parameters:
    ///   - name: The name of the operation.
    ///   - policy: When to call the closure again.
    ///   - clock: What pauses are measured with; `nil` for a `ContinuousClock`.
    ///   - body: The work.
    /// - Returns: What the closure returns.
    /// - Throws: What the last call of the closure throws. ``RetryError`` if the policy makes no sense, or its budget is
    ///   exhausted.
    @discardableResult
    public func run<Output: Sendable>(
        name: String? = nil, retry policy: RetryPolicy, clock: (any Clock<Duration>)? = nil,
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        let operation = TaskOperation(name: name, retry: policy, body)
        if let clock { operation.clock = clock }
        return try await run(operation)
    }

    /// Adds an operation that makes and runs operations until one succeeds, as a policy says, and returns its output.
    ///
    /// ```swift
    /// let pages = OperationQueue.serial(name: "pages")
    /// let policy = RetryPolicy(maximumAttempts: 3, backoff: .exponential(.milliseconds(100)))
    /// let page = try await pages.run(name: "page", retry: policy) { attempt in
    ///     TaskOperation { "page, loaded in attempt \(attempt)" }
    /// }
    /// assert(page == "page, loaded in attempt 1")
    /// ```
    ///
    /// The same as `run(_:)` with a ``RetryOperation``. All attempts, and the pauses between them, take one place on the queue.
    ///
    /// - Parameters:
    ///   - name: The name of the operation.
    ///   - policy: When to try again.
    ///   - clock: What pauses are measured with; `nil` for a `ContinuousClock`.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on.
    /// - Returns: The output of the last attempt.
    /// - Throws: The error of the last attempt, or what the closure throws. ``RetryError`` if the policy makes no sense, its
    ///   budget is exhausted, or an operation is made twice.
    @discardableResult
    public func run<Output: Sendable>(
        name: String? = nil, retry policy: RetryPolicy, clock: (any Clock<Duration>)? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Void, Output>
    ) async throws -> Output {
        let operation = RetryOperation(policy, name: name, makeOperation: makeOperation)
        if let clock { operation.clock = clock }
        return try await run(operation)
    }
}
