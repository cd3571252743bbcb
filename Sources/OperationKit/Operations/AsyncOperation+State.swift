import Foundation

extension AsyncOperation {
    /// All that changes in the life of an operation, as one value. The operation's lock guards it.
    struct State {
        var lifecycle: Lifecycle
        var completion: AsyncCompletionBlock?
        /// What is between `start()` and `main()`; `nil` if there never was anything.
        var gates: StartGates?
        /// What observers need; `nil` if none has seen the operation yet.
        var eventQueue: EventQueue?
        /// Created when it is first read.
        var progress: OperationProgress?
        /// What the work has registered for its own cancellation.
        var cancellationHandlers = CancellationHandlers.waiting([])
        /// When and where the operation started to execute, until its end is delivered; `nil` if that is not recorded.
        var execution: ExecutionRecord?
        /// Notified once the operation is finished, after Foundation.
        var observers = FinishObservers()
        /// Whether the end has been announced to Foundation and to all observers.
        var isAnnounced = false
        /// The children that the operation is one of.
        weak var parent: (any ChildGroup)?
        /// The slot of the operation in the ``ChildTable`` of its composite.
        var slot: Int?
        #if DEBUG
        /// Whether the default implementation of `main()` finished the operation.
        var hasFinishedInDefaultMain = false
        var wasFinishedAfterDefaultMain = false
        #endif

        init(lifecycle: Lifecycle) {
            self.lifecycle = lifecycle
        }

        /// Whether tasks that wait for the end go on: the operation has finished, and those who observe its events know.
        var isOver: Bool { lifecycle.isFinished && (isAnnounced || eventQueue == nil) }

        /// The gate that takes time, and has not been passed.
        var awaitedGate: (any StartGate)? { lifecycle.isWaiting ? gates?.current : nil }

        /// Returns the gates, which are created if there are none.
        mutating func requiredGates() -> StartGates {
            if let gates { return gates }
            let created = StartGates()
            gates = created
            return created
        }

        /// Foundation has been notified of the end. The caller notifies the waiters and observers that are returned.
        mutating func announced() -> [any FinishObserving] {
            isAnnounced = true
            return observers.removeAll()
        }
    }
}

// What a composite needs of its children, and of the operations that these depend on.
extension AsyncOperation {
    /// Notifies an observer once, when the operation finishes, unless its end has been announced already.
    ///
    /// - Returns: The outcome, if it has been announced. Then the observer is not notified.
    final func observeFinish(_ observer: any FinishObserving) -> Lifecycle.Outcome? {
        withState { state in
            if state.isAnnounced { return state.lifecycle.outcome }
            state.observers.add(observer)
            return nil
        }
    }

    /// The slot of the operation in the ``ChildTable`` of the composite to which it was added last.
    final var slot: Int? {
        get { withState { $0.slot } }
        set { withState { $0.slot = newValue } }
    }
}

/// An object that is notified of the end of an operation: on the thread that ended it, after `isFinished` became true
/// and Foundation was notified.
protocol FinishObserving: AnyObject {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline)
}
