import Foundation

/// A typed operation whose work is a closure, synchronous or `async`, so that a step needs no subclass.
///
/// ```swift
/// let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }
/// let download = IOBlockOperation(name: "download") { (path: String) async throws -> Data in
///     try await Task.sleep(for: .milliseconds(1))
///     return Data(path.utf8)
/// }
/// ```
///
/// The closure runs once, with the input. What it returns is the output, what it throws is the error. It is not called
/// when the operation was cancelled or given an outcome before its start, or has no input. It is released before the
/// operation finishes.
///
/// A synchronous closure runs on the thread that starts the operation, and is not disturbed by a cancellation. An
/// asynchronous one runs in a task of its own, as that of a ``TaskOperation`` does: cancelling the operation cancels
/// the task, and the operation ends when the closure does. An outcome from outside ends the operation, and cancels the
/// task.
public final class IOBlockOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable
{
    typealias Body = @Sendable (Input) async throws -> Output

    private var block: (@Sendable (Input) throws -> Output)?
    var taskWork: TaskWork<Body>

    /// Creates an operation that runs a closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping @Sendable (Input) throws -> Output) {
        self.block = block
        taskWork = TaskWork(nil)
        super.init()
        self.name = name
    }

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping @Sendable (Input) async throws -> Output) {
        taskWork = TaskWork(body)
        super.init()
        self.name = name
    }

    /// Does nothing: the closure is run by `start()`.
    public override func main(input: Input) {}

    override func startWork(on input: Input) {
        if let result = resultOfBlock(input) { end(with: result) } else { startTask(with: input) }
    }

    /// What the synchronous closure returns or throws, if there is one. Nothing but the operation holds it afterward.
    private func resultOfBlock(_ input: Input) -> Result<Output, any Error>? {
        guard let block = lock.withLock({ self.block }) else { return nil }
        return Result { try block(input) }
    }

    /// Cancels the task, if there is one.
    public override func didCancel() {
        cancelTask()
    }

    override func releaseWork() {
        var discarded: (@Sendable (Input) throws -> Output)?
        lock.withLock { swap(&discarded, &block) }
        releaseTask()
    }
}

extension IOBlockOperation: TaskRunning {
    func call(_ body: Body, with input: Input) async throws -> Output {
        try await body(input)
    }
}

extension IOOperation {
    /// Ends the operation with the result of its work.
    final func end(with result: Result<Output, any Error>) {
        switch result {
        case .success(let output): finish(with: output)
        case .failure(let error): finish(withError: error)
        }
    }
}
