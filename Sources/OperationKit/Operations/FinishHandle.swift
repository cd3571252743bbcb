import Foundation

/// What the closure of an operation ends the operation with, and sees its cancellation by.
///
/// ```swift
/// let pause = AsyncBlockOperation(name: "pause") { finish in
///     DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { finish() }
///     finish.onCancel { finish(CancellationError()) }
/// }
/// ```
///
/// ``AsyncBlockOperation`` and ``IOBlockOperation/finishing(name:_:)`` hand it to their closures. It may be copied, kept, and used on any
/// thread; it keeps the operation alive. Where a plain closure is wanted, pass `finish.callAsFunction`.
///
/// ## A finish that is lost
///
/// When the last copy is released and none was called, nothing can end the operation any more. It is then ended with
/// ``LostFinishError``, or, if it is cancelled, as cancelled. This happens soon afterward, on another thread, because the
/// releasing thread may hold arbitrary locks; it has no effect on an operation that has ended by then. The loss is
/// reported to ``OperationDiagnostics/handler``, unless the operation is cancelled. A copy that a handler of
/// ``onCancel(_:)`` holds counts until that handler has been called, or the operation has ended.
public struct FinishHandle<Output: Sendable>: Sendable {
    private let token: FinishToken<Output>

    init(of operation: some HandleFinishing<Output>) {
        token = FinishToken(operation)
    }

    /// Ends the operation with success and this output.
    ///
    /// May be called from any thread and any number of times; the first call of this or another way to end the operation
    /// decides the outcome. See ``AsyncOperation/finish(withError:)``.
    ///
    /// - Parameter output: What the operation produced.
    public func callAsFunction(with output: Output) {
        token.settle(with: .success(output))
    }

    /// Ends the operation with a failure.
    ///
    /// May be called from any thread and any number of times; the first call of this or another way to end the operation
    /// decides the outcome. See ``AsyncOperation/finish(withError:)``.
    ///
    /// - Parameter error: The error the operation ends with. One whose `isCancellation` is true is replaced by the reason,
    ///   if the operation was cancelled with one.
    public func callAsFunction(_ error: any Error) {
        token.settle(with: .failure(error))
    }

    /// Whether the operation is cancelled: its `isCancelled`.
    public var isCancelled: Bool { token.operation.isCancelled }

    /// Throws if the operation is cancelled.
    ///
    /// - Throws: `CancellationError`. An operation that is ended with it ends with the reason instead, if it was cancelled
    ///   with one (``AsyncOperation/cancel(withError:)``).
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
    /// operation freely: it may end it, or stop the work that will. What it does must be safe while the closure runs;
    /// ``AsyncOperation/didCancel()`` of a subclass waits for that instead.
    ///
    /// A handler that is never called is released when the operation ends. One that is registered after that is dropped.
    ///
    /// - Parameter handler: Stops the work.
    public func onCancel(_ handler: @escaping @Sendable () -> Void) {
        token.operation.addCancellationHandler(handler)
    }
}

extension FinishHandle where Output == Void {
    /// Ends the operation.
    ///
    /// May be called from any thread and any number of times; the first call of this or another way to end the operation
    /// decides the outcome. See ``AsyncOperation/finish(withError:)``.
    ///
    /// - Parameter error: The error the operation ends with, or `nil` for success. One whose `isCancellation` is true is
    ///   replaced by the reason, if the operation was cancelled with one.
    public func callAsFunction(_ error: (any Error)? = nil) {
        token.settle(with: error.map { .failure($0) } ?? .success(()))
    }
}

/// An operation that a ``FinishHandle`` ends.
protocol HandleFinishing<Output>: AsyncOperation, CancellableWork {
    associatedtype Output: Sendable

    /// Ends the operation. `onAcceptance` is called with the lock held, if this decides the outcome.
    func settle(with result: Result<Output, any Error>, onAcceptance: () -> Void)
}

/// What all copies of a handle share. It goes with the last of them.
private final class FinishToken<Output: Sendable>: @unchecked Sendable {
    let operation: any HandleFinishing<Output>
    /// Whether this has decided the outcome. Written with the lock of the operation held, and read by the thread that
    /// releases the object last.
    private var hasDecided = false

    init(_ operation: any HandleFinishing<Output>) {
        self.operation = operation
    }

    deinit {
        if !hasDecided { operation.finishWasLost() }
    }

    func settle(with result: Result<Output, any Error>) {
        operation.settle(with: result.mapError { operation.replacedByReason($0) }) { hasDecided = true }
    }
}
