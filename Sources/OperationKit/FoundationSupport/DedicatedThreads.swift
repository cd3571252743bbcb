import Dispatch
import Foundation

/// Threads that only the library uses, for work that has to go on although code of users blocks all others: those of the
/// cooperative pool, of which there are as many as processors, and those of dispatch queues, of which there are 255.
///
/// A few threads begin work immediately. Another thread comes only when work has waited for a moment, which means that code of
/// users blocks those that are there, up to a limit. Threads end when they have been idle for some seconds.
final class DedicatedThreads: Sendable {
    /// The threads that deliver what cannot be delivered where it happens: expired deadlines, cancellations of tasks, lost
    /// finishes, and releases of resources. Everything that runs here is short, except for code of users that it calls.
    static let deliveries = DedicatedThreads(limit: 512)

    private static let idleTime = Duration.seconds(5)
    /// How long work waits before a thread is added to those that begin immediately.
    private static let patience: useconds_t = 1_000

    private struct State {
        let limit: Int
        /// The jobs that were added last, and the earlier ones in reverse.
        var added: [@Sendable () -> Void] = []
        var earlier: [@Sendable () -> Void] = []
        var threadCount = 0
        var idleCount = 0
        /// Whether a thread has been created that has not looked for work yet.
        var isGrowing = false

        mutating func nextJob() -> (@Sendable () -> Void)? {
            if earlier.isEmpty { swap(&earlier, &added); earlier.reverse() }
            return earlier.popLast()
        }

        /// Counts a thread that the caller has to create, if one is missing.
        mutating func grow() -> NewThread? {
            guard !(added.isEmpty && earlier.isEmpty), idleCount == 0, !isGrowing, threadCount < limit else {
                return nil
            }
            threadCount += 1
            isGrowing = true
            return threadCount <= max(2, ProcessInfo.processInfo.activeProcessorCount) ? .immediate : .patient
        }
    }

    private enum NewThread { case immediate, patient }

    private let state: ThreadCondition<State>

    /// - Parameter limit: The maximum number of threads.
    init(limit: Int) {
        state = ThreadCondition(State(limit: limit))
    }

    /// Runs a job on one of the threads. Jobs begin in the order of their addition.
    func perform(_ job: @escaping @Sendable () -> Void) {
        let (thread, isIdle) = state.withLock { state in
            state.added.append(job)
            return (state.grow(), state.idleCount > 0)
        }
        if isIdle { state.signal() }
        if let thread { create(thread) }
    }

    // MARK: - Threads

    private func create(_ thread: NewThread) {
        let isCreated = detachThread { [self] in run(thread) }
        if !isCreated { DispatchQueue.global().async { [self] in run(thread) } }
    }

    private func run(_ thread: NewThread) {
        if thread == .patient { usleep(DedicatedThreads.patience) }
        state.withLock { $0.isGrowing = false }
        while let job = nextJob() {
            #if canImport(ObjectiveC)
            autoreleasepool { job() }
            #else
            job()
            #endif
        }
    }

    /// Returns the next job for the current thread, or `nil` if the thread is to end.
    private func nextJob() -> (@Sendable () -> Void)? {
        var isIdle = false
        let (job, thread) = state.wait { (state, isOver) -> ThreadWait<((@Sendable () -> Void)?, NewThread?)> in
            if isIdle { state.idleCount -= 1 }
            isIdle = false
            if let job = state.nextJob() { return .ended((job, state.grow())) }
            if isOver {
                state.threadCount -= 1
                return .ended((nil, nil))
            }
            state.idleCount += 1
            isIdle = true
            return .waiting(atMost: DedicatedThreads.idleTime)
        }
        // The job may block, and leave the jobs behind it to another thread.
        if let thread { create(thread) }
        return job
    }
}
