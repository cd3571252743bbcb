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
    /// has returned or thrown. Calls of one actor come onto the queue in their order. The closure runs where the call was
    /// made, with the task-local values, the priority and the actor of the caller. It may use values that are not
    /// `Sendable`, and return one. No thread is blocked.
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
        let slot = QueueSlot(name: name, on: self)
        try await slot.waitForPlace(on: self)
        do {
            let output = try await body()
            slot.endDeferred(with: .success(()))
            return output
        } catch {
            slot.endDeferred(with: .failure(error))
            throw error
        }
    }

    /// Adds an operation that calls an asynchronous closure again when it throws, as a policy says, and returns its output.
    ///
    /// ```swift
    /// let downloads = OperationQueue.serial(name: "downloads")
    /// let policy = RetryPolicy(maximumAttempts: 3, backoff: .exponential(.milliseconds(100)))
    /// let size = try await downloads.run(name: "size", retry: policy) { "four".count }
    /// assert(size == 4)
    /// ```
    ///
    /// The same as `run(_:)` with a ``TaskOperation/init(name:retry:_:)``. All attempts, and the pauses between them, take one
    /// place on the queue. Cancelling the awaiting task, or the operation, ends a pause and cancels the closure, and no further
    /// attempt begins. Unlike that of `run(name:_:)`, the closure does not see task-local values.
    ///
    /// - Parameters:
    ///   - name: The name of the operation.
    ///   - policy: When to call the closure again.
    ///   - clock: What pauses are measured with; `nil` for a `ContinuousClock`.
    ///   - body: The work.
    /// - Returns: What the closure returns.
    /// - Throws: What the last call of the closure throws. ``RetryError`` if the policy makes no sense, or its budget is
    ///   exhausted. `CancellationError` if it is cancelled during a pause.
    @discardableResult
    public nonisolated(nonsending) func run<Output: Sendable>(
        name: String? = nil, retry policy: RetryPolicy, clock: (any Clock<Duration>)? = nil,
        _ body: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        let operation = TaskOperation(name: name, retry: policy, body)
        if let clock { operation.clock = clock }
        return try await run(operation)
    }

    /// Adds an operation that makes and runs operations until one succeeds, as a policy says, and returns its output.
    ///
    /// ```swift
    /// let pages = OperationQueue.serial(name: "pages")
    /// let policy = RetryPolicy(maximumAttempts: 3, backoff: .exponential(.milliseconds(100)))
    /// let page = try await pages.run(name: "page", retry: policy) { attempt in
    ///     TaskOperation { "page, loaded in attempt \(attempt)" }
    /// }
    /// assert(page == "page, loaded in attempt 1")
    /// ```
    ///
    /// The same as `run(_:)` with a ``RetryOperation``. All attempts, and the pauses between them, take one place on the queue.
    ///
    /// - Parameters:
    ///   - name: The name of the operation.
    ///   - policy: When to try again.
    ///   - clock: What pauses are measured with; `nil` for a `ContinuousClock`.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on.
    /// - Returns: The output of the last attempt.
    /// - Throws: The error of the last attempt, or what the closure throws. ``RetryError`` if the policy makes no sense, its
    ///   budget is exhausted, or an operation is made twice. `CancellationError` if it is cancelled during a pause.
    @discardableResult
    public nonisolated(nonsending) func run<Output: Sendable>(
        name: String? = nil, retry policy: RetryPolicy, clock: (any Clock<Duration>)? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Void, Output>
    ) async throws -> Output {
        let operation = RetryOperation(policy, name: name, makeOperation: makeOperation)
        if let clock { operation.clock = clock }
        return try await run(operation)
    }
}

/// Holds a place on a queue for a closure, which runs in the task of its caller. The operation executes from its turn
/// until the closure has returned or thrown.
///
/// The place is given up if the caller's task or the operation is cancelled before the turn. The caller then goes on
/// immediately, and the operation leaves the queue at its turn. If other code finishes the operation before the turn,
/// the caller goes on at the turn, without a place. From the turn on, only the caller decides when the operation ends:
/// `finish` by other code gives it its outcome, not its end.
final class QueueSlot: AsyncOperation, @unchecked Sendable {
    private enum Phase {
        case open
        case awaited(CheckedContinuation<Void, any Error>)
        /// The first decision: the turn has come, or the closure is not to run, for the reason given.
        case decided(Lifecycle.Outcome)
    }

    // The lock of the operation guards it.
    private var phase = Phase.open
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
    /// - Parameters:
    ///   - queue: The queue, held by the caller.
    ///   - isolation: The actor of the caller.
    /// - Throws: `CancellationError` if the task is cancelled before the turn; if it is cancelled already, nothing is
    ///   put on the queue. If the operation is cancelled or finished before its turn, the reason or the error that it
    ///   was given, or else `CancellationError`.
    func waitForPlace(on queue: OperationQueue, isolation: isolated (any Actor)? = #isolation) async throws {
        queue.becomesKnown()
        try await withTaskCancellationHandler {
            // Keeps this on the actor, whose calls have an order.
            _ = isolation
            try await withCheckedThrowingContinuation { continuation in
                // A handler may have decided before.
                let decision = lock.withLock { () -> Lifecycle.Outcome? in
                    if case .decided(let decision) = phase { return decision }
                    phase = .awaited(continuation)
                    return nil
                }
                if let decision { continuation.resume(with: decision) } else { queue.addOperation(self) }
            }
        } onCancel: {
            // The operation ends at its turn, and is not cancelled: on Linux, Foundation crashes if one ends before a barrier that
            // it waits for, and is released.
            decide(.failure(CancellationError()))
        }
    }

    override func main() {}

    /// The turn has come.
    override func startWork() {
        if !decide(.success(())) { endDeferred(with: .failure(CancellationError())) }
    }

    override func cancellationTookEffect() {
        decide(.failure(cancellationReason ?? CancellationError()))
    }

    override func releaseWork() {
        decide(.failure(error ?? CancellationError()))
    }

    /// - Returns: Whether nothing had been decided before.
    @discardableResult
    private func decide(_ decision: Lifecycle.Outcome) -> Bool {
        let previous = lock.withLock {
            if case .decided = phase { return phase }
            return exchange(&phase, with: .decided(decision))
        }
        if case .decided = previous { return false }
        if case .awaited(let continuation) = previous { continuation.resume(with: decision) }
        return true
    }
}
