/// The handlers that work has registered for its own cancellation, as a value: which are due, and by which event.
///
/// Every handler comes out exactly once: to be called, or, where the work ends without a cancellation, to be released.
enum CancellationHandlers: Sendable {
    typealias Handler = @Sendable () -> Void

    case waiting([Handler])
    /// The handlers are being called, or have been.
    case cancelled
    /// The work has ended.
    case ended

    /// A handler was registered.
    ///
    /// - Returns: Whether it has to be called immediately. Otherwise it waits, or is dropped if the work has ended.
    mutating func added(_ handler: @escaping Handler) -> Bool {
        switch self {
        case .waiting(var handlers):
            // So that the array has one owner.
            self = .waiting([])
            handlers.append(handler)
            self = .waiting(handlers)
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
        if case .ended = self { return [] }
        guard case .waiting(let handlers) = exchange(&self, with: .cancelled) else { return [] }
        return handlers
    }

    /// The work has ended.
    ///
    /// - Returns: The handlers to release after unlocking.
    mutating func ended() -> [Handler] {
        guard case .waiting(let handlers) = exchange(&self, with: .ended) else { return [] }
        return handlers
    }
}
