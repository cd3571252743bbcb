public import Foundation

/// An operation whose error can be read once it has finished.
///
/// This is how a ``CompoundOperation`` learns of the failures of its children. ``AsyncOperation`` conforms; conform your own synchronous subclasses to have their errors reported too:
///
/// ```swift
/// final class Decode: Operation, FailableOperation, @unchecked Sendable {
///     private(set) var error: (any Error)?
///     override func main() {
///         do { _ = try JSONDecoder().decode([String].self, from: Data("[]".utf8)) } catch { self.error = error }
///     }
/// }
/// ```
public protocol FailableOperation: Operation {
    /// The error the operation ended with, or `nil` for success.
    ///
    /// Read once the operation is finished, on any thread; set it before. An error whose `isCancellation` is true says
    /// that the operation was cancelled, which is no failure. So does `nil` of an operation whose `isCancelled` is
    /// true: its `main()` may not have run at all.
    var error: (any Error)? { get }
}

extension AsyncOperation: FailableOperation {}

extension Operation {
    /// The error that a finished operation ended with, or `CancellationError` if it was cancelled.
    var endingError: (any Error)? {
        // It knows whether it succeeded although it was cancelled.
        if let operation = self as? AsyncOperation { return operation.error }
        if let error = (self as? any FailableOperation)?.error { return error }
        return isCancelled ? CancellationError() : nil
    }
}
