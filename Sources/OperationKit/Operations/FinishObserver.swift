package import Foundation

/// Notices the end of an operation of any class.
///
/// An `AsyncOperation` notifies its observers itself. For others a dependent operation is the only way on all
/// platforms: there is no key-value observing on Linux, and a completion block belongs to its owner.
package final class FinishObserver: FinishObserving, Sendable {
    private struct Watch {
        let operation: Operation?
        let body: @Sendable () -> Void
        /// `nil` for an `AsyncOperation`.
        var dependent: EndDependent?
    }

    /// `nil` once the watch is over.
    private let watch: Locked<Watch?>

    /// Calls `body` once, after `operation` has finished and Foundation was notified: on the thread that ended it, or
    /// on one of Foundation's choice. If it has finished already, `body` is called before this returns. It is not
    /// called if ``end()`` comes first.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - isHeld: Whether it is kept alive until then. Pass `false` for an `AsyncOperation` that observes itself before its start.
    ///   - body: What is called.
    @discardableResult
    package init(_ operation: Operation, isHeld: Bool = true, body: @escaping @Sendable () -> Void) {
        watch = Locked(Watch(operation: isHeld ? operation : nil, body: body))
        if let operation = operation as? AsyncOperation {
            if operation.observeFinish(self) != nil { report() }
        } else {
            let dependent = EndDependent()
            watch.withLock { $0?.dependent = dependent }
            dependent.observe(operation) { self.report() }
        }
    }

    /// Ends the watch, if the operation has not finished yet, and releases the operation. `body` may still be called if
    /// the operation is finishing at this moment.
    func end() {
        guard let ended = watch.withLock({ $0.take() }), let operation = ended.operation else { return }
        (operation as? AsyncOperation)?.withState { _ = $0.observers.remove(self) }
        ended.dependent?.end(operation)
    }

    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) {
        report()
    }

    private func report() {
        // What is taken is released after the call.
        let ended = watch.withLock { $0.take() }
        ended?.body()
        withExtendedLifetime(ended) {}
    }
}

extension Operation {
    /// Keeps an operation that is not going to be started until what it depends on has ended. On Linux that notifies it then, without
    /// holding it.
    package func holdUntilDependenciesEnd() {
        for dependency in dependencies { FinishObserver(dependency) { withExtendedLifetime(self) {} } }
    }

    /// Removes the dependencies of an operation that has ended, perhaps before them, because it was cancelled. On Linux,
    /// operations refer to their dependents unretained, and would access this one when they finish. Those that read as
    /// finished are removed too: Foundation may not have been notified of their end yet.
    func detachFromDependencies() {
        for dependency in dependencies { removeDependency(dependency) }
    }
}

#if canImport(ObjectiveC)
/// An operation that depends on another one, and reports when it can start. Each has a queue of its own, because a
/// queue checks all its waiting operations whenever one of them finishes.
final class EndDependent: AsyncOperation, @unchecked Sendable {
    private var report: (@Sendable () -> Void)?

    func observe(_ operation: Operation, _ report: @escaping @Sendable () -> Void) {
        self.report = report
        hideFromObservers()
        addDependency(operation)
        PrivateQueue().addOperation(self)
    }

    /// Cancelled first: removing the dependency makes it ready.
    func end(_ operation: Operation) {
        cancel()
        removeDependency(operation)
    }

    override func main() {
        report?()
        finish()
    }
}
#else
/// An operation that depends on another one, on no queue, to notice its end.
///
/// On Linux an operation that finishes asks each of its dependents whether it `isReady`, on its own thread and without
/// holding a lock. So the dependent need not be started, nor be on a queue.
///
/// It keeps itself alive until then, because the other operation holds its dependents unretained.
final class EndDependent: Operation, @unchecked Sendable {
    private let ends = AtomicCounter()
    private var report: (@Sendable () -> Void)?

    /// Calls a closure once, on the thread that ends the operation.
    func observe(_ operation: Operation, _ report: @escaping @Sendable () -> Void) {
        self.report = report
        _ = unsafe Unmanaged.passRetained(self)
        // Foundation also asks here whether it is ready, in case the operation has finished.
        addDependency(operation)
    }

    /// Ends the watch. An operation that is finishing at this moment has retained the dependent.
    func end(_ operation: Operation) {
        let isFirst = ends.add(1) == 1
        removeDependency(operation)
        if isFirst { unsafe Unmanaged.passUnretained(self).release() }
    }

    override var isReady: Bool {
        guard super.isReady else { return false }
        if ends.add(1) == 1 {
            report?()
            unsafe Unmanaged.passUnretained(self).release()
        }
        return true
    }
}
#endif
