/// Why a waiter was woken.
enum Wakeup: Sendable { case finished, cancelled }

/// Identifies one wait.
final class WaiterID: Sendable {}

/// The tasks that wait for one event, such as the end of an operation, as a value: which of them has to be resumed, and
/// why.
///
/// Every continuation that is registered comes out exactly once. A wait can be cancelled before its continuation
/// arrives, because a task's cancellation handler may run first.
struct Waiters<Continuation: Sendable> {
    /// The identities are held here, so that none is used again while it is in use.
    private enum Waiter {
        case waiting(WaiterID, Continuation)
        case cancelledBeforehand(WaiterID)
    }

    /// The one that came first, as long as it waits. Usually there is no other.
    private var first: (id: WaiterID, continuation: Continuation)?
    private var others: [ObjectIdentifier: Waiter] = [:]

    var isEmpty: Bool { first == nil && others.isEmpty }

    /// The continuation of a wait is there.
    ///
    /// - Returns: How to resume it immediately, or `nil` if it has to wait.
    mutating func registered(_ continuation: Continuation, as id: WaiterID, isFinished: Bool) -> Wakeup? {
        if !others.isEmpty, case .cancelledBeforehand = others.removeValue(forKey: ObjectIdentifier(id)) {
            return .cancelled
        }
        if isFinished { return .finished }
        if first == nil {
            first = (id, continuation)
        } else {
            others[ObjectIdentifier(id)] = .waiting(id, continuation)
        }
        return nil
    }

    /// The waiting task was cancelled. This happens at most once in a wait.
    ///
    /// - Returns: The continuation to resume, if it is there and has not been resumed.
    mutating func cancelled(_ id: WaiterID, isFinished: Bool) -> Continuation? {
        if isFinished { return nil }
        if let (firstID, continuation) = first, firstID === id {
            first = nil
            return continuation
        }
        if case .waiting(_, let continuation) = others.removeValue(forKey: ObjectIdentifier(id)) { return continuation }
        others[ObjectIdentifier(id)] = .cancelledBeforehand(id)
        return nil
    }

    /// The operation has finished.
    ///
    /// - Returns: The continuations to resume, in no particular order.
    mutating func finished() -> [Continuation] {
        var woken = first.map { [$0.continuation] } ?? []
        first = nil
        if others.isEmpty { return woken }
        woken += others.values.compactMap { if case .waiting(_, let continuation) = $0 { continuation } else { nil } }
        others = others.filter { if case .cancelledBeforehand = $0.value { true } else { false } }
        return woken
    }
}

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
