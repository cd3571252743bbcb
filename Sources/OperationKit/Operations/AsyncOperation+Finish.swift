import Foundation

extension AsyncOperation {
    /// Ends the operation. The first call decides the outcome.
    ///
    /// May be called from any thread and any number of times: inside `main()`, from a callback, after a cancellation.
    /// The accepted call calls ``asyncCompletionBlock``, on its own thread, and the operation is finished when it
    /// returns; only when another thread is just marking the operation as cancelled is the rest left to that thread.
    ///
    /// Before the start the outcome is remembered: a queue does not survive an operation that becomes finished before
    /// it starts. Once started, the operation finishes at once and `main()` is not called.
    ///
    /// On a composite, such as ``CompoundOperation``, it is a request: the children are cancelled, and the composite
    /// ends after them, with this outcome.
    ///
    /// - Parameter error: The error the operation ends with, or `nil` for success. `CancellationError` is replaced by
    ///   the reason, if the operation was cancelled with one (``cancel(withError:)``).
    /// - Returns: Whether this call decided the outcome. `false` means that an earlier one did.
    @discardableResult
    public final func finish(withError error: (any Error)? = nil) -> Bool {
        finish(with: checked(error.map { .failure($0) } ?? .success(())))
    }

    /// Ends the operation. `onAcceptance` is called with the lock held, to store what belongs to the outcome.
    @discardableResult
    final func finish(with outcome: Lifecycle.Outcome, onAcceptance: () -> Void = {}) -> Bool {
        let (isAccepted, action) = lock.withLock {
            let answer = lifecycle.finished(with: outcome)
            if answer.isAccepted { onAcceptance() }
            return answer
        }
        perform(action)
        return isAccepted
    }

    /// A composite's children have all finished. What its own result is depends on whether it was cancelled, and why.
    final func childrenFinished(own: (_ isCancelled: Bool, _ reason: (any Error)?) -> Lifecycle.Outcome) {
        perform(lock.withLock { lifecycle.drained(with: own(lifecycle.isCancelled, lifecycle.cancellationReason)) })
    }

    /// Asks the operation to stop, and says why.
    ///
    /// The same as `cancel()`, but where the operation would end with `CancellationError`, it ends with `error`. An
    /// outcome that the work itself reports stands. Only the first cancellation counts, with a reason or without.
    ///
    /// - Parameter error: The reason.
    public final func cancel(withError error: any Error) {
        cancel(reason: error)
    }

    final func cancel(reason: (any Error)?) {
        perform(lock.withLock { lifecycle.cancelled(reason: reason) })
    }
}

// What a composite needs of its children.
extension AsyncOperation {
    /// Has the end of the operation reported, once, unless it has finished already.
    ///
    /// - Returns: Whether the end will be reported.
    final func observeFinish(_ observer: FinishObserver) -> Bool {
        lock.withLock {
            if lifecycle.isFinished { return false }
            finishObserver = observer
            return true
        }
    }

    /// Makes the operation part of a composite, or of none.
    ///
    /// - Returns: Whether it belonged to `previous` before. If not, nothing changes.
    final func setOwner(_ owner: AnyObject?, from previous: AnyObject?) -> Bool {
        lock.withLock {
            guard self.owner === previous else { return false }
            self.owner = owner
            return true
        }
    }

    /// The composite that the operation is part of, the one which that is part of, and so on.
    final var owners: some Sequence<AsyncOperation> {
        sequence(state: self) { operation in
            guard let owner = operation.lock.withLock({ operation.owner }) as? AsyncOperation else { return nil }
            operation = owner
            return owner
        }
    }
}

/// Who is told that an operation has finished, and under which number it knows the operation.
struct FinishObserver {
    let object: any FinishObserving
    let token: Int

    func notify(_ operation: AsyncOperation) {
        object.operationFinished(operation, token: token)
    }
}

/// A composite that wants to hear of a child that is cancelled by itself, on the thread that cancels it.
protocol ChildObserving: AnyObject {
    func childWasCancelled(_ child: AsyncOperation)
}

/// Told on the thread that ended the operation, after `isFinished` became true and Foundation was told.
protocol FinishObserving: AnyObject {
    func operationFinished(_ operation: AsyncOperation, token: Int)
}
