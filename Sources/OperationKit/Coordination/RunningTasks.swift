import Foundation

/// The tasks of the units that are in flight, where units are asynchronous functions.
final class RunningTasks: @unchecked Sendable {
    private let lock = NSLock()
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var isCancelled = false

    /// Runs an asynchronous function in a task of its own, which is known until it ends.
    func run(
        _ index: Int, _ body: @escaping @Sendable () async throws -> Void,
        completion: @escaping CollectionDriver.UnitCompletion
    ) {
        // The task has to be known before it ends, so it is made with the lock held. Nothing of it runs there.
        let isCancelled = lock.withLock {
            tasks[index] = Task {
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
            return self.isCancelled
        }
        if isCancelled { cancel() }
    }

    /// Cancels all tasks, those that come later too.
    func cancel() {
        let tasks = lock.withLock {
            isCancelled = true
            return Array(self.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    private func forget(_ index: Int) {
        lock.withLock { tasks[index] = nil }
    }
}
