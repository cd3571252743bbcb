import Foundation

/// What an operation ends with that did not run because of another one: the error that users see, and the operation that
/// is responsible, because it failed or was cancelled. Only the library sees that one: a composite counts by it.
///
/// It is part of the outcome, so operations that run pay nothing for it.
struct BlockedError: CancellableError {
    let error: any Error
    let cause: Operation

    var isCancelled: Bool { error.isCancellation }
}

extension Result where Success == Void, Failure == any Error {
    /// The error that users see.
    var error: (any Error)? {
        guard case .failure(let error) = self else { return nil }
        return (error as? BlockedError)?.error ?? error
    }
}

extension Operation {
    /// The operation that counts as the cause of the end of one of several operations; `nil` if it did not end without
    /// running because of another one, or because of one inside itself.
    ///
    /// - Parameter isSibling: Whether an operation is one of the several. A cause inside one of them is replaced by that.
    /// - Returns: One of the others, or an operation elsewhere.
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
