public import Foundation

/// The outcome of an operation that did not run because of another one, or of a composite in which nothing else went
/// wrong: the error that users see, and the operation that is responsible. Only the library sees the latter:
/// ``FailureCollection`` counts all that one operation kept from running as one failure.
///
/// It is part of the outcome, so operations that run pay nothing for it.
struct SkippedError: CancellableError, OutcomeError {
    let error: any Error
    let cause: RootCause

    var isCancelled: Bool { error.isCancellation }
}

/// The operation that went wrong first, and so kept others from running, because it failed or was cancelled.
struct RootCause {
    private(set) var operation: Operation
    /// Its name and its error, as the errors of those that it kept from running give them.
    let name: String
    let error: any Error
    /// Whether it is neither a sibling of the operation that it kept from running, nor inside one.
    private(set) var isOutside = true

    /// The cause of what does not run because an operation ended with an error. Where that did not run either, or
    /// failed only because of another one, it is the cause of that.
    init(_ source: Operation, error: any Error) {
        if let skipped = source.skippedError {
            self = skipped.cause
            return
        }
        operation = source
        // It may have passed on the error of an operation that it required by other means.
        (name, self.error) = (error as? any NestingError)?.root ?? (source.displayName, error)
    }

    /// The cause of what one of several siblings kept from running, which is responsible itself, or has the cause inside it.
    func inside(_ sibling: Operation) -> RootCause {
        var cause = self
        cause.operation = sibling
        cause.isOutside = false
        return cause
    }
}

extension Operation {
    /// What kept this operation, one of several siblings, from running.
    ///
    /// - Parameter isSibling: Returns whether an operation is one of the siblings.
    /// - Returns: The sibling that is responsible, or has what is responsible inside it, or an operation that is inside no
    ///   sibling; `nil` if nothing kept it from running, or something inside it.
    func cause(where isSibling: (Operation) -> Bool) -> RootCause? {
        guard let cause = skippedError?.cause else { return nil }
        if isSibling(cause.operation) { return cause.inside(cause.operation) }
        guard let sibling = cause.operation.enclosingOperations.first(where: isSibling) else { return cause }
        return sibling === self ? nil : cause.inside(sibling)
    }

    /// What the operation ended with, if it did not run because of another one, or failed only because of another one. `nil` for another
    /// class.
    var skippedError: SkippedError? {
        guard case .failure(let error) = (self as? AsyncOperation)?.withState(\.lifecycle.outcome) else { return nil }
        return error as? SkippedError
    }
}

/// An operation whose error can be read once it has finished.
///
/// This is how a ``CompoundOperation`` learns of the failures of its children. ``AsyncOperation`` conforms; conform your own
/// synchronous subclasses to have their errors reported too:
///
/// ```swift
/// final class Decode: Operation, FailableOperation, @unchecked Sendable {
///     private(set) var error: (any Error)?
///     override func main() {
///         do { _ = try JSONDecoder().decode([String].self, from: Data("[]".utf8)) } catch { self.error = error }
///     }
/// }
/// ```
public protocol FailableOperation: Operation, SendableMetatype {
    /// The error the operation ended with, or `nil` for success.
    ///
    /// Read once the operation is finished, on any thread; set it before. An error whose `isCancellation` is true says
    /// that the operation was cancelled, which is no failure. So does `nil` of a cancelled operation of a class that is
    /// not the library's: its `main()` may not have run at all.
    var error: (any Error)? { get }
}

extension Operation {
    /// The error that a finished operation ended with, or `CancellationError` if it was cancelled.
    package var endingError: (any Error)? {
        // It knows whether it succeeded although it was cancelled.
        if let operation = self as? AsyncOperation { return operation.error }
        if let error = (self as? any FailableOperation)?.error { return error }
        return isCancelled ? CancellationError() : nil
    }
}
