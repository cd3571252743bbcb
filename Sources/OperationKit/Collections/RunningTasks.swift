/// The tasks of the units in flight, where an `async` method performs a unit: an item or a batch.
final class RunningTasks: Sendable {
    private struct State {
        var tasks: [Int: Task<Void, Never>] = [:]
        var isCancelled = false
    }

    private let state = Locked(State())

    /// Runs an asynchronous function in a task of its own, which is known until it ends.
    func run(
        _ index: Int, _ body: @escaping @Sendable () async throws -> Void,
        completion: @escaping UnitCompletion
    ) {
        // The task has to be stored before it ends, so it is created with the lock held. Nothing of it runs there.
        let isCancelled = state.withLock { state in
            state.tasks[index] = Task {
                let error: (any Error)?
                do {
                    try await body()
                    error = nil
                } catch let thrown {
                    error = thrown
                }
                forget(index)
                completion(error)
            }
            return state.isCancelled
        }
        if isCancelled { cancel() }
    }

    /// Runs an asynchronous function in a task of its own, and suspends until it has ended. Cancelling the current task
    /// cancels all tasks.
    ///
    /// - Returns: What the function throws.
    func run(_ index: Int, _ body: @escaping @Sendable () async throws -> Void) async -> (any Error)? {
        await withCancellationDelivered {
            self.cancel()
        } during: {
            await withCheckedContinuation { continuation in
                run(index, body) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Cancels all tasks, later ones too.
    func cancel() {
        let tasks = state.withLock { state in
            state.isCancelled = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    private func forget(_ index: Int) {
        // Release the task after unlocking; its deinitializers may run arbitrary code.
        _ = state.withLock { $0.tasks.removeValue(forKey: index) }
    }
}
