/// Why a waiter was woken.
enum Wakeup: Sendable { case finished, cancelled }

/// One wait of a task for an event. What guards the ``Waiters`` guards it, too.
final class Waiter<Continuation: Sendable>: @unchecked Sendable {
    fileprivate var continuation: Continuation?
    fileprivate var isCancelled = false
}

typealias TaskWaiter = Waiter<CheckedContinuation<Wakeup, Never>>

/// The tasks that wait for one event, such as the end of an operation, as a value: which of them has to be resumed, and
/// why.
///
/// Every continuation that is registered comes out exactly once. A wait can be cancelled before its continuation
/// arrives, because a task's cancellation handler may run first.
struct Waiters<Continuation: Sendable> {
    /// The one that came first, as long as it waits. Usually there is no other.
    private var first: Waiter<Continuation>?
    private var others: [ObjectIdentifier: Waiter<Continuation>] = [:]

    var isEmpty: Bool { first == nil && others.isEmpty }

    /// The continuation of a wait is there.
    ///
    /// - Returns: How to resume it immediately, or `nil` if it has to wait.
    mutating func registered(
        _ continuation: Continuation, as waiter: Waiter<Continuation>, isFinished: Bool
    ) -> Wakeup? {
        if waiter.isCancelled { return .cancelled }
        if isFinished { return .finished }
        waiter.continuation = continuation
        if first == nil { first = waiter } else { others[ObjectIdentifier(waiter)] = waiter }
        return nil
    }

    /// The waiting task was cancelled.
    ///
    /// - Returns: The continuation to resume, if it is there and has not been resumed.
    mutating func cancelled(_ waiter: Waiter<Continuation>, isFinished: Bool) -> Continuation? {
        if isFinished { return nil }
        waiter.isCancelled = true
        if first === waiter { first = nil } else { others[ObjectIdentifier(waiter)] = nil }
        return waiter.continuation.take()
    }

    /// The operation has finished.
    ///
    /// - Returns: The continuations to resume, in no particular order.
    mutating func finished() -> [Continuation] {
        var woken: [Continuation] = []
        if let continuation = first.take()?.continuation.take() { woken.append(continuation) }
        if others.isEmpty { return woken }
        woken += exchange(&others, with: [:]).values.compactMap { $0.continuation.take() }
        return woken
    }
}

/// The handlers that work has registered for its own cancellation, as a value: which are due, and by which event.
///
/// Every handler comes out exactly once: to be called, or, where the work ends without a cancellation, to be released.
enum CancellationHandlers: Sendable {
    typealias Handler = @Sendable () -> Void

    /// Nothing is registered, and nothing has happened: that of most work.
    case idle
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
        case .idle:
            self = .waiting([handler])
        case .waiting(var handlers):
            // So that the array has one owner.
            self = .idle
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
