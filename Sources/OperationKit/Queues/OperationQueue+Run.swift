public import Foundation

extension OperationQueue {
    /// Adds an operation, suspends until it is finished, and returns its output.
    ///
    /// Cancelling the awaiting task cancels the operation, on another thread: `Task.cancel()` itself never runs code of the
    /// operation, and may return before the operation is cancelled. An ``AsyncOperation`` that has not been
    /// started by then never runs its `main()`, so the method throws immediately, even if the queue is suspended; the operation
    /// finishes when the queue starts it, and keeps its work until then. Where the task has been cancelled before, so that the
    /// operation is, too, it ends soon without being added. Otherwise the method returns only after the operation has finished.
    ///
    /// Calls of one actor put their operations on the queue in the order of the calls.
    ///
    /// - Parameter operation: An operation that was not started and is on no queue.
    /// - Returns: The output of the operation.
    /// - Throws: The error of the operation: `CancellationError`, or the reason, if it was cancelled before it started.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    @discardableResult
    public nonisolated(nonsending) func run<Input, Output>(
        _ operation: IOOperation<Input, Output>
    ) async throws -> Output {
        try await run(operation as Operation)
        return try await operation.value
    }

    /// Adds an operation of any class, and suspends until it is finished.
    ///
    /// Cancelling the awaiting task cancels the operation, on another thread: `Task.cancel()` itself never runs code of the
    /// operation, and may return before the operation is cancelled. An ``AsyncOperation`` that has not been started by
    /// then never runs its `main()`, so the method throws immediately, even if the queue is suspended; the operation finishes when the
    /// queue starts it. An operation that is cancelled before, as all are if the task is, ends soon without being added.
    /// Otherwise the method returns only after the operation has finished.
    ///
    /// Calls of one actor put their operations on the queue in the order of the calls.
    ///
    /// - Parameter operation: An operation that was not started and is on no queue.
    /// - Throws: The error of the operation, if it is a ``FailableOperation``. `CancellationError` if one of another class was
    ///   cancelled. ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    public nonisolated(nonsending) func run(_ operation: some Operation) async throws {
        if operation.hasBeenStarted { throw OperationQueueError.cannotBeAdded(operation: operation.displayName) }
        await addAndWait([operation])
        if let error = operation.endingErrorAfterWait { throw error }
    }

    /// Adds an operation with a timeout, suspends until it is finished, and returns its output.
    ///
    /// The same as `run(_:)`, but sets the operation's ``AsyncOperation/timeout``. It limits the work, not the wait before: the time
    /// begins when everything that the operation waits for is there, such as a place on the queue and its resources. To bound the
    /// wait, too, use a queue without a limit, and a ``ConcurrencyLimit`` that the operation requires
    /// (``AsyncOperation/require(_:within:)``).
    ///
    /// - Parameters:
    ///   - operation: An operation that was not started and is on no queue.
    ///   - timeout: The maximum time of its work.
    /// - Returns: The output of the operation.
    /// - Throws: The error of the operation. If its work took longer, that is ``OperationTimeoutError``, or for a gathered
    ///   operation, a ``CollectionRun`` and a ``MapOperation`` that had begun
    ///   ``CompoundOperationError/cancelled(name:errors:reason:)`` with that as the reason.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    @discardableResult
    public nonisolated(nonsending) func run<Input, Output>(
        _ operation: IOOperation<Input, Output>, timeout: Duration
    ) async throws -> Output {
        operation.timeout = timeout
        return try await run(operation)
    }

    /// Adds an operation with a timeout, and suspends until it is finished.
    ///
    /// The same as `run(_:)`, but sets the operation's ``AsyncOperation/timeout``. It limits the work, not the wait before: the time
    /// begins when everything that the operation waits for is there, such as a place on the queue and its resources. To bound the
    /// wait, too, use a queue without a limit, and a ``ConcurrencyLimit`` that the operation requires
    /// (``AsyncOperation/require(_:within:)``).
    ///
    /// - Parameters:
    ///   - operation: An operation that was not started and is on no queue.
    ///   - timeout: The maximum time of its work.
    /// - Throws: The error of the operation. If its work took longer, that is ``OperationTimeoutError``, or for a
    ///   ``CompoundOperation`` ``CompoundOperationError/cancelled(name:errors:reason:)`` with that as the reason.
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` if it was started before.
    public nonisolated(nonsending) func run(_ operation: some AsyncOperation, timeout: Duration) async throws {
        operation.timeout = timeout
        try await run(operation)
    }

    /// Suspends until every operation that is on the queue now has finished. Operations that are added later are not
    /// waited for.
    ///
    /// Suspension and limit of the queue are respected: on a suspended queue the wait ends after it was resumed. An operation of the
    /// queue, such as one with a closure of ``run(name:_:)``, would wait for itself. How the operations ended does not matter.
    /// Foundation may list them in `operations` for a moment longer.
    ///
    /// Complexity: linear in the number of operations, all of which are held until the last one has finished.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled; the operations are left alone.
    public func allOperationsFinished() async throws {
        for operation in addedOperations {
            let (signal, watch) = operation.endSignal
            defer { watch?.end() }
            try await signal.waitForFinish()
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
        if !isUnused || (operation as? AsyncOperation)?.enclosingComposite != nil
            || KnownQueues.shared.queue(of: operation) != nil
        {
            throw OperationQueueError.cannotBeAdded(operation: operation.displayName)
        }
        try await run(operation)
    }

    /// Descriptions say what is on the queue from now on, where that is recorded.
    func becomesKnown() {
        if ExecutionRecording.current != .off { KnownQueues.shared.insert(self) }
    }

    /// Adds operations and suspends until all of them are finished. Cancelling the task cancels them, and those that will not run
    /// any more are not waited for.
    private func addAndWait(_ operations: [Operation], isolation: isolated (any Actor)? = #isolation) async {
        becomesKnown()
        let waits = operations.map { (operation: $0, id: TaskWaiter()) }
        let isAdded = AtomicCounter()
        let cancel: @Sendable () -> Void = {
            for operation in operations { operation.cancel() }
            for case (let operation as AsyncOperation, let id) in waits {
                // One that was cancelled before its start ends only when the queue starts it.
                let isUnstarted = operation.withState { $0.lifecycle.isPending && $0.lifecycle.isCancelled }
                if isUnstarted { operation.cancelWait(id) }
            }
        }
        if Task.isCancelled { cancel() }
        // Not while they are added: Foundation traps at one that ends before that, and see below.
        await withCancellationDelivered {
            if isAdded.value > 0 { cancel() }
        } during: {
            // Keeps this on the actor, whose calls have an order.
            _ = isolation
            // Foundation traps at one that has ended when it was cancelled.
            for operation in operations where !operation.isFinished {
                // Behind a barrier, adding one that was cancelled would never return on Linux.
                if operation.hasBeenCancelled, operation.isReady {
                    DedicatedThreads.callbacks.performAsync(operation.start)
                } else {
                    addOperation(operation)
                    operation.announceReadiness()
                }
            }
            isAdded.add(1)
            if Task.isCancelled { DedicatedThreads.callbacks.performAsync(cancel) }
            for (operation, id) in waits { await operation.endSignal.operation.waitForFinishUncancellably(id) }
        }
        // A foreign one that was cancelled may have ended before what it depends on, and be released now.
        for operation in operations where operation.isCancelled && !(operation is AsyncOperation) {
            operation.detachFromDependencies()
        }
    }

    // MARK: - Several operations

    /// Adds operations of any class, suspends until all of them are finished, and throws their errors together.
    ///
    /// ```swift
    /// let backup = ThrowingBlockOperation(name: "backup") { /* … */ }
    /// let report = TaskOperation(name: "report") { 1 }
    /// report.addDependency(backup)
    /// try await OperationQueue().run([backup, report])
    /// assert(report.output == 1)
    /// ```
    ///
    /// The operations run within the limit of the queue, by their priorities and dependencies. A failure doesn't keep
    /// the others from running.
    ///
    /// Cancelling the awaiting task cancels all of them, on another thread, as ``run(_:)`` with one operation does. In a
    /// task that was cancelled before, they are cancelled first. The call returns when all that
    /// have started, and all that are no ``AsyncOperation``s, have finished.
    ///
    /// Complexity: linear in the number of operations, those on the queue included.
    ///
    /// - Parameter operations: Operations that were not started and are on no queue, each once. None of them may wait for
    ///   one that is never started. If there are none, the call returns immediately.
    /// - Throws: ``CompoundOperationError/suboperationFailure(name:errors:)`` with the failures, in the order given, if
    ///   there are any. As in a compound, an operation that did not run because of another one is counted with that
    ///   one's failure. ``CompoundOperationError/cancelled(name:errors:reason:)`` instead, if operations were cancelled
    ///   and either none failed or the task was cancelled, too. An operation that succeeded or failed although it was
    ///   cancelled does not count. Both carry the name of the queue. ``OperationQueueError`` if an operation was started before,
    ///   is on this queue, as a child of a composite too, or is given twice; nothing is added then.
    public nonisolated(nonsending) func run(_ operations: some Sequence<some Operation>) async throws {
        let operations: [Operation] = Array(operations)
        var given = Set<ObjectIdentifier>()
        // Whether an operation is on another queue cannot be known.
        let present = Set(heldOperations.map(ObjectIdentifier.init))
        for operation in operations {
            let id = ObjectIdentifier(operation)
            if operation.hasBeenStarted || present.contains(id) {
                throw OperationQueueError.cannotBeAdded(operation: operation.displayName)
            }
            if !given.insert(id).inserted {
                throw OperationQueueError.givenTwice(operation: operation.displayName)
            }
        }
        await addAndWait(operations)
        var collection = FailureCollection(policy: .continueAll)
        var isCancelled = false
        for (index, operation) in operations.enumerated() {
            guard let error = operation.endingErrorAfterWait else { continue }
            let failure = ChildFailure(
                SuboperationError(name: operation.displayName(at: index), index: index, error: error), of: operation,
                cause: operation.cause { given.contains(ObjectIdentifier($0)) }, isCancellation: error.isCancellation)
            if failure.isCancellation { isCancelled = true }
            _ = collection.add(failure, isCancelling: false)
        }
        let failures = collection.take(ofChildren: operations.count)
        let error = failures.error(
            name: displayName, isCancelled: isCancelled && (Task.isCancelled || failures.errors.isEmpty), reason: nil)
        if let error { throw error }
    }
}

extension Operation {
    /// What the operation ended with. One that has not finished after the wait for it was cancelled, and will not run any more.
    fileprivate var endingErrorAfterWait: (any Error)? {
        if isFinished { return endingError }
        let reason = (self as? AsyncOperation)?.withState {
            $0.lifecycle.outcome?.error ?? $0.lifecycle.earlyError ?? $0.lifecycle.cancellationReason
        }
        return reason ?? CancellationError()
    }

    /// What ends when the operation does, and can be waited for: the operation itself, or for one of another class a signal, with the
    /// watch that gives it.
    fileprivate var endSignal: (operation: AsyncOperation, watch: FinishObserver?) {
        if let operation = self as? AsyncOperation { return (operation, nil) }
        let signal = AsyncOperation()
        signal.hideFromObservers()
        return (signal, FinishObserver(self) { signal.start() })
    }
}

/// Why operations or closures could not be run on a queue.
public enum OperationQueueError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The operation has been started or is on the queue already, and operations run once. Code 1.
    case cannotBeAdded(operation: String)
    /// The operation was given twice, and nothing was added. Code 2.
    case givenTwice(operation: String)
    /// The concurrency limit of a map is less than 1; nothing was run. Code 3.
    case invalidLimit(queue: String, limit: Int)

    package var numericCode: Int {
        switch self {
        case .cannotBeAdded: 1
        case .givenTwice: 2
        case .invalidLimit: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .cannotBeAdded(let operation):
            "The operation “\(operation)” has been started or added before and cannot be added to a queue. Create a new one for each run."
        case .givenTwice(let operation):
            "The operation “\(operation)” was given twice, so nothing was added. Give each operation once."
        case .invalidLimit(let queue, let limit):
            "A map on “\(queue)” was given a limit of \(limit), so nothing was run. Give it 1 or more."
        }
    }
}
