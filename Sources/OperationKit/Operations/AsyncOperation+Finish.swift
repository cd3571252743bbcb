import Foundation

extension AsyncOperation {
    /// Ends the operation. The first call decides the outcome.
    ///
    /// May be called from any thread and any number of times: inside `main()`, from a callback, after a cancellation.
    /// The call that decides calls ``asyncCompletionBlock`` on its own thread, and the operation is finished when it
    /// returns. If another thread is just marking the operation as cancelled, that is left to the other thread.
    ///
    /// Before the start the outcome is remembered, and the operation does not finish yet: a queue that it is on would
    /// crash. Once started, the operation finishes immediately and `main()` is not called.
    ///
    /// On a composite, such as ``CompoundOperation``, it is a request: the children are cancelled, and the composite
    /// ends after them, with this outcome.
    ///
    /// - Parameter error: The error the operation ends with, or `nil` for success. `CancellationError`, and any other error
    ///   whose `isCancellation` is true, is replaced by the reason, if the operation was cancelled with one
    ///   (``cancel(withError:)``).
    /// - Returns: Whether this call decided the outcome. `false` means that an earlier one did.
    @discardableResult
    public final func finish(withError error: (any Error)? = nil) -> Bool {
        finish(with: validated(error.map { .failure(replacedByReason($0)) } ?? .success(())))
    }

    /// Ends the operation. `onAcceptance` is called with the lock held, to store what belongs to the outcome.
    @discardableResult
    final func finish(with outcome: Lifecycle.Outcome, onAcceptance: () -> Void = {}) -> Bool {
        let (isAccepted, action) = withState { state in
            let answer = state.lifecycle.finished(with: outcome)
            if answer.isAccepted { onAcceptance() }
            return answer
        }
        perform(action)
        #if DEBUG
        if !isAccepted { reportFinishAfterDefaultMain() }
        #endif
        return isAccepted
    }

    /// Asks the operation to stop, and says why.
    ///
    /// The same as `cancel()`, but where the operation would end with `CancellationError`, or with another error whose
    /// `isCancellation` is true, it ends with `error`. Any other outcome that the work itself reports stands. Only the
    /// first cancellation counts, with a reason or without.
    ///
    /// - Parameter error: The reason.
    public final func cancel(withError error: any Error) {
        cancel(reason: error)
    }

    /// Why the operation was cancelled: the error that ``cancel(withError:)`` was given, an ``OperationTimeoutError`` for example. `nil`
    /// if it was not cancelled, or without a reason.
    ///
    /// Can be read from any thread, at any time: in ``didCancel()``, to tell a timeout from the user's wish.
    public final var cancellationReason: (any Error)? {
        withState { $0.lifecycle.cancellationReason }
    }

    /// Returns the error to end with, for one that the work has given. If the operation was cancelled with a reason
    /// that is a failure, and the error only says that it was cancelled, as that of a stopped request does, this
    /// returns `CancellationError`, which the life cycle replaces by the reason. Call it without the lock: the errors
    /// may be of users' types.
    final func replacedByReason(_ error: any Error) -> any Error {
        if error is CancellationError { return error }
        guard let reason = cancellationReason, !reason.isCancellation else { return error }
        return error.isCancellation ? CancellationError() : error
    }

    final func cancel(reason: (any Error)?) {
        perform(withState { $0.lifecycle.cancelled(reason: reason) })
    }

    /// Cancels the operation, together with others. Cancelling what is inside of it is left to the list.
    final func cancel(_ list: inout Trampoline) {
        perform(withState { $0.lifecycle.cancelled(reason: nil) }, &list)
    }
}
