import Dispatch
import Foundation

// What is done between `start()` and `main()`.
extension AsyncOperation {
    /// Adds a gate. Does nothing once the operation has started.
    ///
    /// - Returns: Whether the operation has not started, so that it passes the gate.
    @discardableResult
    final func addGate(_ gate: some StartGate) -> Bool {
        withState { state in
            guard state.lifecycle.isPending else { return false }
            state.requiredGates().add(gate)
            return true
        }
    }

    /// Adds a closure that is called with the operation right before its `main()`. Does nothing once the operation has
    /// started.
    ///
    /// - Parameters:
    ///   - order: When it is called.
    ///   - body: What is called. It must not hold the operation's dependencies: a chain of such closures would be freed by
    ///     nested calls. If it throws, the operation ends with the error, and `main()` is not called.
    /// - Returns: Whether the operation has not started, so that the closure will be called.
    @discardableResult
    final func addStartHandler(
        _ order: GateOrder = .first, _ body: @escaping @Sendable (AsyncOperation) throws -> Void
    ) -> Bool {
        addGate(StartHandler(order: order, body: body))
    }

    /// Passes the gates from the current one on, until one of them takes time, or the operation ends. After the last one, it is
    /// decided whether `main()` is called.
    ///
    /// - Returns: What to do next, if anything.
    final func passGates() -> Lifecycle.Action? {
        while let gate = withState({ $0.lifecycle.isPassingGates ? $0.gates?.current : nil }) {
            do {
                if try !gate.enter(self) { return wait(for: gate) }
                // Released after unlocking; its deinitializer may run arbitrary code.
                _ = withState { $0.gates?.passed() }
            } catch {
                finish(withError: error)
            }
        }
        let deadline = beginTimeout()
        if let observers = outerObservers {
            deliver(withState { $0.lifecycle.isPassingGates ? $0.note(.running, observers) : nil })
        }
        // Observers may have ended the operation. From here to `main()`, no code of users is called.
        let (action, lease) = withState { state in
            let action = state.lifecycle.gatesPassed()
            let gates = action == .runMain ? state.gates : nil
            gates?.deadline = deadline
            return (action, gates?.lease)
        }
        lease?.workBegins()
        return action
    }

    /// Leaves the operation to a gate that takes time.
    ///
    /// - Returns: What to do next, if the operation ends instead.
    private final func wait(for gate: any StartGate) -> Lifecycle.Action? {
        let observers = outerObservers
        let reason = observers == nil ? nil : gate.waitDescription
        let (isWaiting, action, event) = withState { state -> (Bool, Lifecycle.Action?, EventQueue?) in
            let action = state.lifecycle.gateClosed()
            guard state.lifecycle.isWaiting else { return (false, action, nil) }
            return (true, action, reason.flatMap { state.note(.waiting(for: $0), observers) })
        }
        deliver(event)
        if isWaiting { gate.wait(self) }
        return action
    }

    /// Asks the gate again for which the operation waits. Called on any thread, with nothing locked. Does nothing if the operation
    /// has its outcome already.
    ///
    /// That, and all that follows, is done on a thread of a dispatch queue: the one that calls this may belong to another operation,
    /// or be one that code of users must not block.
    final func gateOpened() {
        DispatchQueue.global().performAsync(qos: qualityOfService.equivalents.dispatch) {
            // Not if the operation has been cancelled or given an outcome meanwhile.
            if self.withState({ $0.lifecycle.gateOpened() }) { self.perform(self.passGates()) }
        }
    }

    /// Gives up the gates that have not been passed. The operation ends.
    final func withdrawGates() {
        // Released after unlocking; their deinitializers may run arbitrary code.
        let remaining = withState { $0.gates?.removeAll() }
        remaining?.last?.withdraw()
    }

    /// Takes what the operation got from a gate, once nothing of its work is left. Its time ends.
    final func takeLease(error: (any Error)?) -> (any StartLease)? {
        // The deadline is released after unlocking.
        let (lease, _) = withState { ($0.gates?.lease.take(), $0.gates?.deadline.take()) }
        lease?.workEnded(of: self, error: error)
        return lease
    }
}

// MARK: - Surroundings

extension AsyncOperation {
    /// The operations that end only after this one, the nearest first: the composites around it, and the operation that it helps, with
    /// what is around that.
    final var surroundingOperations: some Sequence<AsyncOperation> {
        sequence(state: self) { operation in
            let (parent, waiter) = operation.withState { ($0.parent, $0.gates?.waiter) }
            guard let next = parent?.operation ?? waiter else { return nil }
            operation = next
            return next
        }
    }

    /// Makes another operation a helper: only this one waits for it. Pass `nil` when it has ended.
    ///
    /// - Returns: Whether it has not started, and helps no other operation. If not, nothing changes.
    @discardableResult
    final func setHelper(_ helper: AsyncOperation?) -> Bool {
        let isUnused = helper?.withState { state in
            guard state.lifecycle.isPending, state.gates?.waiter == nil else { return false }
            state.requiredGates().waiter = self
            return true
        }
        if isUnused == false { return false }
        let previous = withState { state in
            state.gates == nil && helper == nil ? nil : exchange(&state.requiredGates().helper, with: helper)
        }
        withExtendedLifetime(previous) {}
        return true
    }

    /// The operation was put inside others after it, or something inside it, has started: what it waits for may depend on
    /// these now.
    ///
    /// Complexity: linear in what is inside the operation.
    final func cameInsideLate() {
        for composite in surroundingOperations {
            let wasKnown = composite.withState { exchange(&$0.requiredGates().hasStartedParts, with: true) }
            if wasKnown { break }
        }
        surroundingsChanged()
    }

    /// Tells the operation, and all that is inside it, that the operations around them have changed.
    final func surroundingsChanged(includingSelf: Bool = true) {
        var open: [AsyncOperation] = [self]
        while let operation = open.popLast() {
            let (lease, helper) = operation.withState { ($0.gates?.lease, $0.gates?.helper) }
            if includingSelf || operation !== self { lease?.surroundingsChanged(of: operation) }
            if let helper { open.append(helper) }
            open += operation.ownChildren?.operations(atMost: .max)?.compactMap { $0 as? AsyncOperation } ?? []
        }
    }
}
