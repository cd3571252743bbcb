/// The handlers that work has registered for its own cancellation, as a value: which are due, and by which event.
///
/// Every handler comes out exactly once: to be called, or, where the work ends without a cancellation, to be released.
struct CancellationHandlers: Sendable {
    typealias Handler = @Sendable () -> Void

    private enum Stage {
        /// Nothing is registered, and nothing has happened: that of most work.
        case idle
        case waiting([Handler])
        /// The handlers are being called, or have been.
        case cancelled
        /// The work has ended.
        case ended
    }

    private var stage = Stage.idle

    /// A handler was registered.
    ///
    /// - Returns: Whether it has to be called immediately. Otherwise it waits, or is dropped if the work has ended.
    mutating func added(_ handler: @escaping Handler) -> Bool {
        switch stage {
        case .idle:
            stage = .waiting([handler])
        case .waiting(var handlers):
            // So that the array has one owner.
            stage = .idle
            handlers.append(handler)
            stage = .waiting(handlers)
        case .cancelled:
            return true
        case .ended:
            break
        }
        return false
    }

    /// The work was cancelled. Only the first time counts, and only before ``ended()``.
    ///
    /// - Returns: The handlers to call, in the order of their registration.
    mutating func cancelled() -> [Handler] {
        leave(for: .cancelled)
    }

    /// The work has ended.
    ///
    /// - Returns: The handlers to release after unlocking.
    mutating func ended() -> [Handler] {
        leave(for: .ended)
    }

    private mutating func leave(for next: Stage) -> [Handler] {
        switch stage {
        case .idle:
            stage = next
            return []
        case .waiting(let handlers):
            stage = next
            return handlers
        case .cancelled:
            // What is registered after the end is dropped.
            if case .ended = next { stage = next }
            return []
        case .ended:
            return []
        }
    }
}
