extension AsyncOperation {
    /// Ends the operation soon, because nothing else can. Called where the last way to end it was released.
    final func finishWasLost() {
        guard withState({ $0.lifecycle.acceptsOutcome }) else { return }
        // The releasing thread may hold arbitrary locks.
        DedicatedThreads.deliveries.performAsync { self.finishAfterLoss() }
    }

    /// Ends the operation with an error that says why, or as cancelled if it is, unless it has ended meanwhile.
    private final func finishAfterLoss() {
        let error = LostFinishError.operation(name: displayName)
        let (isLost, execution, action) = withState { state in
            let isCancelled = state.lifecycle.isCancelled
            let execution = state.execution
            let outcome = isCancelled ? CancellationError() : error as any Error
            let (isAccepted, action) = state.lifecycle.finished(with: .failure(outcome))
            return (isAccepted && !isCancelled, execution, action)
        }
        if isLost { execution?.reportLostFinish(error) }
        perform(action)
    }
}
