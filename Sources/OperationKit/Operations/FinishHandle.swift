public import Foundation

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
    /// Ends an operation. Calls `onAcceptance` with the lock held, if this decides the outcome.
    typealias Finish = @Sendable (_ result: Result<Output, any Error>, _ onAcceptance: () -> Void) -> Void

    private let token: FinishToken<Output>

    init(of operation: AsyncOperation, finish: @escaping Finish) {
        token = FinishToken(operation, finish)
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
    /// thread has not come to. The one that the other thread is in is not waited for. An end of the operation waits for the
    /// handlers that the cancelling thread calls, so a handler must not wait for the end. No lock is held during the call, so the handler may use the
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
        token.settle(with: error.map(Result.failure) ?? .success(()))
    }
}

/// What all copies of a handle share. It goes with the last of them.
private final class FinishToken<Output: Sendable>: @unchecked Sendable {
    let operation: AsyncOperation
    private let finish: FinishHandle<Output>.Finish
    /// Whether this has decided the outcome. Written with the lock of the operation held, and read by the thread that
    /// releases the object last.
    private var hasDecided = false

    init(_ operation: AsyncOperation, _ finish: @escaping FinishHandle<Output>.Finish) {
        self.operation = operation
        self.finish = finish
    }

    deinit {
        if !hasDecided { operation.finishWasLost() }
    }

    func settle(with result: Result<Output, any Error>) {
        finish(result) { hasDecided = true }
    }
}

/// Work has lost its way to say that it is done: it can never end by itself.
public enum LostFinishError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The closure of the operation released every copy of its `finish`, and called none. Code 1.
    case operation(name: String)
    /// The completion of an item or batch was released without having been called. `name` is "item" or "batch" with its
    /// index, `type` the type that performed it. Code 2.
    case unit(name: String, type: String)
    /// The completion of a whole run was released without having been called, by a type that performs all items in a way
    /// of its own. `name` is that of the run, which is the type's if it was not changed. Code 3.
    case run(name: String)

    package var numericCode: Int {
        switch self {
        case .operation: 1
        case .unit: 2
        case .run: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .operation(let name):
            "The operation “\(name)” was ended, because its closure released finish without calling it. Call it on every path."
        case .unit(let name, let type):
            "“\(type)” released the completion of \(name) without calling it. Call it on every path."
        case .run(let name):
            "“\(name)” was ended, because its completion was released without having been called. Call it on every path."
        }
    }
}

extension AsyncOperation {
    /// Ends the operation soon, with an error that says why, or as cancelled if it is, because nothing else can. Called where the
    /// last way to end it was released.
    func finishWasLost() {
        guard withState({ $0.lifecycle.acceptsOutcome }) else { return }
        // The releasing thread may hold arbitrary locks.
        DedicatedThreads.callbacks.performAsync { [self] in
            let error = LostFinishError.operation(name: displayName)
            let (isLost, execution, action) = withState { state in
                let isCancelled = state.lifecycle.isCancelled
                let execution = state.execution
                let (isAccepted, action) = state.lifecycle.finished(
                    with: .failure(isCancelled ? CancellationError() : error))
                return (isAccepted && !isCancelled, execution, action)
            }
            if isLost { execution?.reportLostFinish(error) }
            perform(action)
        }
    }
}

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
    let operation: AsyncOperation

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
    /// thread has not come to. The one that the other thread is in is not waited for. An end of the operation waits for the
    /// handlers that the cancelling thread calls, so a handler must not wait for the end. No lock is held during the call, so the handler may use the
    /// operation freely. What it does must be safe while the work goes on.
    ///
    /// A handler that is never called is released when the operation ends. One that is registered after that is dropped.
    ///
    /// - Parameter handler: Stops the work, or has it stop soon.
    public func onCancel(_ handler: @escaping @Sendable () -> Void) {
        operation.addCancellationHandler(handler)
    }
}

extension AsyncOperation {
    /// Registers a handler, as ``FinishHandle/onCancel(_:)`` does.
    package func addCancellationHandler(_ handler: @escaping @Sendable () -> Void) {
        // The thread that cancels may not have come to the handlers yet.
        if isCancelled { callCancellationHandlers() }
        guard withState({ $0.cancellationHandlers.added(handler) }) else { return }
        callCancellationHandlers()
        handler()
    }

    /// Calls the handlers, without a lock. A cancellation calls this after Foundation's `isCancelled` has become true.
    func callCancellationHandlers() {
        // Each handler is released after its call.
        while let handler = withState({ $0.cancellationHandlers.cancelled() }) { handler() }
    }
}
