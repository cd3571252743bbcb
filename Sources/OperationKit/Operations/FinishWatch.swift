import Foundation

/// Notices the end of an operation of any class.
///
/// An `AsyncOperation` tells of its end itself. For others a dependent operation is the only way on all platforms: there
/// is no key-value observing on Linux, and a completion block belongs to its owner. Each of these has a queue of its
/// own, because a queue looks again at all its waiting operations whenever one of them finishes.
final class FinishWatch: FinishObserving, Sendable {
    private let operation: Operation
    private let body: @Sendable () -> Void
    /// One of the library's own, because these free chains of operations without recursion.
    private let watcher: AsyncOperation?

    /// Calls `body` once `operation` is finished and Foundation was told, on a thread of Foundation's choice or the one
    /// that ended it, unless the watch is ended before; at once if that has been so already.
    @discardableResult
    init(_ operation: Operation, body: @escaping @Sendable () -> Void) {
        self.operation = operation
        self.body = body
        if let operation = operation as? AsyncOperation {
            watcher = nil
            if operation.observeFinish(self) != nil { body() }
        } else {
            let watcher = AsyncBlockOperation { finish in
                body()
                finish(nil)
            }
            self.watcher = watcher
            watcher.addDependency(operation)
            OperationQueue().addOperation(watcher)
            watcher.announceReadiness()
        }
    }

    /// Gives up, if the operation has not finished yet, and lets go of it. `body` may be called nevertheless, if it is
    /// finishing just now.
    func end() {
        (operation as? AsyncOperation)?.removeObserver(self)
        watcher?.removeDependency(operation)
        watcher?.cancel()
    }

    func operationFinished(_ operation: AsyncOperation, error: (any Error)?) {
        body()
    }
}
