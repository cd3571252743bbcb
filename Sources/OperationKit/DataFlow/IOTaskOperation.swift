import Foundation

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
/// called when the operation was cancelled or given an outcome before its start, or has no input.
public final class IOTaskOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    /// The work.
    public typealias Body = @Sendable (_ input: Input) async throws -> Output

    var taskWork: TaskWork<Input, Output>

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping Body) {
        taskWork = TaskWork { _, input in try await body(input) }
        super.init()
        self.name = name
    }

    /// Does nothing: the task is started by `start()`.
    public override func main(input: Input) {}

    override func startWork(on input: Input) {
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

extension IOTaskOperation: TaskRunning {}
