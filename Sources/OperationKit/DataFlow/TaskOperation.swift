import Foundation

/// An operation whose work is an `async` closure.
///
/// ```swift
/// let answer = TaskOperation { try await Task.sleep(nanoseconds: 1_000_000); return 42 }
/// let number = try await OperationQueue().run(answer)
/// assert(number == 42)
/// ```
///
/// The closure runs once, in a task of its own, whose priority follows the operation's `qualityOfService` at the start.
/// What it returns is the output, what it throws is the error.
///
/// Cancelling the operation cancels the task, and the operation ends when the closure does, with whatever it returns or
/// throws. A task that is cancelled from inside cancels the operation, on another thread and before the operation ends.
/// A closure that throws `CancellationError` after `cancel(withError:)` ends the operation with that reason. The closure
/// is released when the operation finishes.
public final class TaskOperation<Output: Sendable>: IOOperation<Void, Output>, @unchecked Sendable {
    /// The work.
    public typealias Body = @Sendable () async throws -> Output

    private var body: Body?
    private var task: Task<Void, Never>?

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping Body) {
        self.body = body
        super.init()
        self.name = name
    }

    /// Starts the task.
    public override func main(input: Void) {
        guard let body = withState({ _ in self.body }) else { return }
        let task = startTask(body)
        withState { _ in if self.body != nil { self.task = task } }
    }

    /// Cancels the task.
    public override func didCancel() {
        lock.withLock { task }?.cancel()
    }

    override func discardWork() {
        // What is returned is released after unlocking.
        _ = withState { _ in
            defer { (body, task) = (nil, nil) }
            return (body, task)
        }
    }
}

extension TaskPriority {
    /// The priority that stands for a quality of service.
    init(_ qualityOfService: QualityOfService) {
        switch qualityOfService {
        case .userInteractive: self = .high
        case .userInitiated: self = .userInitiated
        case .utility: self = .utility
        case .background: self = .background
        case .default: self = .medium
        // Of a future system.
        @unknown default: self = .medium
        }
    }
}
