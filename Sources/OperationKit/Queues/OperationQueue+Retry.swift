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
}
