import Foundation

/// Holds a place on a queue for a closure, which runs in the task of its caller. The operation executes from its turn
/// until the closure has returned or thrown.
///
/// The place is given up if the caller's task is cancelled before the turn, or the operation is cancelled or finished
/// by other code. The caller then goes on immediately, and the operation leaves the queue at its turn. From the turn
/// on, only the caller decides when the operation ends.
final class QueueTurnOperation: AsyncOperation, @unchecked Sendable {
    // The lock of the operation guards it.
    private var turn = QueueTurn<CheckedContinuation<Void, any Error>>()

    init(name: String?) {
        super.init()
        self.name = name
    }

    /// Puts the operation on a queue, and suspends until its turn has come. The caller finishes it then.
    ///
    /// - Parameter queue: The queue.
    /// - Throws: `CancellationError` if the task is cancelled before the turn; if it is cancelled already, nothing is
    ///   put on the queue. If the operation is cancelled or finished before its turn, the reason or the error that it
    ///   was given.
    nonisolated(nonsending) func waitForTurn(on queue: OperationQueue) async throws {
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    if let decision = lock.withLock({ turn.awaited(by: continuation) }) {
                        continuation.resume(with: decision)
                    } else {
                        queue.addOperation(self)
                    }
                }
            } onCancel: {
                decide(.failure(CancellationError()))
            }
        } catch {
            // Not in the handler: this notifies a queue, and the runtime holds a lock there.
            cancel()
            throw error
        }
    }

    /// The turn has come.
    override func main() {
        if !decide(.success(())) { finish(withError: CancellationError()) }
    }

    override func cancellationTookEffect() {
        decide(.failure(withState { $0.lifecycle.cancellationReason } ?? CancellationError()))
    }

    override func releaseWork() {
        decide(.failure(error ?? CancellationError()))
    }

    @discardableResult
    private func decide(_ decision: QueueTurn<Void>.Decision) -> Bool {
        let (isFirst, continuation) = lock.withLock { turn.decided(decision) }
        continuation?.resume(with: decision)
        return isFirst
    }
}
