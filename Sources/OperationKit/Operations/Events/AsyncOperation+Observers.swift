import Foundation

extension AsyncOperation {
    /// Adds an observer of the operation and, if it is a composite, of all that is inside it, at any depth, also of what is
    /// added later.
    ///
    /// May be called at any time, on any thread. The observer is told what happens from now on; one that is added to an operation that
    /// has finished is not. It is called once for each event, also if it was added to several operations. It is kept alive until
    /// the operation has finished, or it is removed. ``OperationObserver`` says on which threads and in which order it is called.
    ///
    /// Complexity: linear in the observers of the operation; for a composite also in the composites inside it in which something has
    /// happened since its observers last changed. As long as there is any observer in the process, every operation pays a little for
    /// each of its events.
    ///
    /// - Parameter observer: The observer. It is not added twice.
    public final func addObserver(_ observer: any OperationObserver) {
        _ = add(observer)
    }

    /// Adds an observer.
    ///
    /// - Returns: Whether it was added: it was not there, and the operation has not finished.
    final func add(_ observer: any OperationObserver) -> Bool {
        let registration = ObserverRegistration(observer)
        let (isAdded, released) = withState { state in
            if state.lifecycle.isFinished { return (false, []) }
            return state.requiredObservation().change { $0.add(registration, of: observer) }
        }
        withExtendedLifetime(released) {}
        return isAdded
    }

    /// Removes an observer that was added to this operation. Nothing happens if it was not.
    ///
    /// May be called at any time, on any thread, also from inside a method of the observer. Once it has returned, no method of the observer
    /// is begun for this operation, unless the observer was added to a composite around it, too. One that another thread has
    /// begun may still be running.
    ///
    /// - Parameter observer: The observer.
    public final func removeObserver(_ observer: any OperationObserver) {
        let changed = withState { $0.observation?.change { $0.remove(observer) } }
        changed?.removed?.end()
        withExtendedLifetime(changed) {}
    }

    /// Adds an observer of every `AsyncOperation` in the process, also of those that exist.
    ///
    /// May be called at any time, on any thread. It is kept alive until it is removed.
    ///
    /// - Parameter observer: The observer. It is not added twice.
    public static func addGlobalObserver(_ observer: any OperationObserver) {
        ObserverRegistry.addGlobal(observer)
    }

    /// Removes an observer of every operation. Nothing happens if it was not added.
    ///
    /// May be called at any time, on any thread. See ``removeObserver(_:)``.
    ///
    /// - Parameter observer: The observer.
    public static func removeGlobalObserver(_ observer: any OperationObserver) {
        ObserverRegistry.removeGlobal(observer)
    }

    /// Identifies the operation in its events. May be read on any thread, at any time; it does not change.
    public final var observationID: OperationID {
        withState { $0.requiredObservation().change { $0.id } }
    }

    /// Keeps the operation from having events, because only the library knows it. To be called before it is used.
    final func hideFromObservers() {
        withState { $0.observation = .hidden }
    }

    /// Tells observers that the operation has become a child of a composite. Called before it can start.
    final func announceAddition(to composite: AsyncOperation) {
        emit(.added(to: composite.observationID, name: composite.displayName))
    }
}
