import Foundation

/// The place of a closure on a queue. It executes from the closure's turn until the closure is over, and the closure runs
/// in the task of its caller.
///
/// Before its turn the place can be given up: the caller's task is cancelled, the operation is cancelled, or it is given an
/// outcome from outside. The caller then goes on immediately, and the empty place leaves the queue at its turn. Afterward
/// only the caller decides.
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
    /// - Throws: `CancellationError` when the task is cancelled before the turn, and nothing is put on the queue if it has
    ///   been by now. Why the operation was cancelled, or what it was ended with, before its turn.
    nonisolated(nonsending) func begin(on queue: OperationQueue) async throws {
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
            // Not in the handler: a queue is told, and the runtime holds a lock there.
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
