import Foundation

/// Notices the end of an operation of any class.
///
/// An `AsyncOperation` tells of its end itself. For others a dependent operation is the only way on all platforms: there
/// is no key-value observing on Linux, and a completion block belongs to its owner.
final class FinishObserver: FinishObserving, @unchecked Sendable {
    private let lock = NSLock()
    /// What is watched; `nil` once the watch is over.
    private var operation: Operation?
    private var body: (@Sendable () -> Void)?
    /// `nil` for an `AsyncOperation`.
    private var dependent: FinishDependent?

    /// Calls `body` once `operation` is finished and Foundation was told, on a thread of Foundation's choice or the one
    /// that ended it, unless the watch is ended before; before returning if that has been so already.
    @discardableResult
    init(_ operation: Operation, body: @escaping @Sendable () -> Void) {
        self.operation = operation
        self.body = body
        if let operation = operation as? AsyncOperation {
            if operation.observeFinish(self) != nil { report() }
        } else {
            let dependent = FinishDependent(on: self)
            self.dependent = dependent
            dependent.observe(operation)
        }
    }

    /// Gives up, if the operation has not finished yet, and lets go of it. `body` may be called nevertheless, if it is
    /// finishing just now.
    func end() {
        let (operation, dependent, body) = takeAll()
        guard let operation else { return }
        (operation as? AsyncOperation)?.removeObserver(self)
        dependent?.end(operation)
        withExtendedLifetime(body) {}
    }

    func operationFinished(_ operation: AsyncOperation, error: (any Error)?) {
        report()
    }

    /// Ends the watch. What it held is released after unlocking, by the caller.
    private func takeAll() -> (Operation?, FinishDependent?, (@Sendable () -> Void)?) {
        lock.withLock { (operation.take(), dependent.take(), body.take()) }
    }

    fileprivate func report() {
        // What is taken is released after the call.
        let (operation, dependent, body) = takeAll()
        body?()
        withExtendedLifetime((operation, dependent)) {}
    }
}

#if canImport(ObjectiveC)
/// An operation that depends on the watched one, and tells when it can begin. Each has a queue of its own, because a queue
/// looks again at all its waiting operations whenever one of them finishes.
private final class FinishDependent: AsyncOperation, @unchecked Sendable {
    private let watch: FinishObserver

    init(on watch: FinishObserver) {
        self.watch = watch
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
        watch.report()
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
    private let lock = NSLock()
    private var watch: FinishObserver?
    private var itself: FinishDependent?

    init(on watch: FinishObserver) {
        self.watch = watch
    }

    func observe(_ operation: Operation) {
        itself = self
        // Asks whether it is ready, too.
        addDependency(operation)
    }

    /// An operation that is finishing at this moment has retained it.
    func end(_ operation: Operation) {
        let held = takeAll()
        removeDependency(operation)
        withExtendedLifetime(held) {}
    }

    /// Ends the watch. What it held is released after unlocking, by the caller.
    private func takeAll() -> (FinishObserver?, FinishDependent?) {
        lock.withLock { (watch.take(), itself.take()) }
    }

    override var isReady: Bool {
        let isReady = super.isReady
        if isReady {
            let (watch, itself) = takeAll()
            watch?.report()
            withExtendedLifetime(itself) {}
        }
        return isReady
    }
}
#endif
