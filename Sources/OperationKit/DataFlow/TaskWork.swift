import Foundation

/// The asynchronous closure of an operation, and the task that runs it. The operation's lock guards it.
///
/// What is released here is returned, for the caller to release after unlocking: its deinitializers may run arbitrary
/// code.
struct TaskWork<Input, Output> {
    /// What the task calls. It has a type of its own, not that of a generic parameter, whose size had to be looked up wherever it
    /// is touched.
    typealias Body = @Sendable (_ operation: AsyncOperation, _ input: Input) async throws -> Output

    private var body: Body?
    private(set) var task: Task<Void, Never>?
    /// What the closure waits for between two attempts.
    var wait: String?

    /// Whether the closure is called for one attempt after the other.
    let isRetried: Bool

    init(isRetried: Bool = false, _ body: @escaping Body) {
        self.isRetried = isRetried
        self.body = body
    }

    /// The task has been created, which takes the closure after that.
    ///
    /// - Returns: Whether the operation has ended without it, so that the task has to be cancelled.
    mutating func created(_ task: Task<Void, Never>) -> Bool {
        if body == nil { return true }
        self.task = task
        return false
    }

    /// The task has started: it takes the closure.
    mutating func takeBody() -> Body? {
        defer { body = nil }
        return body
    }

    /// The closure has returned. What the task does from here on is to end the operation, and must not be cancelled.
    mutating func bodyReturned() {
        task = nil
    }

    /// The operation ends.
    ///
    /// - Returns: The closure, if it has not been taken, and the task, if the closure has not returned.
    mutating func discard() -> (Body?, Task<Void, Never>?) {
        defer { (body, task) = (nil, nil) }
        return (body, task)
    }
}

/// An operation that runs an asynchronous closure in a task, and ends when the closure does.
protocol TaskRunning<Input, Value>: AsyncOperation {
    associatedtype Input: Sendable
    /// What the closure returns. Not named `Output`, because a conforming type may have a generic parameter of that
    /// name that is another type.
    associatedtype Value: Sendable

    var taskWork: TaskWork<Input, Value> { get set }
    @discardableResult
    func finish(with output: Value) -> Bool
}

extension TaskRunning {
    /// Starts the task. If its closure cancels it, the operation is cancelled too: soon, and before it ends.
    func startTask(with input: Input) {
        let priority = qualityOfService.equivalents.priority
        withState { state in
            // The closure is not called before the lock is released, so from its beginning on `Task.isCancelled` is what
            // the operation's `isCancelled` is. And nothing is called when the task is cancelled here.
            let task = Task.detached(priority: priority) { await self.runTask(with: input) }
            if taskWork.created(task) || state.lifecycle.isCancelled { task.cancel() }
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
    private func output(of input: Input) async throws -> Value {
        // Without its closure the operation has its outcome already, and goes by that.
        guard let body = lock.withLock({ taskWork.takeBody() }) else { throw CancellationError() }
        defer {
            lock.withLock { taskWork.bodyReturned() }
            if Task.isCancelled { cancel() }
        }
        return try await withCancellationDelivered {
            self.cancel()
        } during: {
            try await body(self, input)
        }
    }

    /// Describes what the closure waits for; `nil` once it goes on.
    func setWait(_ description: String?) {
        lock.withLock { taskWork.wait = description }
    }

    /// Cancels the task, if there is one.
    func cancelTask() {
        lock.withLock { taskWork.task }?.cancel()
    }

    /// Releases the closure. Cancels a task that goes on because other code finished the operation.
    func releaseTask() {
        let (body, task) = lock.withLock { taskWork.discard() }
        task?.cancel()
        _ = body
    }
}
