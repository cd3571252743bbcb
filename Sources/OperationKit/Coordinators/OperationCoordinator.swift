public import Foundation

/// A type that runs operations of any class, with an outcome for each.
///
/// Conform to ``ParallelOperationCoordinator`` or ``SequentialOperationCoordinator``: nothing has to be implemented. To
/// change the strategy, change that word.
///
/// ```swift
/// struct Nightly: ParallelOperationCoordinator {
///     let maxConcurrentOperationCount = 2
/// }
///
/// let backup = ThrowingBlockOperation(name: "backup") { /* … */ }
/// let report = AsyncBlockOperation(name: "report") { finish in finish(nil) }
/// let errors = await Nightly().performOperations([backup, report])
/// assert(errors.allSatisfy { $0 == nil })
/// ```
///
/// The operations run as the children of a ``CompoundOperation``: on a private queue, with their dependencies and, among
/// those that are ready, their priorities. Use a compound where you want one operation and one error, a coordinator
/// where you want an error for each.
public protocol OperationCoordinator {
    /// Receives the result: a slot for each operation, in the order given, with its error or `nil` for success.
    typealias Completion = @Sendable (_ errors: [(any Error)?]) -> Void

    /// The maximum number of operations that run at the same time.
    var maxConcurrentOperationCount: Int { get }

    /// What the first failure means for the other operations, as in a compound. The default is `continueAll`.
    var failurePolicy: FailurePolicy { get }

    /// Runs operations.
    ///
    /// The slot of a ``FailableOperation``, which every ``AsyncOperation`` is, has its error. That of an operation without
    /// one has `CancellationError` if it was cancelled. One that has been started before is left alone, and its slot says
    /// ``CoordinationError/alreadyStarted(operation:coordinator:)``; one that is given again runs once, and its further
    /// slots say ``CoordinationError/givenTwice(operation:coordinator:)``. If operations wait for each other in a
    /// cycle, or one belongs to a compound, all are cancelled, and the slots of those that were to run have the reason. The one
    /// that belongs to a compound is left alone.
    ///
    /// A coordinator may have its own implementation, as a mock does. The form with `await` calls it once, in the task
    /// and on the thread of its caller.
    ///
    /// - Parameters:
    ///   - operations: Operations that are on no queue and in no compound, and have not been started.
    ///   - completion: Called once, on the thread on which the last operation ended. For no operations it is called
    ///     before this method returns, with `[]`; with one ``CoordinationError``
    ///     if the limit is less than 1; nothing runs then.
    func performOperations(_ operations: [Operation], completion: @escaping Completion)
}

/// A coordinator that runs several operations concurrently.
public protocol ParallelOperationCoordinator: OperationCoordinator {}

/// A coordinator that runs one operation after the other: in the order given, except for dependencies and priorities.
public protocol SequentialOperationCoordinator: OperationCoordinator {}

extension ParallelOperationCoordinator {
    /// The number of active processors.
    public var maxConcurrentOperationCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}

extension SequentialOperationCoordinator {
    /// One at a time.
    public var maxConcurrentOperationCount: Int { 1 }
}

extension OperationCoordinator {
    /// Runs all operations, also when some fail.
    public var failurePolicy: FailurePolicy { .continueAll }

    /// Runs operations, as many at the same time as the limit allows.
    public func performOperations(_ operations: [Operation], completion: @escaping Completion) {
        // Before the options are read, which may run another coordinator of this type.
        let request = WorkRequest.taken(by: self, from: CoordinatedRun.$request)
        let run = CoordinatedRun(operations, by: self)
        if let request { request.answer(run) } else { run.start(completion: completion) }
    }

    /// Runs operations, and suspends until all have ended.
    ///
    /// Cancelling the task cancels them, on another thread: `Task.cancel()` may return before they are cancelled, and
    /// calls none of their code. In a task that was cancelled before, they are cancelled before any of them starts. A
    /// coordinator's own ``performOperations(_:completion:)`` is called in any case and waited for; it cannot be
    /// cancelled.
    ///
    /// - Parameter operations: Operations that are on no queue and in no compound, and have not been started.
    /// - Returns: A slot for each operation, in the order given, with its error or `nil` for success. If the limit is
    ///   less than 1, one ``CoordinationError``.
    public nonisolated(nonsending) func performOperations(_ operations: [Operation]) async -> [(any Error)?] {
        let run = AwaitedRun()
        return await withCancellationDelivered {
            run.cancel()
        } during: {
            await withCheckedContinuation { run.start(operations, by: self, continuation: $0) }
        }
    }
}
