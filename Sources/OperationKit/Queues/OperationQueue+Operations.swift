public import Foundation

extension OperationQueue {
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
    /// task that was cancelled before, they are cancelled before they are added. The call returns only when all have
    /// finished; on a suspended queue that is after it was resumed.
    ///
    /// Complexity: linear in the number of operations, those on the queue included.
    ///
    /// - Parameter operations: Operations that were not started and are on no queue, each once. None of them may wait for
    ///   one that is never started. If there are none, the call returns immediately.
    /// - Throws: ``CompoundOperationError/suboperationFailure(name:errors:)`` with the failures, in the order given, if
    ///   there are any. As in a compound, an operation that did not run because of another one is counted with that
    ///   one's failure. ``CompoundOperationError/cancelled(name:errors:reason:)`` instead, if operations were cancelled
    ///   and either none failed or the task was cancelled, too. An operation that succeeded although it was cancelled
    ///   does not count. Both carry the name of the queue. ``OperationQueueError`` if an operation was started before,
    ///   is on this queue, as a child of a composite too, or is given twice; nothing is added then.
    public nonisolated(nonsending) func run(_ operations: some Sequence<some Operation>) async throws {
        let operations: [Operation] = Array(operations)
        try checkAddition(of: operations)
        await addAndWait(operations)
        try throwFailures(of: operations)
    }

    private func checkAddition(of operations: [Operation]) throws(OperationQueueError) {
        var given = Set<ObjectIdentifier>()
        // Whether an operation is on another queue cannot be known.
        let present = Set(heldOperations.map { ObjectIdentifier($0) })
        for operation in operations {
            let id = ObjectIdentifier(operation)
            if operation.hasBeenStarted || present.contains(id) {
                throw .cannotBeAdded(operation: operation.displayName)
            }
            if !given.insert(id).inserted { throw .givenTwice(operation: operation.displayName) }
        }
    }

    private func throwFailures(of operations: [Operation]) throws {
        var collection = FailureCollection(rules: .init(policy: .continueAll, countsCancellations: false))
        let given = Set(operations.map { ObjectIdentifier($0) })
        var isCancelled = false
        for (index, operation) in operations.enumerated() {
            guard let error = operation.endingError else { continue }
            let failure = ChildFailure(
                SuboperationError(name: operation.displayName(at: index), index: index, error: error), of: operation,
                cause: operation.cause { given.contains(ObjectIdentifier($0)) }, isCancellation: error.isCancellation)
            if failure.isCancellation { isCancelled = true }
            _ = collection.add(failure, isCancelling: false)
        }
        let (failures, _) = collection.take(ofChildren: operations.count)
        let error = CompoundOperationError.error(
            name: displayName, failures.errors,
            isCancelled: isCancelled && (Task.isCancelled || failures.errors.isEmpty), reason: nil)
        if let error { throw error }
    }

    /// The name of the queue in messages: its own, or its type.
    var displayName: String {
        ownName ?? "OperationQueue"
    }

    /// The name that the queue was given. Those that Foundation gives are addresses.
    var ownName: String? {
        guard let name, !name.isEmpty, !name.hasPrefix("NSOperationQueue ") else { return nil }
        return name
    }
}
