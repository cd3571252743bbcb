/// The life of one operation as a value: which state it is in, what an event does to it, and what has to be done next.
///
/// There is one `mutating` method per event, named as a fact (`started`, `finished`, `cancelled`). Each returns the
/// ``Action`` that its caller has to perform, or `nil` when there is nothing to do. The type holds no lock, calls
/// nothing and knows nothing of Foundation, so that every rule can be tested without a thread.
/// `AsyncOperation` guards it with its lock and performs the actions after unlocking.
///
/// ```
/// pending ──started──▶ starting ──becameExecuting──▶ executing ──finished──▶ finishing ──ended──▶ finished
///    │                                                  │                        ▲
///    └──started, when cancelled or already given an outcome (leaf)───────────────┤
///    └──the same, or finished (composite)───────────────▶ draining ──drained─────┘
/// ```
struct Lifecycle {
    typealias Outcome = Result<Void, any Error>

    /// What has to happen between knowing the outcome and announcing it.
    enum Ending: CaseIterable {
        /// A leaf: it is over as soon as its outcome is known.
        case immediately
        /// A leaf whose work has to return first, so `finish` is a request.
        case afterWork
        /// A composite: its children have to finish first, so `finish` is a request.
        case afterChildren
    }

    enum State {
        /// Not started. An outcome that was given already is remembered.
        case pending(Outcome?)
        /// Started, while `isExecuting` is being announced. An outcome given in between is remembered.
        case starting(Outcome?)
        case executing(MainCall)
        /// A composite that has been told to end and waits for its children. The outcome is the one it was given, if
        /// any.
        case draining(Outcome?, wasExecuting: Bool)
        /// The outcome stands and is being delivered.
        case finishing(Outcome, wasExecuting: Bool)
        case finished(Outcome)
    }

    enum MainCall {
        /// It is not due yet: a thread passes the gates.
        case passingGates
        /// It is not due yet, and no thread is busy with the operation: a gate takes time, or has opened, and a thread is about to
        /// go on.
        case waiting
        case onStack, returned
    }

    /// What the caller of an event has to do, in this order, after unlocking.
    enum Action {
        /// Announce `isExecuting`, with ``Lifecycle/becameExecuting()`` as the change.
        case announceExecution
        /// Pass the gates, then report ``Lifecycle/gatesPassed()``, or ``Lifecycle/gateClosed()``.
        case passGates
        /// Call `main()`, then report ``Lifecycle/mainReturned()``.
        case runMain
        /// Call `didCancel()`.
        case callDidCancel
        /// Mark Foundation's part as cancelled, then report ``Lifecycle/superclassCancelled()``.
        case cancelSuperclass
        /// Mark Foundation's part as cancelled, then take ``Lifecycle/cancelChildrenIfUnfinished``: another thread is
        /// about to do this, and this call of `cancel()` must not return before it is done.
        case repeatSuperclassCancel
        /// Cancel the children that are there (composites only).
        case cancelChildren
        /// Cancel the children, let them finish, then report ``Lifecycle/drained(with:)`` (composites only).
        case drain
        /// Deliver the outcome, then announce the end with ``Lifecycle/ended()`` as the change.
        case complete
    }

    private(set) var state = State.pending(nil)
    private(set) var cancellation = Cancellation.none
    /// Whether a cancellation that takes effect came after `main()` had returned: `didCancel()` is due then.
    private var wasCancelledAfterMain = false
    /// Whether the gates were passed, and `main()` was called.
    private(set) var reachedMain = false
    private let ending: Ending

    /// A cancellation takes effect in two steps, because Foundation has to be told without holding the lock. While the
    /// cancellation is `marking`, an end is held back, so that no thread sees an operation whose outcome says cancelled
    /// and whose `isCancelled` does not.
    enum Cancellation {
        case none
        case marking(reason: (any Error)?)
        case marked(reason: (any Error)?)
    }

    init(ending: Ending) {
        self.ending = ending
    }
}

/// What an operation ends with inside the library, in place of the error that users see.
protocol OutcomeError: Error {
    var error: any Error { get }
}

/// A mark of an error that says no more than that the work was cancelled. If the operation was cancelled with a reason, it ends with
/// that instead. `CancellationError` needs none.
struct MarkedError: OutcomeError {
    let error: any Error
}

extension Error {
    /// The error that users see.
    var shown: any Error { (self as? any OutcomeError)?.error ?? self }
    var isMarked: Bool { self is CancellationError || self is MarkedError }
    var unmarked: any Error { (self as? MarkedError)?.error ?? self }
}

// MARK: - Starting and working

extension Lifecycle {
    /// `start()` was called. Only the first start counts.
    mutating func started() -> Action? {
        switch state {
        case .pending(nil) where !isCancelled:
            state = .starting(nil)
            return .announceExecution
        case .pending(let outcome):
            return settle(outcome, wasExecuting: false)
        case .starting, .executing, .draining, .finishing, .finished:
            return nil
        }
    }

    /// `isExecuting` may become true now: the change between `willChangeValue` and `didChangeValue`.
    mutating func becameExecuting() -> Action? {
        switch state {
        case .starting(nil) where !isCancelled:
            state = .executing(.passingGates)
            return .passGates
        case .starting(let outcome):
            return settle(outcome, wasExecuting: true)
        default:
            impossible("becameExecuting")
        }
    }

    /// The gates have been passed, or the operation does not go on: it is decided whether `main()` is called.
    mutating func gatesPassed() -> Action? {
        let action = leftGates("gatesPassed", for: .onStack, then: .runMain)
        reachedMain = action == .runMain
        return action
    }

    /// A gate takes time, and the thread that has asked it does not wait.
    mutating func gateClosed() -> Action? {
        leftGates("gateClosed", for: .waiting, then: nil)
    }

    /// The gate that takes time has opened, and a thread has come that goes on.
    ///
    /// - Returns: Whether the caller goes on. If not, the operation has been given an outcome, or ends as cancelled.
    mutating func gateOpened() -> Bool {
        guard isWaiting else { return false }
        state = .executing(.passingGates)
        return true
    }

    /// The thread that passes the gates stops. If the operation was ended meanwhile, this thread completes the end.
    private mutating func leftGates(_ event: String, for next: MainCall, then action: Action?) -> Action? {
        switch state {
        case .executing(.passingGates):
            if isCancelled { return settle(nil, wasExecuting: true) }
            state = .executing(next)
            return action
        case .draining:
            return .drain
        case .finishing, .finished:
            return nil
        default:
            impossible(event)
        }
    }

    /// `main()` returned. If a cancellation arrived meanwhile, `didCancel()` is due now.
    mutating func mainReturned() -> Action? {
        switch state {
        case .executing(.onStack):
            state = .executing(.returned)
            if case .marked = cancellation { return .callDidCancel }
            return nil
        case .draining, .finishing, .finished:
            return nil
        default:
            impossible("mainReturned")
        }
    }

    /// An outcome was given. The first one is accepted, every later one is not.
    mutating func finished(with given: Outcome) -> (isAccepted: Bool, action: Action?) {
        let request = cancelChildrenIfUnfinished
        switch state {
        case .pending(nil):
            state = .pending(given)
            return (true, request)
        case .starting(nil):
            state = .starting(given)
            return (true, request)
        case .executing(.waiting):
            return (true, settle(given, wasExecuting: true))
        case .executing:
            // The thread that passes the gates, or starts the children, has them finish.
            let action = settle(given, wasExecuting: true)
            return (true, action == .drain ? request : action)
        case .draining(nil, let wasExecuting):
            state = .draining(given, wasExecuting: wasExecuting)
            return (true, nil)
        case .pending, .starting, .draining, .finishing, .finished:
            return (false, nil)
        }
    }

    /// The last child of a composite has finished, with this as the composite's own result. An outcome that a call of
    /// `finish` has given wins over it.
    mutating func drained(with own: Outcome) -> Action? {
        switch state {
        case .executing(.onStack), .executing(.returned):
            return finish(with: own, wasExecuting: true)
        case .draining(let given, let wasExecuting):
            return finish(with: given ?? own, wasExecuting: wasExecuting)
        default:
            impossible("drained")
        }
    }

    /// The outcome has been delivered: the change that makes `isFinished` true.
    mutating func ended() {
        guard case .finishing(let outcome, _) = state else { impossible("ended") }
        state = .finished(outcome)
    }
}

// MARK: - Cancelling

extension Lifecycle {
    /// `cancel()` was called. It takes effect once, and not after the end, which an outcome that is only remembered is not.
    mutating func cancelled(reason: (any Error)?) -> Action? {
        switch cancellation {
        case .none: break
        case .marking: return .repeatSuperclassCancel
        case .marked: return cancelChildrenIfUnfinished
        }
        switch state {
        case .executing(.returned): wasCancelledAfterMain = true
        // Not while work goes on, which may look whether it is cancelled.
        case .draining where ending != .afterWork, .finishing, .finished: return cancelChildrenIfUnfinished
        case .pending, .starting, .executing, .draining: break
        }
        cancellation = .marking(reason: reason)
        return .cancelSuperclass
    }

    /// Cancels the children of a composite, as long as it waits for them. A repeated cancellation does so, too: the
    /// thread of the first one may not be done, and no call of `cancel()` returns before all children are cancelled.
    var cancelChildrenIfUnfinished: Action? {
        switch state {
        case .pending, .starting, .executing, .draining: ending == .afterChildren ? .cancelChildren : nil
        case .finishing, .finished: nil
        }
    }

    /// Foundation's `isCancelled` is true from here on. What was held back meanwhile is due now, in this order.
    mutating func superclassCancelled() -> [Action] {
        guard case .marking(let reason) = cancellation else { impossible("superclassCancelled") }
        cancellation = .marked(reason: reason)
        var actions: [Action] = []
        switch state {
        case .executing(.waiting):
            if let end = settle(nil, wasExecuting: true) { return [end] }
        case .executing(.returned):
            actions.append(.callDidCancel)
        case .pending, .starting, .executing:
            break
        case .draining, .finishing:
            if wasCancelledAfterMain { actions.append(.callDidCancel) }
        case .finished:
            impossible("superclassCancelled")
        }
        if case .finishing = state {
            actions.append(.complete)
        } else if ending == .afterChildren {
            actions.append(.cancelChildren)
        }
        return actions
    }
}

extension Lifecycle {
    /// The outcome is known, or the operation is cancelled: a leaf finishes, a composite waits for its children.
    private mutating func settle(_ outcome: Outcome?, wasExecuting: Bool) -> Action? {
        switch ending {
        case .immediately:
            return finish(with: outcome ?? .failure(CancellationError()), wasExecuting: wasExecuting)
        case .afterWork, .afterChildren:
            state = .draining(outcome, wasExecuting: wasExecuting)
            return .drain
        }
    }

    private mutating func finish(with outcome: Outcome, wasExecuting: Bool) -> Action? {
        let outcome = outcome.mapError(explained)
        state = .finishing(outcome, wasExecuting: wasExecuting)
        if case .marking = cancellation { return nil }
        return .complete
    }

    private func impossible(_ event: String) -> Never {
        preconditionFailure("OperationKit: event \(event) is impossible in state \(state)")
    }
}
