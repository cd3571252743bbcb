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
        self.init(name: name, body)
        taskWork = TaskWork(isRetried: true) { operation, _ in try await operation.perform(body, retriedBy: policy) }
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
        self.init(name: name, body)
        taskWork = TaskWork(isRetried: true) { operation, input in
            try await operation.perform({ try await body(input) }, retriedBy: policy)
        }
    }
}

extension AsyncOperation {
    fileprivate final func perform<Output: Sendable>(
        _ body: @escaping @Sendable () async throws -> Output, retriedBy policy: RetryPolicy
    ) async throws -> Output {
        let clock = clock
        let wait = { (number: Int, error: any Error, delay: Duration) async throws in
            self.emit(.retrying(attempt: number, error: error, delay: delay))
            let task = self as? any TaskRunning
            task?.setWait("waiting \(ageText(delay)) before attempt \(number + 1)")
            defer { task?.setWait(nil) }
            try await clock.pause(for: delay)
        }
        let request = requestOfAttempts
        return try await policy.perform(
            named: { displayName }, clock: clock, wait: wait,
            requesting: { try await request?.granted(toAttemptOf: self) }, body)
    }
}

extension TaskOperation: AttemptingOperation {
    var requestsForAttempts: Bool { taskWork.isRetried }
}

extension IOTaskOperation: AttemptingOperation {
    var requestsForAttempts: Bool { taskWork.isRetried }
}
