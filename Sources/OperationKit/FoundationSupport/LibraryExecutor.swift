import Foundation

/// Runs the library's own tasks on threads of their own, so that they go on while tasks of users block the cooperative pool.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class LibraryExecutor: TaskExecutor {
    static let shared = LibraryExecutor()
    private static let processorCount = max(2, ProcessInfo.processInfo.activeProcessorCount)

    /// More than there are places for closures of users, so that these never block all of them.
    private let threads = DedicatedThreads(
        promptCount: processorCount, limit: ClosurePlaces.count + 32)

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

/// Calls a synchronous closure of the user in a task of the library. It may block.
///
/// A certain number of closures run at the same time, and further ones wait for their turn in the order of their arrival. So however
/// many block, tasks of the library, deadlines, cancellations and releases go on. A closure that has its place immediately runs
/// on the current thread.
///
/// - Parameters:
///   - isOnLibraryThread: Whether the current thread is one of the ``LibraryExecutor``, by another executor; `nil` to ask.
///   - body: The closure.
/// - Returns: What the closure returns.
/// - Throws: What the closure throws; `CancellationError` if the task is cancelled while the closure waits for its turn, and does
///   not run.
func runUserClosure<Value: Sendable>(
    isOnLibraryThread: Bool? = nil, _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await ClosurePlaces.enter()
    defer { ClosurePlaces.leave() }
    #if canImport(Darwin)
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
        return try await withCheckedThrowingContinuation { continuation in
            ClosurePlaces.threads.perform { continuation.resume(with: Result { try body() }) }
        }
    }
    #endif
    if isOnLibraryThread ?? LibraryExecutor.isCurrent { return try body() }
    return try await withTaskExecutorPreference(LibraryExecutor.shared) { try body() }
}

/// The places of the synchronous closures of users that run at the same time.
private struct ClosurePlaces {
    static let count = 64
    static let shared = Locked(ClosurePlaces())
    /// Where the closures run without a task executor.
    static let threads = DedicatedThreads(promptCount: count, limit: count)

    /// A wait for a place. The lock of the places guards it.
    private final class Wait: @unchecked Sendable {
        var place: HeapElementID?
        var isCancelled = false
    }

    private var free = count
    private var line = IndexedHeap<Int, CheckedContinuation<Bool, Never>>()

    /// Takes a place.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits for the place.
    static func enter() async throws {
        if shared.withLock({ $0.takeFreePlace() }) { return }
        let wait = Wait()
        let hasPlace = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = shared.withLock { places in
                    if wait.isCancelled { return false }
                    if places.takeFreePlace() { return true }
                    wait.place = places.line.insert(continuation, key: 0)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let continuation = shared.withLock { places in
                wait.isCancelled = true
                return wait.place.flatMap { places.line.remove($0) }
            }
            continuation?.resume(returning: false)
        }
        if !hasPlace { throw CancellationError() }
    }

    /// Hands the place to the closure that has waited longest.
    static func leave() {
        let next = shared.withLock { places in
            let next = places.line.popFirst()
            if next == nil { places.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }

    private mutating func takeFreePlace() -> Bool {
        guard free > 0 else { return false }
        free -= 1
        return true
    }
}
