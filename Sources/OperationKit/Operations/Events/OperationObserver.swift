/// Is told what happens to operations.
///
/// ```swift
/// final class Logger: OperationObserver {
///     func operation(_ operation: AsyncOperation, finishedWith error: (any Error)?) {
///         print("\(operation.name ?? ""): \(error.map { "\($0)" } ?? "success")")
///     }
/// }
/// ```
///
/// Add an observer to an operation with ``AsyncOperation/addObserver(_:)``, or to all of the process with
/// ``AsyncOperation/addGlobalObserver(_:)``. Implement the methods that you are interested in; the default implementations do
/// nothing. One that is interested in all of them implements ``operation(_:emitted:)`` instead.
///
/// ## When and where the methods are called
///
/// - With no lock held, so a method may use operations freely: cancel, finish and add them, add and remove observers.
/// - For each operation one at a time, in the order in which the events have happened. On the thread on which the event has
///   happened, or on the one that delivers an earlier event of the same operation.
/// - An event that is caused inside a method is delivered after that method has returned. A method that blocks holds up what follows on its
///   thread, and the end of the composites around the operation.
/// - Events of different operations may be delivered at the same time, on different threads.
/// - ``operation(_:finishedWith:)`` comes after `isFinished` has become true, and before that of the composite around it.
public protocol OperationObserver: AnyObject, Sendable {
    /// Called with each event. The default implementation calls the method below that is meant for it.
    func operation(_ operation: AsyncOperation, emitted event: OperationEvent)

    /// Called when an operation has become a child of a composite.
    func operation(_ operation: AsyncOperation, wasAddedTo composite: OperationID)

    /// Called when an operation has started to execute. It may have to wait before its `main()`.
    func operationStarted(_ operation: AsyncOperation)

    /// Called when an operation waits before its `main()`, once for each condition, and for all resources together.
    func operation(_ operation: AsyncOperation, waitsFor reason: String)

    /// Called when the `main()` of an operation is about to be called, or the children of a composite are about to start. If
    /// another thread still delivers an earlier event, `main()` does not wait for that.
    func operationRuns(_ operation: AsyncOperation)

    /// Called when an operation has been cancelled, before its start or later. `isCancelled` is true.
    func operationWasCancelled(_ operation: AsyncOperation)

    /// Called when an attempt of an operation has failed, and another one will follow after the delay.
    func operation(_ operation: AsyncOperation, retriesAfter attempt: Int, error: any Error, delay: Duration)

    /// Called when an operation has finished. No other event of it follows.
    func operation(_ operation: AsyncOperation, finishedWith error: (any Error)?)
}

extension OperationObserver {
    /// Calls the method that is meant for the event.
    public func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .added(let composite, _): self.operation(operation, wasAddedTo: composite)
        case .started: operationStarted(operation)
        case .waiting(let reason): self.operation(operation, waitsFor: reason)
        case .running: operationRuns(operation)
        case .cancelled: operationWasCancelled(operation)
        case .retrying(let attempt, let error, let delay):
            self.operation(operation, retriesAfter: attempt, error: error, delay: delay)
        case .finished(let error): self.operation(operation, finishedWith: error)
        }
    }

    /// Does nothing.
    public func operation(_ operation: AsyncOperation, wasAddedTo composite: OperationID) {}

    /// Does nothing.
    public func operationStarted(_ operation: AsyncOperation) {}

    /// Does nothing.
    public func operation(_ operation: AsyncOperation, waitsFor reason: String) {}

    /// Does nothing.
    public func operationRuns(_ operation: AsyncOperation) {}

    /// Does nothing.
    public func operationWasCancelled(_ operation: AsyncOperation) {}

    /// Does nothing.
    public func operation(_ operation: AsyncOperation, retriesAfter attempt: Int, error: any Error, delay: Duration) {}

    /// Does nothing.
    public func operation(_ operation: AsyncOperation, finishedWith error: (any Error)?) {}
}

/// An observer that is also told that `main()` was still on the stack when its operation finished.
protocol LateReturnObserving: OperationObserver {
    /// Called when the `main()` of an operation that has finished has returned, on its thread. It may come before
    /// ``OperationObserver/operation(_:emitted:)`` with the end, if another thread delivers that.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - nanoseconds: When that was, in the time of events.
    func mainReturned(of operation: AsyncOperation, at nanoseconds: Int64)
}
