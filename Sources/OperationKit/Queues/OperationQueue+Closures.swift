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
    /// An operation takes the closure's turn on the queue, with its limit and suspension, and keeps the place until the
    /// closure has returned or thrown. The closure runs where the call was made: it has the task-local values, the priority
    /// and the actor of the caller, may use what is not `Sendable`, and so may its result be. No thread is blocked.
    ///
    /// Cancelling the task before the turn throws immediately, also on a suspended queue; the empty place leaves the queue
    /// at its turn. In a task that was cancelled before, nothing is put on the queue. During the closure, the cancellation
    /// of the task is the closure's to notice.
    ///
    /// Cancelling the operation before its turn, for example with `cancelAllOperations()`, makes the call throw
    /// immediately. Afterward it has no effect on the closure. To have an operation's cancellation reach an `async`
    /// closure, run a ``TaskOperation``.
    ///
    /// Don't run a closure of the same queue inside the closure where no place may be free: on a serial queue, the inner
    /// call waits for the outer one for ever.
    ///
    /// - Parameters:
    ///   - name: The name of the operation that holds the place.
    ///   - body: The work.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws. `CancellationError` if the task or the operation was cancelled before the turn,
    ///   or the reason that was given to the operation; the closure isn't called then.
    @discardableResult
    public nonisolated(nonsending) func run<Output>(
        name: String? = nil, _ body: nonisolated(nonsending) () async throws -> Output
    ) async throws -> Output {
        let place = QueueTurnOperation(name: name)
        try await place.begin(on: self)
        do {
            let output = try await body()
            place.finish()
            return output
        } catch {
            place.finish(withError: error)
            throw error
        }
    }
}
