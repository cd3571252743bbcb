extension TaskOperation {
    /// Creates an operation that calls an asynchronous closure again when it throws, as a policy says.
    ///
    /// ```swift
    /// let policy = RetryPolicy(maximumAttempts: 4, backoff: .exponential(.milliseconds(100)))
    /// let page = TaskOperation(name: "page", retry: policy) {
    ///     try await Task.sleep(for: .milliseconds(1))
    ///     return "page"
    /// }
    /// ```
    ///
    /// The closure is called for one attempt after the other, and the operation ends with what the last one returns or throws. An
    /// attempt that takes longer than the policy's ``RetryPolicy/attemptTimeout`` is cancelled, and has failed with an
    /// ``OperationTimeoutError`` if it then throws `CancellationError`. Pauses are measured with ``AsyncOperation/clock``; no thread
    /// waits. Cancelling the operation ends a pause, and no further attempt begins. The closure is kept until the end.
    ///
    /// It ends with ``RetryError`` if the policy makes no sense, or its budget is exhausted. To make an operation for each
    /// attempt, or to see the attempts, use ``RetryOperation``.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - policy: When to call the closure again.
    ///   - body: The work.
    public convenience init(name: String? = nil, retry policy: RetryPolicy, _ body: @escaping Body) {
        let owner = RetryOwner()
        self.init(name: name) { try await owner.perform(policy, body) }
        owner.operation = self
    }
}

extension IOTaskOperation {
    /// Creates an operation that calls an asynchronous closure again when it throws, as a policy says.
    ///
    /// Does what ``TaskOperation/init(name:retry:_:)`` does. Each attempt gets the same input.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - policy: When to call the closure again.
    ///   - body: The work.
    public convenience init(name: String? = nil, retry policy: RetryPolicy, _ body: @escaping Body) {
        let owner = RetryOwner()
        self.init(name: name) { input in try await owner.perform(policy) { try await body(input) } }
        owner.operation = self
    }
}

/// The operation whose closure is called again. Weak, because it holds the closure.
private final class RetryOwner: Sendable {
    private struct Reference {
        weak var operation: AsyncOperation?
    }

    private let reference = Locked(Reference())

    var operation: AsyncOperation? {
        get { reference.withLock { $0.operation } }
        set { reference.withLock { $0.operation = newValue } }
    }

    func perform<Output: Sendable>(
        _ policy: RetryPolicy, _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        // The task that calls this holds the operation.
        try await policy.perform(
            named: { operation?.displayName ?? "" }, clock: operation?.clock ?? ContinuousClock(),
            willRetry: { operation?.emit(.retrying(attempt: $0, error: $1, delay: $2)) }, body)
    }
}
