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
/// What it returns is the output, what it throws is the error.
///
/// Cancelling the operation cancels the task, and the operation ends when the closure does, with whatever it returns or
/// throws. If the closure cancels its own task, the operation is cancelled too, on another thread and before it ends. A
/// closure that throws `CancellationError` after `cancel(withError:)` ends the operation with that reason. If other
/// code calls `finish(with:)` or `finish(withError:)`, the operation ends without waiting for the closure, and the task
/// is cancelled. The closure is released when it returns, before the operation finishes.
public final class TaskOperation<Output: Sendable>: IOOperation<Void, Output>, @unchecked Sendable {
    /// The work.
    public typealias Body = @Sendable () async throws -> Output

    var taskWork: TaskWork<Void, Output>

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping Body) {
        taskWork = TaskWork { _, _ in try await body() }
        super.init()
        self.name = name
    }

    /// Does nothing: the task is started by `start()`.
    public override func main(input: Void) {}

    override func startWork(on input: Void) {
        startTask(with: input)
    }

    override var waitDescription: String? { lock.withLock { taskWork.wait } }

    override func cancellationTookEffect() {
        cancelTask()
    }

    override func releaseWork() {
        releaseTask()
    }
}

extension TaskOperation: TaskRunning {}
