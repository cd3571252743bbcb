import Foundation

/// An operation whose work is a block that says when it is done.
///
/// ```swift
/// let pause = AsyncBlockOperation { finish in
///     DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { finish(nil) }
/// }
/// ```
///
/// The block runs once, on the thread that starts the operation, unless the operation was cancelled or given an outcome
/// before. It has to call `finish` on every path, with an error or with `nil` for success, from any thread; the first
/// call decides. Blocks that work for long look at `isCancelled`; for work that can be stopped, subclass
/// ``AsyncOperation`` or use ``TaskOperation``. The block is released when the operation finishes.
public final class AsyncBlockOperation: AsyncOperation, @unchecked Sendable {
    /// A block that starts the work, and calls `finish` when it is done.
    public typealias Block = @Sendable (_ finish: @escaping AsyncCompletionBlock) -> Void

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
        let block = lock.withLock { self.block }
        block? { error in self.finish(withError: error) }
    }

    override func releaseWork() {
        var discarded: Block?
        lock.withLock { swap(&discarded, &block) }
    }
}
