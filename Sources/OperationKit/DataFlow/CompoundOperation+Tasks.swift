import Foundation

extension CompoundOperation {
    /// Adds an asynchronous closure as a child.
    ///
    /// - Parameters:
    ///   - name: The name of the child, for messages and errors.
    ///   - progressWeight: Its share in the progress of the compound, in proportion to those of the other children.
    ///   - body: The work, in a task of its own, as that of a ``TaskOperation``: cancelling the compound cancels the task, and
    ///     the child ends when the closure does. What it throws is the child's error.
    /// - Returns: The child.
    /// - Throws: ``CompoundAdditionError/compoundFinished(operation:compound:)`` if all children have finished.
    @discardableResult
    public final func addOperation(
        name: String? = nil, progressWeight: Int64 = 1, _ body: @escaping @Sendable () async throws -> Void
    ) throws -> TaskOperation<Void> {
        let operation = TaskOperation(name: name, body)
        try addOperation(operation, progressWeight: progressWeight)
        return operation
    }
}
