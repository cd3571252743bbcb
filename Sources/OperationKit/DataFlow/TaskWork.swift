import Foundation

/// The asynchronous closure of an operation that runs one in a task, and ends when the closure does; and that task. The
/// operation's lock guards it.
final class TaskWork<Input: Sendable, Output: Sendable>: @unchecked Sendable {
    typealias Body = @Sendable (_ input: Input) async throws -> Output

    /// The closure, until the task takes it or the operation ends.
    var body: Body?
    /// The task, until the closure has returned or the operation ends. What the task does from then on is to end the operation, and
    /// must not be cancelled.
    var task: Task<Void, Never>?
    /// What the closure waits for between two attempts.
    var wait: String?

    /// Whether the closure is called for one attempt after the other.
    let isRetried: Bool

    init(isRetried: Bool = false, _ body: @escaping Body) {
        self.isRetried = isRetried
        self.body = body
    }
}

extension IOOperation {
    /// Starts the task. If its closure cancels it, the operation is cancelled too: soon, and before it ends.
    func startTask(with input: Input) {
        let priority = qualityOfService.equivalents.priority
        withState { state in
            // The closure is not called before the lock is released, so from its beginning on `Task.isCancelled` is what
            // the operation's `isCancelled` is. And nothing is called when the task is cancelled here.
            let task = Task.detached(priority: priority) { await self.runTask(with: input) }
            // The operation may have ended without it.
            if taskWork?.body == nil { return task.cancel() }
            taskWork?.task = task
            if state.lifecycle.isCancelled { task.cancel() }
        }
    }

    private func runTask(with input: Input) async {
        do {
            finish(with: try await output(of: input))
        } catch {
            finish(withError: error)
        }
    }

    /// Calls the closure, which is released when this returns.
    private func output(of input: Input) async throws -> Output {
        // Without its closure the operation has its outcome already, and goes by that.
        guard let body = lock.withLock({ taskWork?.body.take() }) else { throw CancellationError() }
        defer {
            lock.withLock { taskWork?.task = nil }
            if Task.isCancelled { cancel() }
        }
        return try await withCancellationDelivered(to: cancel) {
            try await body(input)
        }
    }

    /// Describes what the closure waits for; `nil` once it goes on.
    func setWait(_ description: String?) {
        lock.withLock { taskWork?.wait = description }
    }
}
