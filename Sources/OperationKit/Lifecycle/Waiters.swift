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
