/// Whether work is suspended, and the tasks that wait for it to be resumed.
final class Suspension: Sendable {
    private struct State {
        var isSuspended = false
        var waiters = Waiters<CheckedContinuation<Wakeup, Never>>()
    }

    private let state = Locked(State())

    /// May be changed and read on any thread, at any time.
    var isSuspended: Bool {
        get { state.withLock(\.isSuspended) }
        set {
            let waiting = state.withLock { state in
                state.isSuspended = newValue
                return newValue ? [] : state.waiters.finished()
            }
            for continuation in waiting { continuation.resume(returning: .finished) }
        }
    }

    /// Suspends the current task until the work is not suspended, or the task is cancelled.
    func ended() async {
        let id = WaiterID()
        _ = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state in
                    state.waiters.registered(continuation, as: id, isFinished: !state.isSuspended)
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiters.cancelled(id, isFinished: !$0.isSuspended) }
            continuation?.resume(returning: .cancelled)
        }
    }
}
