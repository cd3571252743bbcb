import Dispatch
import Foundation

/// Threads that only the library uses, for work that has to go on although code of users blocks all others: those of the
/// cooperative pool, of which there are as many as processors, and those of dispatch queues, of which there are 255.
///
/// Jobs begin in the order of their addition. Some threads take them without delay. Another one joins, up to a limit, when no
/// job has begun for a moment, which means that code of users blocks the threads, and goes on as long as that is so.
/// Idle threads end after some seconds.
final class DedicatedThreads: Sendable {
    typealias Job = @Sendable () -> Void

    /// Delivers what cannot be delivered where it happens: expired deadlines, cancellations of tasks and lost
    /// finishes, one after the other as long as none of them blocks.
    static let callbacks = DedicatedThreads(promptCount: 1, limit: 512)

    private static let idleTime = Duration.seconds(5)
    private static let patience = Duration.milliseconds(2)

    /// What a thread does while it does not look for a job.
    private enum Role {
        case arriving, idle
        /// Has begun a job, after so many threads had joined.
        case busy(joinCount: Int)
        /// Joins if no job begins for a moment.
        case patient(begunCount: Int)
    }

    private struct State {
        let promptCount: Int
        let limit: Int
        /// The jobs that were added last, and the earlier ones in reverse.
        var added: [Job] = []
        var earlier: [Job] = []
        private(set) var begunCount = 0
        var busyCount = 0
        private(set) var patientCount = 0
        /// How many threads have joined.
        var joinCount = 0
        /// How many of them take the place of a thread that has not ended its job.
        var substituteCount = 0
        var idleCount = 0
        /// Threads that were created or woken, and have not looked for a job yet.
        var arrivingCount = 0

        var hasJobs: Bool { !(added.isEmpty && earlier.isEmpty) }

        /// Whether a job may begin without delay.
        var hasPlace: Bool { busyCount < promptCount + substituteCount }

        mutating func beginNextJob() -> Job? {
            if earlier.isEmpty {
                swap(&earlier, &added)
                earlier.reverse()
            }
            begunCount += 1
            return earlier.popLast()
        }

        mutating func enter(_ role: Role) {
            switch role {
            case .arriving: arrivingCount += 1
            case .busy: busyCount += 1
            case .idle: idleCount += 1
            case .patient: patientCount += 1
            }
        }

        mutating func leave(_ role: Role) {
            switch role {
            case .busy(let joinCount):
                busyCount -= 1
                // Others have joined because of this job.
                if joinCount < self.joinCount { substituteCount = max(0, substituteCount - 1) }
            case .patient: patientCount -= 1
            // Which of the idle threads was woken does not matter.
            case .arriving, .idle: if arrivingCount > 0 { arrivingCount -= 1 } else { idleCount -= 1 }
            }
        }

        /// Decides whether another thread is to look for a job.
        ///
        /// - Parameter wake: Wakes one that waits. Called with the lock held: a thread that begins to wait later must not take the
        ///   signal of another one.
        /// - Returns: Whether a thread has to be created.
        mutating func summonThread(wake: () -> Void) -> Bool {
            guard hasJobs, arrivingCount == 0 else { return false }
            if patientCount > 0 {
                if hasPlace { wake() }
                return false
            }
            guard idleCount > 0 || busyCount < limit else { return false }
            enter(.arriving)
            guard idleCount > 0 else { return true }
            idleCount -= 1
            wake()
            return false
        }
    }

    private let state: ThreadCondition<State>

    /// - Parameters:
    ///   - promptCount: The number of threads that take jobs without delay.
    ///   - limit: The maximum number of threads.
    init(promptCount: Int, limit: Int) {
        state = ThreadCondition(State(promptCount: promptCount, limit: limit))
    }

    /// Runs a job on one of the threads.
    func perform(_ job: @escaping Job) {
        let needsThread = state.withLock { state in
            state.added.append(job)
            return state.summonThread(wake: self.state.signal)
        }
        if needsThread { detachThread(run) }
    }

    // MARK: - Threads

    private func run() {
        var role = Role.arriving
        while let job = nextJob(&role) {
            #if canImport(ObjectiveC)
            autoreleasepool { job() }
            #else
            job()
            #endif
        }
    }

    /// Waits for a job. Returns `nil` when the thread has been idle for so long that it ends.
    private func nextJob(_ role: inout Role) -> Job? {
        let (job, needsThread) = state.wait { (state, isOver) -> ThreadWait<(Job?, Bool)> in
            state.leave(role)
            switch role {
            case .idle where isOver && !state.hasJobs:
                return .ended((nil, false))
            case .patient(state.begunCount) where isOver && state.hasJobs, _ where state.hasJobs && state.hasPlace:
                if !state.hasPlace {
                    // Those that are busy seem to be blocked.
                    state.joinCount += 1
                    state.substituteCount += 1
                }
                role = .busy(joinCount: state.joinCount)
                state.enter(role)
                let job = state.beginNextJob()
                // The job may block.
                return .ended((job, state.summonThread(wake: self.state.signal)))
            default:
                let isPatient = state.hasJobs && state.patientCount == 0
                role = isPatient ? .patient(begunCount: state.begunCount) : .idle
                state.enter(role)
                return .waiting(atMost: isPatient ? DedicatedThreads.patience : DedicatedThreads.idleTime)
            }
        }
        if needsThread { detachThread(run) }
        return job
    }
}

/// Calls a body, and a handler if the current task is cancelled: before the body if the task is cancelled already, and
/// otherwise soon after its cancellation, on another thread.
///
/// The runtime calls the handler of its own `withTaskCancellationHandler` inside `Task.cancel()`, with a lock of the
/// task held that resuming the task takes too. Work that the handler asks to stop may be waiting for a lock of its own,
/// which a thread holds that is about to resume the task. So wherever cancelling a task cancels an operation, which
/// calls its ``AsyncOperation/didCancel()``, it does so through this function. A handler that only resumes a
/// continuation, as that of ``AsyncOperation/finished()``, does not need it.
///
/// - Parameters:
///   - isolation: The actor of the caller, where the body runs.
///   - handler: Called at most once, and without a lock. Calls for different tasks may come in any order.
///   - body: What may be cancelled. It may return before the handler has been called.
/// - Returns: What the body returns.
func withCancellationDelivered<Value>(
    isolation: isolated (any Actor)? = #isolation, to handler: @escaping DedicatedThreads.Job,
    during body: () async throws -> Value
) async rethrows -> Value {
    if Task.isCancelled {
        handler()
        return try await body()
    }
    return try await withTaskCancellationHandler(operation: body) {
        DedicatedThreads.callbacks.performAsync(handler)
    }
}

/// How many synchronous closures of users run at the same time.
let closureLimit = 64

/// Runs the library's own tasks on threads of their own, so that they go on while tasks of users block the cooperative pool.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class LibraryExecutor: TaskExecutor {
    static let shared = LibraryExecutor()

    /// More than there are places for closures of users, so that these never block all of them.
    private let threads = DedicatedThreads(
        promptCount: max(2, ProcessInfo.processInfo.activeProcessorCount), limit: closureLimit + 32)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.perform { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Runs a part of a task that prefers another executor of the library.
    func perform(_ job: @escaping DedicatedThreads.Job) {
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
/// system has task executors (from macOS 15 and iOS 18 on, and on Linux). Of users' code only the `sleep` of a clock runs in it: synchronous
/// closures are called by ``runUserClosure(isOnLibraryThread:_:)``, asynchronous ones by ``runUserTask(_:)``.
///
/// - Parameters:
///   - priority: The priority of the task; that of the pool's default without one.
///   - body: What the task does. It must not block.
/// - Returns: The task.
@discardableResult
func startLibraryTask<Value: Sendable>(
    priority: TaskPriority? = nil, _ body: @escaping @Sendable () async -> Value
) -> Task<Value, Never> {
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
        return Task.detached(priority: priority, operation: body)
    }
    return Task.detached(executorPreference: LibraryExecutor.shared, priority: priority, operation: body)
}

/// Runs an asynchronous closure of the user as part of a task of the library, on the cooperative pool: it may suspend, and if it
/// blocks after all, it blocks no thread of the library.
///
/// - Parameter body: The closure. `Task.isCancelled` in it is that of the current task.
/// - Returns: What the closure returns.
/// - Throws: What the closure throws.
func runUserTask<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return try await body() }
    return try await withTaskExecutorPreference(globalConcurrentExecutor) { try await body() }
}
