public import Foundation

extension OperationQueue {
    /// Adds an operation that does not start before some time has passed.
    ///
    /// ```swift
    /// let queue = OperationQueue()
    /// let refresh = TaskOperation(name: "refresh") { 1 }
    /// queue.addOperation(refresh, after: .seconds(30))
    /// ```
    ///
    /// The operation is added immediately, so that `operations` contains it and `cancelAllOperations()` cancels it. It depends on a
    /// ``DelayOperation``, which is not on the queue, and takes no place on it. Cancelling the operation ends both immediately,
    /// or on a suspended queue when it is resumed, because the operation ends when the queue starts it. The time passes while the
    /// queue is suspended, too.
    ///
    /// - Parameters:
    ///   - operation: An operation that was not started and is on no queue.
    ///   - delay: The time from now. With zero, or less, there is no delay.
    ///   - clock: What the time is measured with. `nil` for the ``AsyncOperation/clock`` of the operation, or a `ContinuousClock`.
    /// - Returns: The delay. Cancel it to let the operation start now, unless that has the condition `.noCancelledDependencies`:
    ///   the delay is one of them.
    @discardableResult
    public func addOperation(
        _ operation: Operation, after delay: Duration, clock: (any Clock<Duration>)? = nil
    ) -> DelayOperation {
        let delayOperation = DelayOperation(for: delay, name: "delay of \(operation.displayName)")
        if let clock = clock ?? (operation as? AsyncOperation)?.clock { delayOperation.clock = clock }
        operation.addDependency(delayOperation)
        addOperation(operation)
        operation.announceReadiness()
        delayOperation.start()
        // One that is cancelled ends before its delay, and releases it. A delay must not be released before it has ended.
        FinishObserver(operation) { delayOperation.cancel() }
        return delayOperation
    }
}
