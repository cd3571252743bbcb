import Foundation

// What a composite asks its group of children. A leaf has no group.
extension AsyncOperation {
    /// The group, unless it has moved to another composite, as the steps of a macro do with `then`: this one is
    /// consumed then.
    final var ownChildren: (any ChildGroup)? {
        guard let children, children.operation === self else { return nil }
        return children
    }

    /// Whether the children have become those of a longer chain.
    final var isConsumed: Bool { children != nil && ownChildren == nil }

    /// Starts the children, or the work of a leaf.
    final func startChildrenOrWork() {
        if let children { children.start() } else { startWork() }
    }

    /// Cancels the children of a composite that must not run, and waits for them.
    final func drainChildren(_ list: inout Trampoline) {
        if let children = ownChildren { return children.drain() }
        childrenFinished(&list) { _, _ in .failure(CancellationError()) }
    }

    /// Reports the result of a composite, once all children have finished.
    ///
    /// - Parameters:
    ///   - list: What follows for other operations.
    ///   - own: The result of the composite itself, which depends on whether it was cancelled, and why. An outcome that
    ///     a call of `finish` has given wins over it.
    final func childrenFinished(
        _ list: inout Trampoline, own: (_ isCancelled: Bool, _ reason: (any Error)?) -> Lifecycle.Outcome
    ) {
        perform(
            withState { state in
                let lifecycle = state.lifecycle
                var outcome = own(lifecycle.isCancelled, lifecycle.cancellationReason)
                if !lifecycle.maySucceed, case .success = outcome { outcome = .failure(CancellationError()) }
                return state.lifecycle.drained(with: outcome)
            }, &list)
    }

    /// Ends a leaf whose end is deferred, with an outcome that stands unless a call of `finish` has given another one.
    final func endDeferred(with outcome: Lifecycle.Outcome) {
        Trampoline.run { childrenFinished(&$0) { _, _ in outcome } }
    }

    /// Takes the children away from a composite that has not started, for another one to take over as they are. This
    /// one ends with an error when it is started.
    ///
    /// - Parameters:
    ///   - error: What the composite ends with.
    ///   - refusal: Called with the lock held. Returns what keeps the composite from giving its children away, if
    ///     anything does.
    /// - Returns: What `refusal` returned.
    final func giveChildrenAway<Failure: Error>(
        finishingWith error: Failure, unless refusal: (_ isPending: Bool, _ isPart: Bool) -> Failure?
    ) -> Failure? {
        // Released after unlocking, as these may be the last references.
        var parent: (any ChildGroup)?
        let failure = withState { state -> Failure? in
            parent = state.membership.parent
            if let failure = refusal(state.lifecycle.isPending, parent != nil) { return failure }
            children?.detach()
            _ = state.lifecycle.finished(with: .failure(error))
            return nil
        }
        withExtendedLifetime(parent) {}
        return failure
    }
}
