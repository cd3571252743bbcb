import Foundation

/// The outcome of an operation that did not run because of another one: the error that users see, and the operation
/// that is responsible, because it failed or was cancelled. Only the library sees the latter: ``FailureCollection``
/// counts all that one operation kept from running as one failure.
///
/// It is part of the outcome, so operations that run pay nothing for it.
struct BlockedError: CancellableError {
    let error: any Error
    let cause: Operation

    var isCancelled: Bool { error.isCancellation }
}

extension Result where Failure == any Error {
    /// The error that users see.
    var error: (any Error)? {
        guard case .failure(let error) = self else { return nil }
        return (error as? BlockedError)?.error ?? error
    }
}

extension Operation {
    /// The operation that kept this one, one of several siblings, from running; `nil` if none did, or if that operation
    /// is inside this one.
    ///
    /// - Parameter isSibling: Returns whether an operation is one of the siblings.
    /// - Returns: Another sibling, if it or something inside it is responsible, or else an operation that is inside no
    ///   sibling.
    func cause(where isSibling: (AsyncOperation) -> Bool) -> Operation? {
        guard let cause = (self as? AsyncOperation)?.blockedError?.cause else { return nil }
        let sibling = cause.enclosingOperations.first(where: isSibling) ?? cause
        return sibling === self ? nil : sibling
    }
}

extension AsyncOperation {
    /// What the operation ended with, if it did not run because of another one.
    final var blockedError: BlockedError? {
        withState { state in
            guard case .failure(let error) = state.lifecycle.outcome else { return nil }
            return error as? BlockedError
        }
    }
}
