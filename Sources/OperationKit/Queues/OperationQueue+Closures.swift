public import Foundation

extension OperationQueue {
    /// Runs a closure in the task of the caller, once it is its turn on the queue, and returns what it returns.
    ///
    /// ```swift
    /// let uploads = OperationQueue.serial(name: "uploads")
    /// let count = try await uploads.run(name: "count") { "four".count }
    /// assert(count == 4)
    /// ```
    ///
    /// The call puts an operation on the queue. At its turn, which its order, limit and suspension decide, the
    /// operation takes a *place* on the queue: one of those that the limit counts. It keeps the place until the closure
    /// has returned or thrown. The closure runs where the call was made, with the task-local values, the priority and
    /// the actor of the caller. It may use values that are not `Sendable`, and return one. No thread is blocked.
    ///
    /// If the task is cancelled before the turn, the call throws immediately, even if the queue is suspended; the
    /// operation leaves the queue at its turn. In a task that was cancelled before the call, nothing is put on the
    /// queue. During the closure, the cancellation of the task is the closure's to notice.
    ///
    /// Cancelling the operation before its turn, for example with `cancelAllOperations()`, makes the call throw
    /// immediately. Afterward it has no effect on the closure. To have an operation's cancellation reach an `async`
    /// closure, run a ``TaskOperation``.
    ///
    /// The operation belongs to the call. If other code finishes it before its turn, with success or an error, the
    /// closure isn't called, and the call throws at the turn. If other code finishes it during the closure, that is a
    /// request, as for a composite: it ends when the closure is over, with the outcome that it was given, and the call
    /// returns what the closure returns.
    ///
    /// Don't call this method, or `map`, for the same queue inside the closure, unless a place is sure to be free: on a
    /// serial queue, the inner call waits forever for the outer one.
    ///
    /// - Parameters:
    ///   - name: The name of the operation that holds the place.
    ///   - body: The work.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws. If the closure isn't called, the reason that was given to the operation's
    ///   cancellation, or the error with which other code finished the operation before its turn; without one,
    ///   `CancellationError`.
    @discardableResult
    public nonisolated(nonsending) func run<Output>(
        name: String? = nil, _ body: nonisolated(nonsending) () async throws -> Output
    ) async throws -> Output {
        let place = QueueTurnOperation(name: name, on: self)
        try await place.waitForTurn(on: self)
        do {
            let output = try await body()
            place.end(with: .success(()))
            return output
        } catch {
            place.end(with: .failure(error))
            throw error
        }
    }
}
