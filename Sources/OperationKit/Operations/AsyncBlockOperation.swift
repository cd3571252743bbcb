import Foundation

/// An operation whose work is a block that says when it is done.
///
/// ```swift
/// let pause = AsyncBlockOperation { finish in
///     DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { finish() }
/// }
/// ```
///
/// The block runs once, on the thread that starts the operation, unless the operation was cancelled or given an outcome
/// before. It has to call `finish` on every path, with an error or without one for success, from any thread; the first
/// call decides. A `finish` that can never be called, because the last copy was released, ends the operation with
/// ``LostFinishError``. The block is released when the operation finishes.
///
/// Blocks that work for long look at `finish.isCancelled`. Work that can be stopped is stopped by a handler:
///
/// ```swift
/// enum Mail {
///     static func send(_ text: String, done: @escaping @Sendable ((any Error)?) -> Void) -> Progress {
///         Progress(totalUnitCount: 1)   // …
///     }
/// }
///
/// let message = AsyncBlockOperation(name: "message") { finish in
///     let transfer = Mail.send("Hello", done: finish.callAsFunction)
///     finish.onCancel { transfer.cancel() }
/// }
/// ```
public final class AsyncBlockOperation: AsyncOperation, @unchecked Sendable {
    /// A block that starts the work, and calls `finish` when it is done.
    public typealias Block = @Sendable (_ finish: FinishHandle<Void>) -> Void

    private var block: Block?
    private var cancellationHandlers = CancellationHandlers()

    /// Creates an operation that runs a block.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping Block) {
        self.block = block
        super.init()
        self.name = name
    }

    /// Does nothing: the block is run by `start()`.
    public override func main() {}

    override func startWork() {
        lock.withLock { block }?(FinishHandle(of: self))
    }

    override func cancellationTookEffect() {
        callCancellationHandlers()
    }

    override func releaseWork() {
        // Release the block and the handlers after unlocking; their deinitializers may run arbitrary code.
        let discarded = lock.withLock { (block.take(), cancellationHandlers.ended()) }
        withExtendedLifetime(discarded) {}
    }
}

extension AsyncBlockOperation: HandleFinishing {
    func settle(with result: Result<Void, any Error>, onAcceptance: () -> Void) {
        finish(with: result, onAcceptance: onAcceptance)
    }

    func changeCancellationHandlers<Value>(_ body: (inout CancellationHandlers) -> Value) -> Value {
        lock.withLock { body(&cancellationHandlers) }
    }
}
