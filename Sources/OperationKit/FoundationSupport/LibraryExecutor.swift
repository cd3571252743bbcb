import Foundation

/// How many synchronous closures of users run at the same time.
let closureLimit = 64

/// Runs the library's own tasks on threads of their own, so that they go on while tasks of users block the cooperative pool.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class LibraryExecutor: TaskExecutor {
    static let shared = LibraryExecutor()
    private static let processorCount = max(2, ProcessInfo.processInfo.activeProcessorCount)

    /// More than there are places for closures of users, so that these never block all of them.
    private let threads = DedicatedThreads(promptCount: processorCount, limit: closureLimit + 32)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.perform { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Runs a part of a task that prefers another executor of the library.
    func perform(_ job: @escaping @Sendable () -> Void) {
        threads.performAsync(job)
    }

    /// Whether the current task prefers this executor.
    static var isCurrent: Bool {
        unsafe withUnsafeCurrentTask { task in
            unsafe task?.unownedTaskExecutor == shared.asUnownedTaskExecutor()
        }
    }
}

/// Starts a task of the library: a gate, the body of a composite, or the sleep of a timer.
///
/// It inherits nothing from the caller, task-locals included. It goes on while other tasks block the cooperative pool, where the
/// system has task executors (from macOS 15 and iOS 18 on, and on Linux). Code of users does not run in it directly: synchronous
/// closures are called by ``runUserClosure(_:)``, asynchronous ones by ``runUserTask(_:)``.
///
/// - Parameters:
///   - priority: The priority of the task; that of the pool's default without one.
///   - body: What the task does. It must not block.
/// - Returns: The task.
@discardableResult
func startLibraryTask<Value: Sendable>(
    priority: TaskPriority? = nil, _ body: @escaping @Sendable () async -> Value
) -> Task<Value, Never> {
    #if canImport(Darwin)
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
        return Task.detached(priority: priority, operation: body)
    }
    #endif
    return Task.detached(executorPreference: LibraryExecutor.shared, priority: priority, operation: body)
}

/// Runs an asynchronous closure of the user as part of a task of the library, on the cooperative pool: it may suspend, and if it
/// blocks after all, it blocks no thread of the library.
///
/// - Parameter body: The closure. `Task.isCancelled` in it is that of the current task.
/// - Returns: What the closure returns.
/// - Throws: What the closure throws.
func runUserTask<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
    #if canImport(Darwin)
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return try await body() }
    #endif
    return try await withTaskExecutorPreference(globalConcurrentExecutor) { try await body() }
}
