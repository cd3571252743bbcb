import Dispatch
import Foundation

/// Threads that only the library uses, for work that has to go on although code of users blocks all others: those of the
/// cooperative pool, of which there are as many as processors, and those of dispatch queues, of which there are 255.
///
/// Jobs begin in the order of their addition. Some threads take them without delay. Another one joins, up to a limit, when no
/// job has begun for a moment, which means that code of users blocks the threads. Idle threads end after some seconds.
final class DedicatedThreads: Sendable {
    /// Delivers what cannot be delivered where it happens: expired deadlines, cancellations of tasks, lost finishes and
    /// releases of resources, one after the other as long as none of them blocks.
    static let deliveries = DedicatedThreads(promptCount: 1, limit: 512)

    private static let idleTime = Duration.seconds(5)
    private static let patience = Duration.milliseconds(2)

    /// What a thread does while it does not look for a job.
    private enum Role {
        case arriving, busy, idle
        /// Joins if no job begins for a moment.
        case patient(begunCount: Int)
    }

    private struct State {
        let promptCount: Int
        let limit: Int
        /// The jobs that were added last, and the earlier ones in reverse.
        var added: [@Sendable () -> Void] = []
        private var earlier: [@Sendable () -> Void] = []
        private(set) var begunCount = 0
        private(set) var busyCount = 0
        private(set) var patientCount = 0
        private var idleCount = 0
        /// Threads that were created or woken, and have not looked for a job yet.
        private var arrivingCount = 0

        init(promptCount: Int, limit: Int) {
            self.promptCount = promptCount
            self.limit = limit
        }

        var hasJobs: Bool { !(added.isEmpty && earlier.isEmpty) }

        mutating func beginNextJob() -> (@Sendable () -> Void)? {
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
            case .busy: busyCount -= 1
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
                if busyCount < promptCount { wake() }
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
    func perform(_ job: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.added.append(job)
            return state.summonThread(wake: self.state.signal)
        }
        if needsThread { createThread() }
    }

    // MARK: - Threads

    private func createThread() {
        if !detachThread({ self.run() }) { DispatchQueue.global().async { self.run() } }
    }

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
    private func nextJob(_ role: inout Role) -> (@Sendable () -> Void)? {
        let (job, needsThread) = state.wait { (state, isOver) -> ThreadWait<((@Sendable () -> Void)?, Bool)> in
            state.leave(role)
            switch role {
            case .idle where isOver && !state.hasJobs:
                return .ended((nil, false))
            case .patient(state.begunCount) where isOver && state.hasJobs,
                _ where state.hasJobs && state.busyCount < state.promptCount:
                role = .busy
                state.enter(role)
                let job = state.beginNextJob()
                // The job may block.
                return .ended((job, state.summonThread(wake: self.state.signal)))
            default:
                role = state.hasJobs && state.patientCount == 0 ? .patient(begunCount: state.begunCount) : .idle
                state.enter(role)
                if case .idle = role { return .waiting(atMost: DedicatedThreads.idleTime) }
                return .waiting(atMost: DedicatedThreads.patience)
            }
        }
        if needsThread { createThread() }
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
    isolation: isolated (any Actor)? = #isolation, to handler: @escaping @Sendable () -> Void,
    during body: () async throws -> Value
) async rethrows -> Value {
    if Task.isCancelled {
        handler()
        return try await body()
    }
    return try await withTaskCancellationHandler(operation: body) {
        DedicatedThreads.deliveries.performAsync(handler)
    }
}
