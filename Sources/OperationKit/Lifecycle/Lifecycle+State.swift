// What can be read of a life.
extension Lifecycle {
    var isExecuting: Bool {
        switch state {
        case .pending, .starting, .finished: false
        case .executing: true
        case .draining(_, let wasExecuting), .finishing(_, let wasExecuting): wasExecuting
        }
    }

    var isFinished: Bool {
        if case .finished = state { true } else { false }
    }

    /// Whether it executes and has no outcome yet: its work may start, and decides how it ends.
    var isWorking: Bool {
        if case .executing = state { true } else { false }
    }

    /// Whether a thread passes the gates, and nothing has ended or cancelled the operation.
    var isPassingGates: Bool {
        guard case .executing(.passingGates) = state else { return false }
        return !isCancelled
    }

    /// Whether `main()` is yet to be called, because of the gates.
    var isBeforeMain: Bool { isWorking && !reachedMain }

    /// Whether `main()` is yet to be called, and nothing has ended or cancelled the operation.
    var awaitsMain: Bool { isBeforeMain && !isCancelled }

    /// Whether a gate takes time.
    var isWaiting: Bool {
        if case .executing(.waiting) = state { true } else { false }
    }

    /// Whether it has not started.
    var isPending: Bool {
        if case .pending = state { true } else { false }
    }

    /// The error that it was given before its start, as it will end with it, until then.
    var earlyError: (any Error)? {
        guard case .pending(.failure(let error)) = state else { return nil }
        return explained(error)
    }

    /// What it ends with that was given an error: the reason of its cancellation says more than a marked one, and is added to one that
    /// has a place for it. Where it is more than a cancellation, the operation that kept others from running is not all that went wrong.
    func explained(_ error: any Error) -> any Error {
        guard let markedReason else { return error.unmarked }
        let reason = markedReason.unmarked
        let inner = markedReason.isMarked ? error : error.shown
        return (inner as? any NestingError)?.adding(reason: reason) ?? (error.isMarked ? reason : error)
    }

    /// The outcome, from its delivery on. It is `nil` while a cancellation holds the end back.
    var outcome: Outcome? {
        if case .marking = cancellation { return nil }
        return switch state {
        case .pending, .starting, .executing, .draining: nil
        case .finishing(let outcome, _), .finished(let outcome): outcome
        }
    }

    /// Whether an outcome that is given now would be the first one.
    var acceptsOutcome: Bool {
        switch state {
        case .pending(let outcome), .starting(let outcome), .draining(let outcome, _): outcome == nil
        case .executing: true
        case .finishing, .finished: false
        }
    }

    /// Whether a cancellation has taken effect.
    var isCancelled: Bool {
        if case .none = cancellation { false } else { true }
    }

    /// The error that was given as the reason of the cancellation that took effect.
    var cancellationReason: (any Error)? { markedReason?.unmarked }

    /// The same, marked if it says no more than that the operation was cancelled.
    var markedReason: (any Error)? {
        switch cancellation {
        case .none: nil
        case .marking(let reason), .marked(let reason): reason
        }
    }
}
