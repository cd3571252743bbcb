public import Foundation

extension OperationQueue {
    /// Returns a queue that runs one operation at a time, in the order of their priority and addition.
    ///
    /// An asynchronous operation takes its turn until it is finished, not only until its `main()` returns.
    ///
    /// - Parameter name: The name of the queue, for debugging.
    /// - Returns: A new queue.
    public static func serial(name: String) -> OperationQueue {
        let queue = OperationQueue()
        queue.name = name
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    /// Adds an operation that does not start before some time has passed.
    ///
    /// ```swift
    /// let queue = OperationQueue()
    /// let refresh = TaskOperation(name: "refresh") { 1 }
    /// queue.addOperation(refresh, after: .seconds(30))
    /// ```
    ///
    /// The operation is added immediately, so that `operations` contains it and `cancelAllOperations()` cancels it. It depends on a
    /// ``DelayOperation``, which is not on the queue, and takes no place on it. Cancelling the operation ends both as soon
    /// as the queue can start it, because it ends then. The time passes while the queue is suspended, too.
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
        becomesKnown()
        addOperation(operation)
        operation.announceReadiness()
        delayOperation.start()
        // An operation that is cancelled ends before its delay, and the delay ends soon after. Until then the operation must not be
        // released: Foundation notifies it without holding it.
        FinishObserver(operation) { delayOperation.cancel() }
        FinishObserver(delayOperation) { withExtendedLifetime(operation) {} }
        return delayOperation
    }
}

extension Operation {
    /// Makes the operation depend on all of these, as `addDependency(_:)` does one by one.
    ///
    /// Call it before the operation is started or put on a queue. Complexity: Foundation searches the dependencies that
    /// are there at each addition, so n additions to one operation cost O(n²) pointer comparisons.
    ///
    /// - Parameter operations: The operations that have to finish first. Traps if the operation itself is among them.
    public final func addDependencies(_ operations: some Sequence<some Operation>) {
        for operation in operations {
            precondition(operation !== self, "OperationKit: “\(displayName)” cannot depend on itself")
            addDependency(operation)
        }
    }
}
