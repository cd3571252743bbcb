/// Whether the caller of a closure got its turn on a queue, as a value. The first decision stands: the turn has come, or
/// the closure is not to run, for the reason given.
///
/// The continuation of the caller comes out exactly once. A decision can be made before it arrives, because a task's
/// cancellation handler may run first.
struct QueueTurn<Continuation> {
    typealias Decision = Result<Void, any Error>

    private enum Stage {
        case open
        case awaited(Continuation)
        case decided(Decision)
    }

    private var stage = Stage.open

    /// The continuation of the caller is there. This happens once.
    ///
    /// - Returns: How to resume it immediately, or `nil` if it has to wait.
    mutating func awaited(by continuation: Continuation) -> Decision? {
        switch stage {
        case .open:
            stage = .awaited(continuation)
            return nil
        case .decided(let decision):
            return decision
        case .awaited:
            preconditionFailure("OperationKit: event awaited is impossible in stage awaited")
        }
    }

    /// The turn has come, or it was given up.
    ///
    /// - Returns: Whether this is the first decision, and the continuation to resume with it, if that is there.
    mutating func decided(_ decision: Decision) -> (isFirst: Bool, continuation: Continuation?) {
        switch stage {
        case .open:
            stage = .decided(decision)
            return (true, nil)
        case .awaited(let continuation):
            stage = .decided(decision)
            return (true, continuation)
        case .decided:
            return (false, nil)
        }
    }
}
