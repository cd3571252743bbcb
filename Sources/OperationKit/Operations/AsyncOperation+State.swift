import Foundation

extension AsyncOperation {
    /// All that changes in the life of an operation, as one value. The operation's lock guards it.
    struct State {
        var lifecycle: Lifecycle
        var completion: AsyncCompletionBlock?
        /// What has to be done right before `main()`, in this order.
        var startHandlers: [StartHandler] = []
        /// How many of the startHandlers come last, after those that are still to be added.
        var lastStartHandlers: Int32 = 0
        /// Created when it is first read.
        var progress: OperationProgress?
        var waiters = Waiters<CheckedContinuation<Wakeup, Never>>()
        /// When and where it began, as long as its end is not delivered. `nil` where that is not recorded.
        var execution: ExecutionRecord?
        /// Told once the operation is finished, after Foundation was.
        var observers = FinishObservers()
        /// Whether Foundation may count a dependency that was removed.
        var hasRemovedDependency = false
        /// Whether the end has been announced to Foundation and to all observers.
        var isAnnounced = false
        var membership = Membership()
        /// The number under which the scheduler of that composite knows the operation.
        var slot: Int?

        init(lifecycle: Lifecycle) {
            self.lifecycle = lifecycle
        }

        /// Foundation has been notified of the end. The caller notifies the waiters and observers that are returned.
        mutating func announced() -> (waiting: [CheckedContinuation<Wakeup, Never>], [any FinishObserving]) {
            isAnnounced = true
            return (waiters.finished(), observers.removeAll())
        }
    }
}

// What a composite needs of its children, and of others that these wait for.
extension AsyncOperation {
    /// Notifies an observer once, when the operation finishes, unless its end has been announced already.
    ///
    /// - Returns: The outcome, if it has been announced. Then the observer is not told.
    final func observeFinish(_ observer: any FinishObserving) -> Lifecycle.Outcome? {
        withState { state in
            if state.isAnnounced { return state.lifecycle.outcome }
            state.observers.add(observer)
            return nil
        }
    }

    /// Takes an observer back. It may be told nevertheless, if the operation is finishing just now.
    final func removeObserver(_ observer: any FinishObserving) {
        _ = withState { $0.observers.remove(observer) }
    }

    /// The number under which a scheduler knows the operation, as it was told last.
    final var slot: Int? {
        get { withState { $0.slot } }
        set { withState { $0.slot = newValue } }
    }
}

/// Told on the thread that ended the operation, after `isFinished` became true and Foundation was told.
protocol FinishObserving: AnyObject {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Worklist)
}
