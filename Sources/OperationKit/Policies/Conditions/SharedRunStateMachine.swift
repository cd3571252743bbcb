/// A state machine that decides which of the operations that share a prerequisite is asked for it, when it runs, and when it is
/// stopped. There is never more than one run.
///
/// ```
/// idle ──arrived──▶ asking ──answered──▶ running ──ended──▶ idle
///                     ▲                     │
///                     │            the last waiter left
///                     │                     ▼
///                     └──ended, others ── stopping ──ended──▶ idle
///                        have arrived
/// ```
struct SharedRunStateMachine<Waiter: Hashable & Sendable>: Sendable {
    enum State: Sendable {
        case idle
        /// One of the waiters asks for the prerequisite, even if it has left meanwhile. The others wait for the answer.
        case asking
        case running
        /// The last waiter has left, so the run was cancelled, and has not ended. Those that have arrived since wait for that.
        case stopping
    }

    enum Action: Hashable, Sendable {
        /// The waiter asks for the prerequisite, and then reports ``SharedRunStateMachine/answered(hasPrerequisite:)`` or
        /// ``SharedRunStateMachine/declined(by:)``.
        case ask(Waiter)
        /// The prerequisite is run.
        case run
        /// The run is cancelled.
        case stop
        /// The waiters go on: with the outcome of the run, or because nothing has to run.
        case resume(Set<Waiter>)
    }

    private(set) var state = State.idle
    /// Those that have arrived and have not left, the one that asks included.
    private(set) var waiters: Set<Waiter> = []

    /// A waiter has come.
    mutating func arrived(_ waiter: Waiter) -> Action? {
        waiters.insert(waiter)
        return state == .idle ? ask() : nil
    }

    /// A waiter was cancelled. Nothing happens if it is not there.
    mutating func left(_ waiter: Waiter) -> Action? {
        waiters.remove(waiter)
        guard state == .running, waiters.isEmpty else { return nil }
        state = .stopping
        return .stop
    }

    /// The waiter that was to ask has got an answer, even if it has left meanwhile.
    ///
    /// - Parameter hasPrerequisite: Whether there is something to run.
    /// - Returns: What has to be done, if anything.
    mutating func answered(hasPrerequisite: Bool) -> Action? {
        guard state == .asking else { impossible("answered") }
        if hasPrerequisite, !waiters.isEmpty {
            state = .running
            return .run
        }
        return resumeAll()
    }

    /// The waiter that was to ask has been cancelled, and has not asked.
    mutating func declined(by waiter: Waiter) -> Action? {
        guard state == .asking else { impossible("declined") }
        waiters.remove(waiter)
        return ask()
    }

    /// The run has ended.
    mutating func ended() -> Action? {
        switch state {
        case .running: return resumeAll()
        case .stopping: return ask()
        case .idle, .asking: impossible("ended")
        }
    }

    /// One of the waiters asks, if there is one.
    private mutating func ask() -> Action? {
        state = waiters.isEmpty ? .idle : .asking
        return waiters.first.map { .ask($0) }
    }

    private mutating func resumeAll() -> Action? {
        state = .idle
        return waiters.isEmpty ? nil : .resume(exchange(&waiters, with: []))
    }

    private func impossible(_ event: String) -> Never {
        preconditionFailure("OperationKit: event \(event) is impossible in state \(state)")
    }
}
