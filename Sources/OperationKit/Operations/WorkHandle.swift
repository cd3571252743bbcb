import Foundation

/// What the closure of a synchronous operation sees of its operation: whether it is cancelled.
///
/// ```swift
/// let count = ThrowingBlockOperation(name: "count") { work in
///     for number in 0..<1_000_000 {
///         if number.isMultiple(of: 1_000) { try work.checkCancellation() }
///     }
/// }
/// ```
///
/// ``ThrowingBlockOperation`` and ``IOBlockOperation/observing(name:_:)`` hand it to their closures. It may be kept and used on any
/// thread, and keeps the operation alive. Work that ends later than its closure gets a ``FinishHandle``, which has the
/// same members.
public struct WorkHandle: Sendable {
    let operation: any CancellableWork

    /// Whether the operation is cancelled: its `isCancelled`.
    public var isCancelled: Bool { operation.isCancelled }

    /// Throws if the operation is cancelled.
    ///
    /// An `AsyncOperation` that ends with this error ends with the reason instead, if it was cancelled with one
    /// (``AsyncOperation/cancel(withError:)``).
    ///
    /// - Throws: `CancellationError`.
    public func checkCancellation() throws {
        if isCancelled { throw CancellationError() }
    }

    /// Calls a handler when the operation is cancelled.
    ///
    /// Each handler is called at most once, in the order of registration, on the thread that cancels the operation: inside
    /// `cancel()`, also while the closure is on the stack of another thread. If the operation is cancelled already, it is
    /// called immediately, before this method returns, on this thread, and so are those registered before that the other
    /// thread has not come to. An end of the operation waits for the handlers, so a handler must not wait for the end. No
    /// lock is held during the call, so the handler may use the
    /// operation freely. What it does must be safe while the work goes on.
    ///
    /// A handler that is never called is released when the operation ends. One that is registered after that is dropped.
    ///
    /// - Parameter handler: Stops the work, or has it stop soon.
    public func onCancel(_ handler: @escaping @Sendable () -> Void) {
        operation.addCancellationHandler(handler)
    }
}

/// An operation whose work can see that it is cancelled, and register handlers for that.
protocol CancellableWork: Operation, Sendable {
    /// Reads and changes the handlers, with the lock held.
    func changeCancellationHandlers<Value>(_ body: (inout CancellationHandlers) -> Value) -> Value
}

extension CancellableWork {
    func addCancellationHandler(_ handler: @escaping CancellationHandlers.Handler) {
        // The thread that cancels may not have come to the handlers yet.
        if isCancelled { callCancellationHandlers() }
        let isDue = changeCancellationHandlers { $0.added(handler) }
        if isDue { handler() }
    }

    /// Calls the handlers, without a lock. A cancellation calls this after Foundation's `isCancelled` has become true.
    func callCancellationHandlers() {
        var due = changeCancellationHandlers { $0.cancelled() }
        due.reverse()
        // Each handler is released after its call.
        while let handler = due.popLast() { handler() }
    }
}
