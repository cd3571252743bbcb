import Foundation

/// Notices the end of an operation of any class, by a dependent operation.
///
/// The only way on all platforms: there is no key-value observing on Linux, and a completion block belongs to its
/// owner. Each watch has a queue of its own, because a queue looks again at all its waiting operations whenever one of
/// them finishes.
final class FinishWatch: Sendable {
    private let operation: Operation
    /// One of the library's own, because these free chains of operations without recursion.
    private let watcher: AsyncOperation

    /// Calls `body` once `operation` is finished, on a thread of Foundation's choice, unless the watch is ended before.
    @discardableResult
    init(_ operation: Operation, body: @escaping @Sendable () -> Void) {
        self.operation = operation
        watcher = AsyncBlockOperation { finish in
            body()
            finish(nil)
        }
        watcher.addDependency(operation)
        OperationQueue().addOperation(watcher)
        watcher.announceReadiness()
    }

    /// Gives up, if the operation has not finished yet, and lets go of it.
    func end() {
        watcher.removeDependency(operation)
        watcher.cancel()
    }
}
