import Foundation

extension AsyncOperation {
    /// Suspends until the operation is finished, and throws the error it ended with.
    ///
    /// Any number of tasks may wait, before, during or after the run. They resume after `isFinished` has become true;
    /// for a finished operation the call returns at once. Cancelling the waiting task ends the wait and leaves the
    /// operation alone.
    ///
    /// An operation that is never started never finishes: the wait then lasts until the waiting task is cancelled, and
    /// keeps the operation alive so long.
    ///
    /// - Throws: ``error``; for an operation that was cancelled before its start, `CancellationError` or the reason
    ///   given for the cancellation. `CancellationError` also when the waiting task is cancelled before the operation
    ///   is finished.
    public final func finished() async throws {
        try await waitForFinish()
        if let error { throw error }
    }

    /// Suspends until the operation is finished, whatever its outcome. Throws only when the waiting task is cancelled.
    final func waitForFinish() async throws {
        if isFinished { return }
        let id = WaiterID()
        let wakeup = await withTaskCancellationHandler {
            await unsafe withUnsafeContinuation {
                let task = unsafe SuspendedTask($0)
                let answer = withState { $0.waiters.registered(task, as: id, isFinished: $0.lifecycle.isFinished) }
                if let answer { task.resume(returning: answer) }
            }
        } onCancel: {
            let task = withState { $0.waiters.cancelled(id, isFinished: $0.lifecycle.isFinished) }
            task?.resume(returning: .cancelled)
        }
        if wakeup == .cancelled { throw CancellationError() }
    }

    /// Suspends until the operation is finished, whatever its outcome and whatever happens to the waiting task.
    final func waitForFinishUncancellably() async {
        _ = await unsafe withUnsafeContinuation {
            let (id, task) = unsafe (WaiterID(), SuspendedTask($0))
            let answer = withState { $0.waiters.registered(task, as: id, isFinished: $0.lifecycle.isFinished) }
            if let answer { task.resume(returning: answer) }
        }
    }
}

/// A task that waits. It has to be resumed exactly once, for which there is no check at run time: ``Waiters`` sees to it.
@safe struct SuspendedTask: Sendable {
    private let continuation: UnsafeContinuation<Wakeup, Never>

    init(_ continuation: UnsafeContinuation<Wakeup, Never>) {
        unsafe self.continuation = continuation
    }

    func resume(returning wakeup: Wakeup) {
        unsafe continuation.resume(returning: wakeup)
    }
}
