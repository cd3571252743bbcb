/// Receives the events of operations.
///
/// ```swift
/// final class Logger: OperationObserver {
///     func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
///         switch event.kind {
///         case .waiting(let reason): print("\(event.name) is \(reason)")
///         case .finished(let error?): print("\(event.name) failed: \(error)")
///         default: break
///         }
///     }
/// }
/// ```
///
/// Add an observer to an operation with ``AsyncOperation/addObserver(_:)``, or to all of the process with
/// ``AsyncOperation/addGlobalObserver(_:)``.
public protocol OperationObserver: AnyObject, Sendable {
    /// Called with each event of an operation.
    ///
    /// - With no lock held, so this method may use operations freely: cancel, finish and add them, add and remove observers.
    /// - For each operation one event at a time, in the order in which they have happened: on the thread on which the event has
    ///   happened, or on the one that delivers an earlier event of the same operation. Events of different operations may be delivered
    ///   at the same time, on different threads.
    /// - An event that is caused inside this method is delivered after the method has returned.
    /// - ``OperationEvent/Kind/finished(error:)`` comes after `isFinished` has become true. No other event of the operation follows.
    ///
    /// A method that blocks holds up its thread, which may be that of the operation.
    ///
    /// - Parameters:
    ///   - operation: The operation that the observer was added to, or one inside it.
    ///   - event: What has happened to it.
    func operation(_ operation: AsyncOperation, emitted event: OperationEvent)
}
