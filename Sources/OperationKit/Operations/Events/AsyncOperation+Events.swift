import Foundation

extension AsyncOperation.State {
    /// Notes an event in the state in which it happens, so that events keep the order of what they tell of.
    ///
    /// - Returns: The record, if the caller has to deliver the event after unlocking.
    @inline(__always)
    mutating func note(
        _ kind: @autoclosure () -> OperationEvent.Kind, hold: @autoclosure () -> DeliveryHold? = nil
    ) -> ObservationRecord? {
        ObserverRegistry.isActive ? noteObserved(kind(), hold: hold()) : nil
    }

    /// Not inlined, because what has no observers should not pay for the size of this.
    @inline(never)
    private mutating func noteObserved(
        _ kind: OperationEvent.Kind, hold: @autoclosure () -> DeliveryHold?
    ) -> ObservationRecord? {
        let record = requiredObservation()
        if record.isHidden { return nil }
        let now = OperationEvent.now
        return record.change { $0.happened(kind, at: now, hold: hold()) } ? record : nil
    }

    /// Returns the record, which is created if there is none.
    mutating func requiredObservation() -> ObservationRecord {
        if let observation { return observation }
        let created = ObservationRecord()
        observation = created
        return created
    }

    /// The operation has become part of another one, or is part of it no longer, or has given its children to another composite.
    ///
    /// - Returns: What is to be released after unlocking.
    mutating func forgetObservers() -> ObservationState.Released {
        // The record of hidden operations is guarded by no lock, so it never changes.
        guard let record = observation, !record.isHidden else { return [] }
        return record.change { $0.forgetObservers() }
    }

    /// The preparations have been made, or do not go on.
    ///
    /// - Returns: What to do next, and the record, if the caller has to deliver an event before that.
    @inline(__always)
    mutating func prepared() -> (Lifecycle.Action?, ObservationRecord?) {
        let action = lifecycle.prepared()
        return (action, action == .runMain ? note(.running) : nil)
    }
}

// Delivering what has been noted. Callers hold no lock.
extension AsyncOperation {
    /// Delivers an event that was noted, unless another thread does.
    @inline(__always)
    final func deliver(_ noted: ObservationRecord?) {
        if let noted { EventDelivery.deliver(self, noted) }
    }

    /// Notes and delivers an event that is no change of the life cycle, unless the operation has finished.
    final func emit(_ kind: @autoclosure () -> OperationEvent.Kind) {
        guard ObserverRegistry.isActive else { return }
        let kind = kind()
        deliver(withState { $0.lifecycle.isFinished ? nil : $0.note(kind) })
    }

    /// Delivers the end, if it was noted, or has the end of the composite around this operation wait for it.
    ///
    /// - Parameters:
    ///   - noted: The record, if the caller has to deliver it.
    ///   - hold: What the event has with it if another thread delivers it.
    final func deliverEnd(_ noted: ObservationRecord?, _ hold: DeliveryHold?) {
        if let hold { return holdParent(hold) }
        guard let noted else { return }
        EventDelivery.deliver(self, noted) {
            let hold = DeliveryHold()
            withState { _ in noted.change { $0.currentDeferred(hold) } }
            holdParent(hold)
        }
    }

    private final func holdParent(_ hold: DeliveryHold) {
        guard let parent = withState({ $0.membership.parent })?.operation else { return }
        parent.withState { $0.requiredObservation().change { $0.childEndDeferred() } }
        // It may have been delivered by another thread.
        if !hold.hold(parent) { parent.childEndDelivered() }
    }

    private final func childEndDelivered() {
        deliver(
            withState { state in
                guard let record = state.observation, record.change({ $0.childEndDelivered() }) else { return nil }
                return record
            })
    }

    /// Delivers the current event, and those that follow. Called by ``EventDelivery``.
    final func deliverEvents(_ record: ObservationRecord) {
        var isDue = true
        while isDue, let pending = record.current {
            // Released after unlocking, as these may be the last references.
            var released: ObservationState.Released = []
            var ended: (ObservationState.Released, ObservationState.Released) = ([], [])
            let (id, knownName, known) = withState { state in
                var (id, name, known) = record.change { ($0.id, $0.name, $0.knownObservers) }
                // The usual case is decided here, without more locks.
                if known == nil, state.membership.parent == nil {
                    let found = record.change {
                        $0.inherit(ObserverRegistry.globalObservers, isComposite: children != nil)
                    }
                    known = found.all?.registrations
                    released = found.released
                }
                return (id, name, known)
            }
            let observers = known ?? lookUpObservers()
            if !observers.isEmpty {
                let name = knownName ?? eventName(record)
                let event = OperationEvent(
                    operation: id, name: name, type: type(of: self), kind: pending.kind,
                    nanoseconds: pending.nanoseconds)
                tell(event, to: observers)
            }
            pending.hold?.delivered()?.childEndDelivered()
            isDue = withState { _ in
                record.change { state in
                    if pending.isEnd { ended = state.releaseObservers() }
                    return state.delivered()
                }
            }
            withExtendedLifetime((pending, released, ended)) {}
        }
    }

    /// Calls each observer once, by the first of its additions that has not ended.
    private final func tell(_ event: OperationEvent, to registrations: [ObserverRegistration]) {
        var called: [any OperationObserver] = []
        for registration in registrations {
            guard let observer = registration.observer else { continue }
            if registrations.count > 1 {
                if called.contains(where: { $0 === observer }) { continue }
                called.append(observer)
            }
            observer.operation(self, emitted: event)
        }
    }

    /// What events call the operation, unless that is what its class is called. Looked up without the lock: it may be overridden.
    private final func eventName(_ record: ObservationRecord) -> String? {
        let name = ownName ?? ownTitle
        withState { _ in record.change { $0.named(name) } }
        return name
    }

    /// All observers that see the operation: its own, those of the composites around it, and those of all operations.
    ///
    /// Complexity: O(1) if they are known, or those of what is around the operation. Otherwise linear in the composites around it
    /// whose observers are not known either, and are from then on.
    ///
    /// - Returns: The observers, those of the outermost composite first.
    private final func lookUpObservers() -> [ObserverRegistration] {
        while true {
            if let observers = findObservers() { return observers.registrations }
        }
    }

    /// - Returns: `nil` if something has changed meanwhile.
    private final func findObservers() -> ScopedObservers? {
        var unknown: [(operation: AsyncOperation, group: (any ChildGroup)?, parent: AsyncOperation?)] = []
        var next: AsyncOperation? = self
        var known: ScopedObservers?
        while let operation = next {
            let group = operation.withState { state in
                known = state.observation?.change(\.known)
                return state.membership.parent
            }
            if known != nil { break }
            next = group?.operation
            unknown.append((operation, group, next))
        }
        var outer = known ?? ObserverRegistry.globalObservers
        for (operation, group, parent) in unknown.reversed() {
            // The children of a composite that is gone, or that are about to have another one, ask again the next time.
            if group != nil, parent == nil { outer.scope = nil }
            guard let observers = operation.inherit(outer, from: group) else { return nil }
            // Children may have been given to another composite before they were told what this one knows.
            if let parent, group?.operation !== parent {
                let released = operation.withState { $0.forgetObservers() }
                withExtendedLifetime(released) {}
                return nil
            }
            outer = observers
        }
        return outer
    }

    /// - Returns: All observers of the operation, or `nil` if it is part of something else meanwhile, or that has other observers.
    private final func inherit(_ outer: ScopedObservers, from group: (any ChildGroup)?) -> ScopedObservers? {
        let isComposite = children != nil
        let (observers, released) = withState { state -> (ScopedObservers?, ObservationState.Released) in
            if state.membership.parent !== group { return (nil, []) }
            return state.requiredObservation().change { $0.inherit(outer, isComposite: isComposite) }
        }
        withExtendedLifetime(released) {}
        return observers
    }
}
