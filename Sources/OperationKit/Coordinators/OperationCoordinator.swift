public import Foundation

/// A type that runs operations of any class, with an outcome for each.
///
/// Conform to ``ParallelOperationCoordinator`` or ``SequentialOperationCoordinator``: nothing has to be implemented. To
/// change the strategy, change the protocol.
///
/// ```swift
/// struct Nightly: ParallelOperationCoordinator {
///     let maxConcurrentOperationCount = 2
/// }
///
/// let backup = ThrowingBlockOperation(name: "backup") { /* … */ }
/// let report = AsyncBlockOperation(name: "report") { finish in finish() }
/// let errors = await Nightly().performOperations([backup, report])
/// assert(errors.allSatisfy { $0 == nil })
/// ```
///
/// The operations run as the children of a ``CompoundOperation``: on a private queue, with their dependencies and, among
/// those that are ready, their priorities. Use a compound where you want one operation and one error, a coordinator
/// where you want an error for each.
public protocol OperationCoordinator {
    /// Receives the result of a run: an array with one *slot* for each operation, in the order given. The slot has the
    /// error of the operation, or `nil` for success.
    typealias Completion = @Sendable (_ errors: [(any Error)?]) -> Void

    /// The maximum number of operations that run at the same time.
    var maxConcurrentOperationCount: Int { get }

    /// What the first failure means for the other operations, as in a compound. The default is `continueAll`.
    var failurePolicy: FailurePolicy { get }

    /// Runs operations.
    ///
    /// The slot of a ``FailableOperation``, such as every ``AsyncOperation``, has its error. That of an operation of
    /// another class has `CancellationError` if it was cancelled. An operation that was started before is left alone,
    /// and its slot has ``CoordinationError/alreadyStarted(operation:coordinator:)``. One that is given twice runs
    /// once, and its further slots have ``CoordinationError/givenTwice(operation:coordinator:)``.
    ///
    /// If operations wait for each other in a cycle, or if one of them belongs to a compound, none runs. All are
    /// cancelled, except the one that belongs to the compound, and the slots of those that were to run have the reason.
    ///
    /// A coordinator may have its own implementation, as a mock does. The form with `await` calls it once, in the task
    /// and on the thread of its caller.
    ///
    /// - Parameters:
    ///   - operations: Operations that are on no queue and in no compound, and have not been started.
    ///   - completion: Called once, on the thread on which the last operation ended, or on the one that was still in its
    ///     `start()` then. If there are no operations, it is called with `[]` before this method returns. If the limit is less
    ///     than 1, it is called with one ``CoordinationError`` before this method returns, and nothing runs.
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
        let request = RunRequest.taken(by: ObjectIdentifier(type(of: self)))
        let (name, limit) = (String(describing: type(of: self)), maxConcurrentOperationCount)
        if limit < 1 {
            return completion([CoordinationError.invalidLimit(type: name, maxConcurrentOperationCount: limit)])
        }
        let run = CoordinatorRun(operations, name, limit: limit, failurePolicy)
        if let request { request.answer(with: run) } else { run.start(completion: completion) }
    }

    /// Runs operations, and suspends until all have ended.
    ///
    /// Cancelling the task cancels them, on another thread: `Task.cancel()` may return before they are cancelled, and
    /// calls none of their code. In a task that was cancelled before, they are cancelled before any of them starts. A
    /// coordinator's own ``performOperations(_:completion:)`` is called in any case and waited for; it cannot be
    /// cancelled, and has to call its completion.
    ///
    /// - Parameter operations: Operations that are on no queue and in no compound, and have not been started.
    /// - Returns: A slot for each operation, in the order given, with its error or `nil` for success. If the limit is
    ///   less than 1, one ``CoordinationError``.
    public nonisolated(nonsending) func performOperations(_ operations: [Operation]) async -> [(any Error)?] {
        var run: CoordinatorRun?
        let errors = await withCheckedContinuation { continuation in
            let continuation = Locked<CheckedContinuation<[(any Error)?], Never>?>(continuation)
            // The first call counts: a coordinator's own implementation may report its end repeatedly.
            let end: Completion = { errors in
                continuation.withLock { $0.take() }?.resume(returning: errors)
            }
            run = RunRequest.work(of: ObjectIdentifier(type(of: self))) {
                performOperations(operations, completion: end)
            }
            if run != nil { end([]) }
        }
        guard let run else { return errors }
        return await withCancellationDelivered(to: run.cancel) {
            await withCheckedContinuation { continuation in run.start { continuation.resume(returning: $0) } }
        }
    }
}

/// One run of a coordinator: a compound of the operations that can run, and a slot for each operation.
final class CoordinatorRun: @unchecked Sendable {
    /// The operations that run, and why others don't. Changed only in `deinit`.
    private var slots: [Result<Operation, CoordinationError>]
    private let compound: CompoundOperation

    init(_ operations: [Operation], _ name: String, limit: Int, _ failurePolicy: FailurePolicy) {
        var seen = Set<ObjectIdentifier>()
        slots = operations.map { operation in
            if !seen.insert(ObjectIdentifier(operation)).inserted {
                return .failure(.givenTwice(operation: operation.displayName, coordinator: name))
            }
            if operation.hasBeenStarted {
                return .failure(.alreadyStarted(operation: operation.displayName, coordinator: name))
            }
            return .success(operation)
        }
        compound = CompoundOperation(
            name: name, operations: slots.compactMap { try? $0.get() }, maxConcurrentOperationCount: limit,
            failurePolicy: failurePolicy)
    }

    deinit {
        // Releasing the last operation of a chain frees all of it, which must not happen by nested calls.
        var operations = exchange(&slots, with: []).compactMap { try? $0.get() }
        DependencyRelease.release(&operations)
    }

    /// Starts the operations. To be called once.
    ///
    /// - Parameter completion: Called once, with the slots.
    func start(completion: @escaping @Sendable ([(any Error)?]) -> Void) {
        // Not its completion block, which code that is told of the compound may set.
        FinishObserver(compound) { [self] in completion(errors) }
        compound.start()
    }

    /// Cancels the operations, also before the start.
    func cancel() {
        compound.cancel()
    }

    private var errors: [(any Error)?] {
        // A compound that could not run its children has cancelled them, for this reason.
        let reason: (any Error)? =
            switch compound.error as? CompoundOperationError {
            case .suboperationFailure, .cancelled: nil
            default: compound.error
            }
        return slots.map { slot in
            switch slot {
            case .failure(let error):
                return error
            case .success(let operation):
                // It belongs to another compound.
                if !operation.isFinished { return reason ?? CancellationError() }
                let error = operation.endingError
                if let reason, error?.isCancellation == true { return reason }
                return error
            }
        }
    }
}
