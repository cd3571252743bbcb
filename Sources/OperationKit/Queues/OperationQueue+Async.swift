public import Foundation

extension OperationQueue {
    /// Adds an operation, suspends until it is finished, and returns its output.
    ///
    /// Cancelling the awaiting task cancels the operation, on another thread: `Task.cancel()` itself never runs code of the
    /// operation, and may return before the operation is cancelled. If the task has been cancelled already, the operation is
    /// cancelled before it is added. The method returns only after the operation has finished, even if the task is cancelled.
    /// If the queue is suspended, it waits until the queue is resumed.
    ///
    /// - Parameter operation: An operation that was not started and is on no queue.
    /// - Returns: The output of the operation.
    /// - Throws: The error of the operation: `CancellationError`, or the reason, if it was cancelled before it started.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    @discardableResult
    public func run<Input, Output>(_ operation: IOOperation<Input, Output>) async throws -> Output {
        try await addUnstarted(operation)
        return try await operation.value
    }

    /// Adds an operation of any class, and suspends until it is finished.
    ///
    /// Cancelling the awaiting task cancels the operation, on another thread: `Task.cancel()` itself never runs code of the
    /// operation, and may return before the operation is cancelled. If the task has been cancelled already, the operation is
    /// cancelled before it is added. The method returns only after the operation has finished, even if the task is cancelled.
    /// If the queue is suspended, it waits until the queue is resumed.
    ///
    /// - Parameter operation: An operation that was not started and is on no queue.
    /// - Throws: The error of the operation, if it is a ``FailableOperation``. `CancellationError` if it was cancelled
    ///   and has none. ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    public func run(_ operation: some Operation) async throws {
        try await addUnstarted(operation)
        if let error = operation.endingError { throw error }
    }

    /// Adds an operation with a timeout, suspends until it is finished, and returns its output.
    ///
    /// The same as `run(_:)`, but sets the operation's ``AsyncOperation/timeout``. The time begins when the operation starts its
    /// work, not while it waits on the queue.
    ///
    /// - Parameters:
    ///   - operation: An operation that was not started and is on no queue.
    ///   - timeout: The maximum time of its work.
    /// - Returns: The output of the operation.
    /// - Throws: The error of the operation. If its work took longer, that is ``OperationTimeoutError``, or for a gathered
    ///   operation and a ``MapOperation`` ``CompoundOperationError/cancelled(name:errors:reason:)`` with that as the reason.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    @discardableResult
    public func run<Input, Output>(_ operation: IOOperation<Input, Output>, timeout: Duration) async throws -> Output {
        operation.timeout = timeout
        return try await run(operation)
    }

    /// Adds an operation with a timeout, and suspends until it is finished.
    ///
    /// The same as `run(_:)`, but sets the operation's ``AsyncOperation/timeout``. The time begins when the operation starts its
    /// work, not while it waits on the queue.
    ///
    /// - Parameters:
    ///   - operation: An operation that was not started and is on no queue.
    ///   - timeout: The maximum time of its work.
    /// - Throws: The error of the operation. If its work took longer, that is ``OperationTimeoutError``, or for a
    ///   ``CompoundOperation`` ``CompoundOperationError/cancelled(name:errors:reason:)`` with that as the reason.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    public func run(_ operation: some AsyncOperation, timeout: Duration) async throws {
        operation.timeout = timeout
        try await run(operation)
    }

    /// Suspends until every operation that is on the queue now has finished. Operations that are added later are not
    /// waited for.
    ///
    /// Suspension and limit of the queue are respected: on a suspended queue the wait ends after it was resumed. How
    /// the operations ended does not matter. Complexity: linear in the number of operations.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled; the operations are left alone.
    public func allOperationsFinished() async throws {
        for operation in addedOperations {
            try await operation.waitForEnd()
        }
    }

    /// Adds an operation that code of users has made, unless it is known that it is used already, and suspends until it is finished.
    ///
    /// Complexity: linear in the operations on the queues that are known.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - isUnused: Whether the caller knows of no use.
    /// - Throws: What `run(_:)` throws. ``OperationQueueError/cannotBeAdded(operation:)`` if it is used: Foundation would trap.
    func run(_ operation: some Operation, ifUnused isUnused: Bool) async throws {
        if !isUnused || operation.enclosingOperations.contains(where: { _ in true })
            || KnownQueues.shared.queue(of: operation) != nil
        {
            throw OperationQueueError.cannotBeAdded(operation: operation.displayName)
        }
        try await run(operation)
    }

    private func addUnstarted(_ operation: Operation) async throws {
        if operation.hasBeenStarted { throw OperationQueueError.cannotBeAdded(operation: operation.displayName) }
        await addAndWait([operation])
    }

    /// Adds operations and suspends until all of them are finished. Cancelling the task cancels them.
    nonisolated(nonsending) func addAndWait(_ operations: [Operation]) async {
        ExecutionRecording.current.note(self)
        await withCancellationDelivered {
            for operation in operations { operation.cancel() }
        } during: {
            for operation in operations {
                addOperation(operation)
                operation.announceReadiness()
            }
            for operation in operations { await operation.waitForEndUncancellably() }
        }
    }
}

extension Operation {
    /// Whether the operation executes or has finished.
    var hasBeenStarted: Bool { isExecuting || isFinished }

    /// Suspends until the operation, of whatever class, is finished. Throws only when the waiting task is cancelled.
    fileprivate func waitForEnd() async throws {
        if let operation = self as? AsyncOperation { return try await operation.waitForFinish() }
        let signal = AsyncOperation()
        let watch = FinishObserver(self) { signal.start() }
        do {
            try await signal.waitForFinish()
        } catch {
            watch.end()
            throw error
        }
    }

    /// Suspends until the operation, of whatever class, is finished, whatever happens to the waiting task.
    fileprivate func waitForEndUncancellably() async {
        if let operation = self as? AsyncOperation { return await operation.waitForFinishUncancellably() }
        let signal = AsyncOperation()
        FinishObserver(self) { signal.start() }
        await signal.waitForFinishUncancellably()
    }
}
