import Foundation

/// An operation whose work is a block that says when it is done.
///
/// ```swift
/// let pause = AsyncBlockOperation { finish in
///     DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { finish() }
/// }
/// ```
///
/// The block runs once, on the thread that starts the operation, or on another one if a condition or a resource took
/// time, unless the operation was cancelled or given an outcome before. It has to call `finish` on every path, with an
/// error or without one for success, from any thread; the first call decides. A `finish` that can never be called,
/// because the last copy was released, ends the operation with ``LostFinishError``. The block is released when the
/// operation finishes.
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
        lock.withLock { block }?(FinishHandle(of: self) { self.finish(with: $0, onAcceptance: $1) })
    }

    override func releaseWork() {
        // Released after unlocking; its deinitializers may run arbitrary code.
        _ = lock.withLock { block.take() }
    }
}

/// A synchronous operation whose block may throw: `BlockOperation` with an error.
///
/// The block runs once, on the thread that starts the operation, or on another one if a condition or a resource took
/// time, and the operation finishes when it returns or throws, with the thrown error. If
/// ``AsyncOperation/finish(withError:)`` was called meanwhile, that outcome stands. The block does not run if the
/// operation was cancelled or given an outcome before its start. It is released when the operation finishes.
///
/// A cancellation does not disturb a block that has begun. One that works for long asks for a ``WorkHandle``:
///
/// ```swift
/// let search = ThrowingBlockOperation(name: "search") { work in
///     for page in 1...1_000 where page.isMultiple(of: 7) {
///         try work.checkCancellation()
///     }
/// }
/// ```
public final class ThrowingBlockOperation: AsyncOperation, @unchecked Sendable {
    /// The work.
    public typealias Block = @Sendable () throws -> Void

    private var block: (@Sendable (WorkHandle) throws -> Void)?

    /// Creates an operation that runs a block.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public convenience init(name: String? = nil, _ block: @escaping Block) {
        self.init(name: name) { _ in try block() }
    }

    /// Creates an operation that runs a block, which can see that the operation is cancelled.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping @Sendable (_ work: WorkHandle) throws -> Void) {
        self.block = block
        super.init()
        self.name = name
        deferEnd()
    }

    /// Does nothing: the block is run by `start()`.
    public override func main() {}

    override func startWork() {
        endDeferred(with: Result { try lock.withLock { block }?(WorkHandle(operation: self)) })
    }

    override func releaseWork() {
        // Released after unlocking; its deinitializers may run arbitrary code.
        _ = lock.withLock { block.take() }
    }
}
