import Foundation

/// An operation whose work is an `async` closure. If the closure needs an input, use ``IOTaskOperation``.
///
/// ```swift
/// let answer = TaskOperation { try await Task.sleep(for: .milliseconds(1)); return 42 }
/// let number = try await OperationQueue().run(answer)
/// assert(number == 42)
/// ```
///
/// The closure runs once, in a task of its own, whose priority follows the operation's `qualityOfService` at the start.
/// What it returns is the output, what it throws is the error. It does not see the task-local values of the code that
/// creates or runs the operation: `run(name:_:)` of `OperationQueue` keeps them.
///
/// Cancelling the operation cancels the task, and the operation ends when the closure does, with whatever it returns or
/// throws. If the closure cancels its own task, the operation is cancelled too, before it ends: one that is
/// retried with an `attemptTimeout` fails in that attempt instead. A
/// closure that throws `CancellationError` after `cancel(withError:)` ends the operation with that reason. If other
/// code calls `finish(with:)` or `finish(withError:)`, the operation ends without waiting for the closure, and the task
/// is cancelled. The closure is released when it returns, before the operation finishes.
///
/// What is called at the end, such as ``AsyncOperation/asyncCompletionBlock``, observers and the closure of
/// ``IOOperation/map(to:_:)``, is called where the closure has returned: on a thread of the cooperative pool, which it must not block.
public final class TaskOperation<Output: Sendable>: IOOperation<Void, Output>, @unchecked Sendable {
    /// The work.
    public typealias Body = @Sendable () async throws -> Output

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping Body) {
        super.init()
        self.name = name
        taskWork = TaskWork { try await body() }
    }

    /// Does nothing: the task is started by `start()`.
    public override func main(input: Void) {}
}

/// A typed operation whose work is an `async` closure, which gets the input.
///
/// ```swift
/// let download = IOTaskOperation(name: "download") { (path: String) -> Data in
///     try await Task.sleep(for: .milliseconds(1))
///     return Data(path.utf8)
/// }
/// let measure = IOBlockOperation<Data, Int>(name: "measure") { $0.count }
/// let macro = MacroOperation(download).then(measure)
/// ```
///
/// The closure runs once, with the input, in a task of its own. Cancelling the operation cancels the task, and the
/// operation ends when the closure does. If other code calls `finish`, the operation ends without waiting for the
/// closure, and the task is cancelled. See ``TaskOperation``, which differs in having no input. The closure is not
/// called when the operation was cancelled or given an outcome before its start, or has no input. It does not see
/// task-local values: `run(name:_:)` of `OperationQueue` keeps them.
public final class IOTaskOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    /// The work.
    public typealias Body = @Sendable (_ input: Input) async throws -> Output

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping Body) {
        super.init()
        self.name = name
        taskWork = TaskWork(body)
    }

    /// Does nothing: the task is started by `start()`.
    public override func main(input: Input) {}
}

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
