/// The `async` body of a composite, as its scheduler knows it: the task, and the children that the body waits for.
///
/// The body counts as an unfinished child of the scheduler, see ``ChildScheduler/bodyStarted()``. A failure of a child that
/// the body waits for is the body's to handle.
final class CompositeBody: Sendable {
    typealias Continuation = CheckedContinuation<Void, Never>

    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
        var hasEnded = false
        /// The outcome of the last child that did not run because of another operation.
        var skippedError: SkippedError?
        var waits: [ObjectIdentifier: Continuation] = [:]
    }

    private let state = Locked(State())

    /// Whether the body has been cancelled, with the composite or because that was given an outcome.
    var isCancelled: Bool { state.withLock(\.isCancelled) }

    /// Whether the body has returned, so that nothing can wait in it any more.
    var hasEnded: Bool { state.withLock(\.hasEnded) }

    // MARK: - The task

    /// The task was created. It may have begun: it asks ``isCancelled`` itself at its beginning.
    func started(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            if !state.hasEnded { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// The children are cancelled, and the body with them.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    func ended() {
        let task = state.withLock { state in
            state.hasEnded = true
            return state.task.take()
        }
        withExtendedLifetime(task) {}
    }

    /// The outcome of the last child that did not run because of another operation. The composite may pass it on.
    var skippedError: SkippedError? {
        get { state.withLock { $0.skippedError } }
        set {
            // Released after unlocking; it may hold arbitrary operations.
            var previous = newValue
            state.withLock { swap(&previous, &$0.skippedError) }
        }
    }

    // MARK: - Waiting for children

    /// Begins a wait for an operation that is about to become a child.
    ///
    /// - Returns: Whether nothing waits for it yet.
    func beganWait(for child: ObjectIdentifier, _ continuation: Continuation) -> Bool {
        state.withLock { state in
            if state.waits[child] != nil { return false }
            state.waits[child] = continuation
            return true
        }
    }

    /// Whether the body waits for a child.
    func awaits(_ child: ObjectIdentifier) -> Bool {
        state.withLock { $0.waits[child] != nil }
    }

    /// A child has ended and given its place back, or could not be added.
    func childEnded(_ child: ObjectIdentifier) {
        let continuation = state.withLock { $0.waits.removeValue(forKey: child) }
        continuation?.resume()
    }
}
