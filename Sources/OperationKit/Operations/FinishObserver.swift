import Foundation

/// Notices the end of an operation of any class.
///
/// An `AsyncOperation` tells of its end itself. For others a dependent operation is the only way on all platforms: there
/// is no key-value observing on Linux, and a completion block belongs to its owner.
final class FinishObserver: FinishObserving, Sendable {
    private struct Watch {
        let operation: Operation
        let body: @Sendable () -> Void
        /// `nil` for an `AsyncOperation`.
        var dependent: FinishDependent?
    }

    /// `nil` once the watch is over.
    private let watch: Locked<Watch?>

    /// Calls `body` once `operation` is finished and Foundation was told, on a thread of Foundation's choice or the one
    /// that ended it, unless the watch is ended before; before returning if that has been so already.
    @discardableResult
    init(_ operation: Operation, body: @escaping @Sendable () -> Void) {
        watch = Locked(Watch(operation: operation, body: body))
        if let operation = operation as? AsyncOperation {
            if operation.observeFinish(self) != nil { report() }
        } else {
            let dependent = FinishDependent(on: self)
            watch.withLock { $0?.dependent = dependent }
            dependent.observe(operation)
        }
    }

    /// Gives up, if the operation has not finished yet, and lets go of it. `body` may be called nevertheless, if it is
    /// finishing just now.
    func end() {
        guard let ended = takeWatch() else { return }
        (ended.operation as? AsyncOperation)?.removeObserver(self)
        ended.dependent?.end(ended.operation)
    }

    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Worklist) {
        report()
    }

    /// Ends the watch. What it held is released after unlocking, by the caller.
    private func takeWatch() -> Watch? {
        watch.withLock { $0.take() }
    }

    fileprivate func report() {
        // What is taken is released after the call.
        let ended = takeWatch()
        ended?.body()
        withExtendedLifetime(ended) {}
    }
}

#if canImport(ObjectiveC)
/// An operation that depends on the watched one, and tells when it can begin. Each has a queue of its own, because a queue
/// looks again at all its waiting operations whenever one of them finishes.
private final class FinishDependent: AsyncOperation, @unchecked Sendable {
    private let observer: FinishObserver

    init(on observer: FinishObserver) {
        self.observer = observer
        super.init()
    }

    func observe(_ operation: Operation) {
        addDependency(operation)
        OperationQueue().addOperation(self)
    }

    /// Cancelled first: removing the dependency makes it ready.
    func end(_ operation: Operation) {
        cancel()
        removeDependency(operation)
    }

    override func main() {
        observer.report()
        finish()
    }
}
#else
/// An operation that depends on the watched one, on no queue.
///
/// On Linux an operation that finishes asks each of its dependents whether it `isReady`, on its own thread and without
/// holding a lock. So nothing has to be begun, and no queue looks at those that wait.
///
/// It keeps itself alive until then, because the watched operation holds its dependents unretained.
private final class FinishDependent: Operation, @unchecked Sendable {
    private struct Watch {
        let observer: FinishObserver
        var itself: FinishDependent?
    }

    /// `nil` once the watch is over.
    private let watch: Locked<Watch?>

    init(on observer: FinishObserver) {
        watch = Locked(Watch(observer: observer))
    }

    func observe(_ operation: Operation) {
        watch.withLock { $0?.itself = self }
        // Asks whether it is ready, too.
        addDependency(operation)
    }

    /// An operation that is finishing at this moment has retained it.
    func end(_ operation: Operation) {
        let ended = takeWatch()
        removeDependency(operation)
        withExtendedLifetime(ended) {}
    }

    /// Ends the watch. What it held is released after unlocking, by the caller.
    private func takeWatch() -> Watch? {
        watch.withLock { $0.take() }
    }

    override var isReady: Bool {
        let isReady = super.isReady
        if isReady {
            let ended = takeWatch()
            ended?.observer.report()
            withExtendedLifetime(ended) {}
        }
        return isReady
    }
}
#endif
