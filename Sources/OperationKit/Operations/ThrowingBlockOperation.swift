/// A synchronous operation whose block may throw: `BlockOperation` with an error.
///
/// The block runs once, on the thread that starts the operation, and the operation finishes when it returns or throws, with the
/// thrown error. If ``AsyncOperation/finish(withError:)`` was called meanwhile, that outcome stands. The block does not run if the
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
    private var cancellationHandlers = CancellationHandlers()

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
        guard let block = lock.withLock({ block }) else { return }
        endDeferred(with: Result { try block(WorkHandle(operation: self)) }.mapError { replacedByReason($0) })
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

extension ThrowingBlockOperation: CancellableWork {
    func changeCancellationHandlers<Value>(_ body: (inout CancellationHandlers) -> Value) -> Value {
        lock.withLock { body(&cancellationHandlers) }
    }
}
