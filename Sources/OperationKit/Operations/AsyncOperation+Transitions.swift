import Foundation

// How an operation moves from state to state: ``Lifecycle`` decides, and what it decides is done here, without the lock. What an
// operation holds of what it requires is released with the lock held: nothing is called there.
extension AsyncOperation {
    /// Performs an action of the life cycle, and all that follows from it. Callers hold no lock.
    final func perform(_ action: Lifecycle.Action?) {
        if action != nil { Trampoline.run { perform(action, &$0) } }
    }

    /// Performs an action of the life cycle. What follows for other operations is left in the list.
    final func perform(_ action: Lifecycle.Action?, _ list: inout Trampoline) {
        var next = action
        while let action = next {
            next = nil
            switch action {
            case .announceExecution:
                let execution = ExecutionRecording.current.record(of: self)
                willChange("isExecuting")
                let observers = outerObservers
                let (action, started) = withState { state in
                    state.execution = execution
                    let action = state.lifecycle.becameExecuting()
                    return (action, action == .passGates ? state.note(.started, observers) : nil)
                }
                next = action
                didChange("isExecuting")
                deliver(started)
            case .passGates:
                // The usual case is decided here.
                let isObserved = ObserverList.isObserving
                let decision = withState { state -> Lifecycle.Action?? in
                    isObserved || state.gates != nil ? nil : .some(state.lifecycle.gatesPassed())
                }
                next = if let decision { decision } else { passGates() }
            case .runMain:
                startChildrenOrWork()
                next = withState { $0.lifecycle.mainReturned() }
            case .callDidCancel:
                didCancel()
            case .cancelSuperclass:
                super.cancel()
                // An end is held back until then, so that it cannot come before what the work is told.
                cancellationTookEffect()
                let observers = outerObservers
                let (actions, cancelled) = withState { state -> ([Lifecycle.Action], EventQueue?) in
                    let actions = state.lifecycle.superclassCancelled()
                    let reason = state.lifecycle.cancellationReason
                    return (actions, state.note(.cancelled(reason: reason), observers))
                }
                deliver(cancelled)
                for action in actions { perform(action, &list) }
                withState { $0.membership.parent }?.childWasCancelled(self)
            case .repeatSuperclassCancel:
                super.cancel()
                next = withState { $0.lifecycle.cancelChildrenIfUnfinished }
            case .cancelChildren:
                // Another child that is cancelled first may end this operation, and its children refer to it unowned.
                list.add { self.ownChildren?.cancelAll(&$0) }
            case .drain:
                withdrawGates()
                drainChildren(&list)
            case .deliver:
                deliver(&list)
            }
        }
    }

    /// Delivers the outcome, then announces the end. Happens once, on the thread that ended the operation.
    private final func deliver(_ list: inout Trampoline) {
        var hasGates = false
        var execution: ExecutionRecord?
        var (block, progress, error, wasExecuting) = withState { state in
            defer { state.completion = nil }
            hasGates = state.gates != nil
            swap(&execution, &state.execution)
            return (state.completion, state.progress, state.lifecycle.outcome?.error, state.lifecycle.isExecuting)
        }
        execution?.ended()
        progress?.complete(unitCount: children?.unitCount)
        block?(error)
        block = nil
        if hasGates { withdrawGates() }
        releaseWork()
        children?.outcomeWasDelivered()
        let lease = hasGates ? takeLease(error: error) : nil

        // On Linux, Foundation listens only to `isExecuting` becoming true.
        #if canImport(ObjectiveC)
        if wasExecuting { willChange("isExecuting") }
        #endif
        willChange("isFinished")
        let seen = outerObservers
        let (ended, others) = withState { state in
            state.lifecycle.ended()
            let ended = state.note(.finished(error: error), seen)
            // In one step with the end, and after it for those who observe both.
            return (ended, lease?.release())
        }
        others?.forEach { $0.granted() }
        #if canImport(ObjectiveC)
        if wasExecuting { didChange("isExecuting") }
        #endif
        didChange("isFinished")
        deliver(ended)
        if !wasExecuting { detachFromDependencies() }

        let (waiting, observers) = withState { $0.announced() }
        for observer in observers { observer.operationFinished(self, error: error, &list) }
        for continuation in waiting { continuation.resume(returning: .finished) }
    }
}
