import Dispatch
import Foundation

// What is done between `start()` and `main()`.
extension AsyncOperation {
    /// Adds a preparation. Does nothing once the operation has started.
    ///
    /// - Returns: Whether the operation has not started, so that the preparation will be made.
    @discardableResult
    final func addPreparation(_ preparation: some Preparation) -> Bool {
        withState { state in
            guard state.lifecycle.isPending else { return false }
            state.requiredPreparations().add(preparation)
            return true
        }
    }

    /// Adds a closure that is called with the operation right before its `main()`. Does nothing once the operation has
    /// started.
    ///
    /// - Parameters:
    ///   - stage: When it is called.
    ///   - body: What is called. It must not hold the operation's dependencies: a chain of such closures would be freed by
    ///     nested calls. If it throws, the operation ends with the error, and `main()` is not called.
    /// - Returns: Whether the operation has not started, so that the closure will be called.
    @discardableResult
    final func addStartHandler(
        _ stage: PreparationStage = .binding, _ body: @escaping @Sendable (AsyncOperation) throws -> Void
    ) -> Bool {
        addPreparation(StartHandler(stage: stage, body: body))
    }

    /// Adds a closure from inside another one that was added as a binding. It is called after all bindings that were added before
    /// the start.
    final func addFinalStartHandler(_ body: @escaping @Sendable (AsyncOperation) throws -> Void) {
        withState { $0.preparations?.add(StartHandler(stage: .binding, body: body)) }
    }

    /// Makes the preparations from the current one on, until one of them takes time, or the operation ends.
    ///
    /// - Returns: What to do next, if anything.
    final func makePreparations() -> Lifecycle.Action? {
        while true {
            var running: EventQueue?
            let observers = outerObservers
            let (current, action) = withState { state -> ((any Preparation)?, Lifecycle.Action?) in
                if state.lifecycle.isPreparing, let current = state.preparations?.current { return (current, nil) }
                let (action, noted) = state.prepared(observers)
                running = noted
                return (nil, action)
            }
            guard let current else {
                deliver(running)
                return action
            }
            do {
                if try !current.prepare(self) {
                    let reason = ObserverList.isObserving ? current.waitReason : nil
                    let (isSuspended, action, waiting) = suspendPreparations(waitingFor: reason)
                    if isSuspended {
                        deliver(waiting)
                        return action
                    }
                }
                // Released after unlocking; its deinitializer may run arbitrary code.
                _ = withState { $0.preparations?.currentEnded() }
            } catch {
                finish(withError: error)
            }
        }
    }

    /// Leaves the operation to the current preparation, which takes time.
    ///
    /// - Parameter reason: What the operation waits for, if observers are to be told.
    /// - Returns: Whether that has not ended meanwhile, and then what to do next, if anything, and the record, if the caller has to
    ///   deliver before that that the operation waits.
    private final func suspendPreparations(
        waitingFor reason: String?
    ) -> (isSuspended: Bool, action: Lifecycle.Action?, waiting: EventQueue?) {
        findQueueAfterPreparations()
        let observers = outerObservers
        return withState { state in
            if state.preparations?.currentSuspended() == false { return (false, nil, nil) }
            let action = state.lifecycle.preparationSuspended()
            // Before another thread goes on.
            let waiting = state.lifecycle.isWaiting ? reason.flatMap { state.note(.waiting(for: $0), observers) } : nil
            return (true, action, waiting)
        }
    }

    /// Finds the dispatch queue on which the operation goes on, when a preparation takes time for the first time: that of the
    /// operation queue that has started it, if this has one. Otherwise it goes on on a global one.
    ///
    /// An operation that code on the queue has started by hand does not belong there: that code may wait for it. Nor do
    /// the children of a composite belong where what they add to its queue runs. Only the queue says which operations are on it,
    /// so all of them that have preparations are told that they are. What is on a queue stays there until its end.
    ///
    /// Complexity: linear in the operations on a queue that has a dispatch queue, unless the operation has been told already.
    private final func findQueueAfterPreparations() {
        guard withState({ $0.preparations?.isQueueKnown == false }) else { return }
        let current = OperationQueue.current
        let queue = unsafe current is CompositeQueue ? nil : current?.underlyingQueue
        if let current, let queue, !withState({ $0.preparations?.queue === queue }) {
            for case let operation as AsyncOperation in current.operations {
                operation.withState { $0.preparations?.found(on: queue) }
            }
        }
        withState { $0.preparations?.started(on: queue) }
    }

    /// Goes on after the current preparation, which took time. Called once, on any thread, with nothing locked. Does nothing
    /// if the operation has its outcome already.
    ///
    /// The next preparations are made, and `main()` is called, on another thread, because the one that calls this may belong
    /// to another operation, or to a task that must not be blocked. Until that thread has come, the operation waits on.
    ///
    /// - Parameter error: What the operation ends with instead.
    final func preparationEnded(withError error: (any Error)? = nil) {
        if let error {
            finish(withError: error)
            return
        }
        let (goesOn, ended, queue) = withState { state -> (Bool, (any Preparation)?, DispatchQueue?) in
            guard state.lifecycle.isWaiting else {
                if state.lifecycle.isPreparing { state.preparations?.currentEndedEarly() }
                return (false, nil, nil)
            }
            return (true, state.preparations?.currentEnded(), state.preparations?.queue)
        }
        // Released after unlocking; its deinitializer may run arbitrary code.
        withExtendedLifetime(ended) {}
        guard goesOn else { return }
        (queue ?? .global()).performAsync(qos: DispatchQoS(qualityOfService)) {
            // Not if the operation has been cancelled or given an outcome meanwhile.
            if self.withState({ $0.lifecycle.preparationResumed() }) { self.perform(self.makePreparations()) }
        }
    }

    /// Gives up the preparations that have not been made. The operation ends.
    final func withdrawPreparations() {
        // Released after unlocking; their deinitializers may run arbitrary code.
        let remaining = withState { $0.preparations?.removeAll() }
        remaining?.last?.withdraw()
    }

    /// Takes what the operation holds of what it requires, once nothing of its work is left.
    final func takeHeldResources(error: (any Error)?) -> (any HeldResources)? {
        let held = withState { $0.preparations?.held.take() }
        held?.workEnded(of: self, error: error)
        return held
    }

    /// Ends an operation that cannot start its work, from inside its `main()`. A composite's children finish first.
    final func fail(beforeRunning error: any Error) {
        finish(withError: error)
        perform(withState { $0.lifecycle.mainSkipped() })
    }
}

extension [AsyncOperation] {
    /// Goes on with each of them after its current preparation, which took time. Called with nothing locked.
    func preparationEnded() {
        for operation in self { operation.preparationEnded() }
    }
}
