import Foundation

extension AsyncOperation {
    /// Suspends until the operation is finished, and throws the error it ended with.
    ///
    /// Any number of tasks may wait, before, during or after the run. They resume after `isFinished` has become true;
    /// for a finished operation the call returns immediately. Cancelling the waiting task ends the wait and leaves the
    /// operation alone.
    ///
    /// An operation that is never started never finishes: the wait then lasts until the waiting task is cancelled, and
    /// keeps the operation alive until then.
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
        if withState(\.isOver) { return }
        let id = WaiterID()
        if await wait(id, onCancel: { cancelWait(id) }) == .cancelled { throw CancellationError() }
    }

    /// Suspends until the operation is finished, or ``cancelWait(_:)`` is called.
    ///
    /// - Parameters:
    ///   - id: Identifies the wait.
    ///   - cancelled: Called when the waiting task is cancelled, on any thread. Cancels the wait, unless that was done before.
    /// - Returns: Why the wait has ended.
    final func wait(_ id: WaiterID, onCancel cancelled: @Sendable () -> Void) async -> Wakeup {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = withState {
                    $0.waiters.registered(continuation, as: id, isFinished: $0.isOver)
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            cancelled()
        }
    }

    /// Resumes a task that waits, unless the operation has finished. Called at most once in a wait.
    final func cancelWait(_ id: WaiterID) {
        let continuation = withState { $0.waiters.cancelled(id, isFinished: $0.isOver) }
        continuation?.resume(returning: .cancelled)
    }

    /// Suspends until the operation is finished, or ``cancelWait(_:)`` is called, whatever happens to the waiting task.
    final func waitForFinishUncancellably(_ id: WaiterID = WaiterID()) async {
        _ = await withCheckedContinuation { continuation in
            let answer = withState { $0.waiters.registered(continuation, as: id, isFinished: $0.isOver) }
            if let answer { continuation.resume(returning: answer) }
        }
    }
}
