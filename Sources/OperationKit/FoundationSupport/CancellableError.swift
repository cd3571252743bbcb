import Foundation

/// An error that may stand for a cancellation: `isCancellation` reads its ``isCancelled``.
///
/// Conform errors of your own that say that work was stopped on purpose, or that wrap errors which may say so. The
/// library then treats them as it treats `CancellationError`, not as failures:
///
/// ```swift
/// enum DownloadError: CancellableError {
///     case stoppedByUser
///     case wrongChecksum
///
///     var isCancelled: Bool { self == .stoppedByUser }
/// }
/// ```
public protocol CancellableError: Error {
    /// Whether the error stands for a cancellation, and not for a failure.
    ///
    /// Read on any thread, and more than once; it always has to be the same.
    var isCancelled: Bool { get }
}

extension Error {
    /// Whether the error stands for a cancellation, and not for a failure.
    ///
    /// Check this one property wherever cancellations are to be ignored, whatever was cancelled:
    ///
    /// ```swift
    /// let queue = OperationQueue()
    /// let save = ThrowingBlockOperation { /* … */ }
    /// do {
    ///     try await queue.run(save)
    /// } catch where error.isCancellation {
    ///     // Stopped on purpose: there is nothing to report.
    /// } catch {
    ///     print(error.localizedDescription)
    /// }
    /// ```
    ///
    /// It is true for
    ///
    /// - `CancellationError`,
    /// - ``CompoundOperationError/cancelled(name:errors:reason:)`` without failures of children, and without a reason or
    ///   with one that stands for a cancellation itself,
    /// - errors of the library that wrap such an error, ``DependencyError`` and ``SuboperationError``,
    /// - `URLError.cancelled` and `CocoaError.userCancelled`, also as `NSError`s,
    /// - errors of your own that are a ``CancellableError`` whose ``CancellableError/isCancelled`` is true.
    ///
    /// Wherever the library distinguishes between failures and cancellations, it reads this property. So a child of a
    /// ``CompoundOperation`` or an item of a ``CollectionOperation`` that ends with an error for which it is true has
    /// not failed.
    public var isCancellation: Bool {
        if self is CancellationError { return true }
        if let error = self as? any CancellableError { return error.isCancelled }
        if let error = self as? any CustomNSError {
            return isFoundationCancellation(domain: type(of: error).errorDomain, code: error.errorCode)
        }
        // Other Swift errors have a domain of their own.
        guard type(of: self) is NSError.Type else { return false }
        let error = self as NSError
        return isFoundationCancellation(domain: error.domain, code: error.code)
    }
}

/// Whether an error with this domain and code is one with which Foundation reports a cancellation. They are compared as
/// values, because `URLError` is declared in a module of its own on Linux.
private func isFoundationCancellation(domain: String, code: Int) -> Bool {
    switch (domain, code) {
    // `URLError.cancelled`, whose domain has its constant in that module, too, and `CocoaError.userCancelled`.
    case ("NSURLErrorDomain", -999), (NSCocoaErrorDomain, 3072): true
    // `CancellationError` that was converted. On Linux, an `NSError` does not remember what it was.
    case ("Swift.CancellationError", _): true
    default: false
    }
}
