import Foundation

/// Holds a place on a queue for a closure, which runs in the task of its caller. The operation executes from its turn
/// until the closure has returned or thrown.
///
/// The place is given up if the caller's task or the operation is cancelled before the turn. The caller then goes on
/// immediately, and the operation leaves the queue at its turn. If other code finishes the operation before the turn,
/// the caller goes on at the turn, without a place. From the turn on, only the caller decides when the operation ends:
/// `finish` by other code gives it its outcome, not its end.
final class QueueTurnOperation: AsyncOperation, @unchecked Sendable {
    // The lock of the operation guards it.
    private var turn = QueueTurn<CheckedContinuation<Void, any Error>>()
    /// For the title only. Not held: where the place was given up, the operation stays on the queue without the caller.
    private weak var queue: OperationQueue?

    init(name: String?, on queue: OperationQueue) {
        self.queue = queue
        super.init()
        deferEnd()
        self.name = name
    }

    override class var typeTitle: String { "run on a queue" }

    override var ownTitle: String? { queue.map { "run on " + $0.displayName } }

    /// Puts the operation on its queue, and suspends until its turn has come. The caller finishes it then.
    ///
    /// - Parameter queue: The queue, held by the caller.
    /// - Throws: `CancellationError` if the task is cancelled before the turn; if it is cancelled already, nothing is
    ///   put on the queue. If the operation is cancelled or finished before its turn, the reason or the error that it
    ///   was given, or else `CancellationError`.
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
        if !decide(.success(())) { end(with: .failure(CancellationError())) }
    }

    /// Gives the place back. The outcome stands unless other code has given one.
    func end(with outcome: Lifecycle.Outcome) {
        let outcome = outcome.mapError { replacedByReason($0) }
        endDeferred(with: outcome)
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
