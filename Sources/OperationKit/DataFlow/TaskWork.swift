import Foundation

/// The asynchronous closure of an operation, and the task that runs it. The operation's lock guards it.
struct TaskWork<Input, Output> {
    /// What the task calls. It has a type of its own, not that of a generic parameter, whose size had to be looked up wherever it
    /// is touched.
    typealias Body = @Sendable (_ operation: AsyncOperation, _ input: Input) async throws -> Output

    /// The closure, until the task takes it or the operation ends.
    fileprivate var body: Body?
    /// The task, until the closure has returned or the operation ends. What the task does from then on is to end the operation, and
    /// must not be cancelled.
    fileprivate var task: Task<Void, Never>?
    /// What the closure waits for between two attempts.
    var wait: String?

    /// Whether the closure is called for one attempt after the other.
    let isRetried: Bool

    init(isRetried: Bool = false, _ body: @escaping Body) {
        self.isRetried = isRetried
        self.body = body
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
            // The operation may have ended without it.
            if taskWork.body == nil { return task.cancel() }
            taskWork.task = task
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
    private func output(of input: Input) async throws -> Value {
        // Without its closure the operation has its outcome already, and goes by that.
        guard let body = lock.withLock({ taskWork.body.take() }) else { throw CancellationError() }
        defer {
            lock.withLock { taskWork.task = nil }
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
        // The closure is released after unlocking; its deinitializers may run arbitrary code.
        let (_, task) = lock.withLock { (taskWork.body.take(), taskWork.task.take()) }
        task?.cancel()
    }
}
