public import Foundation

/// A type that runs operations of any class, and says for each how it ended.
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
    /// Takes the result: a slot for each operation, in the order given, with its error or `nil` for success.
    typealias Completion = @Sendable (_ errors: [(any Error)?]) -> Void

    /// How many operations run at once.
    var maxConcurrentOperationCount: Int { get }

    /// What the first failure means for the other operations, as in a compound. The default is `continueAll`.
    var failurePolicy: CompoundOperation.FailurePolicy { get }

    /// Runs operations.
    ///
    /// The slot of a ``FailableOperation``, which every ``AsyncOperation`` is, has its error. That of an operation without
    /// one has `CancellationError` if it was cancelled. One that has been started before is left alone, and its slot says
    /// ``CoordinationError/alreadyStarted(operation:coordinator:)``; one that is given again runs once, and its further
    /// slots say ``CoordinationError/givenTwice(operation:coordinator:)``. If operations wait for each other in a
    /// cycle, or one belongs to a compound, all are cancelled, and the slots of those that were to run tell why. The one
    /// that belongs to a compound is left alone.
    ///
    /// - Parameters:
    ///   - operations: Operations that nobody else starts.
    ///   - completion: Called once, on the thread on which the last operation ended. For no operations it is called
    ///     before this method returns, with `[]`; so it is with one ``CoordinationError`` if the limit is less than 1,
    ///     and then nothing is run.
    func performOperations(_ operations: [Operation], completion: @escaping Completion)
}

/// A coordinator that runs several operations at once.
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
    /// All operations run, also when some fail.
    public var failurePolicy: CompoundOperation.FailurePolicy { .continueAll }

    /// Runs operations, as many at once as the limit allows.
    public func performOperations(_ operations: [Operation], completion: @escaping Completion) {
        Coordination(operations, by: self).run(completion: completion)
    }

    /// Runs operations, and suspends until all have ended.
    ///
    /// Cancelling the task cancels them, on another thread: `Task.cancel()` may return before they are cancelled, and
    /// calls none of their code. In a task that was cancelled before, they are cancelled before any of them begins.
    ///
    /// - Parameter operations: Operations that nobody else starts.
    /// - Returns: A slot for each operation, in the order given, with its error or `nil` for success. If the limit is
    ///   less than 1, one ``CoordinationError``.
    public nonisolated(nonsending) func performOperations(_ operations: [Operation]) async -> [(any Error)?] {
        let coordination = Coordination(operations, by: self)
        return await withCancellationDelivered {
            coordination.cancel()
        } during: {
            await withCheckedContinuation { continuation in
                coordination.run { continuation.resume(returning: $0) }
            }
        }
    }
}

/// Operations that are run together, and what becomes of each.
private final class Coordination: @unchecked Sendable {
    private enum Part {
        case runs(Operation)
        case refused(CoordinationError)
    }

    /// Changed only when it is freed.
    private var parts: [Part]
    private let compound: CompoundOperation
    private let invalid: CoordinationError?

    init(_ operations: [Operation], by coordinator: some OperationCoordinator) {
        let name = String(describing: type(of: coordinator))
        let limit = coordinator.maxConcurrentOperationCount
        invalid = limit < 1 ? .invalidLimit(type: name, maxConcurrentOperationCount: limit) : nil
        var seen = Set<ObjectIdentifier>()
        let parts = operations.map { operation -> Part in
            if !seen.insert(ObjectIdentifier(operation)).inserted {
                return .refused(.givenTwice(operation: operation.displayName, coordinator: name))
            }
            if operation.isExecuting || operation.isFinished {
                return .refused(.alreadyStarted(operation: operation.displayName, coordinator: name))
            }
            return .runs(operation)
        }
        self.parts = parts
        let children = parts.compactMap { if case .runs(let operation) = $0 { operation } else { nil } }
        compound = CompoundOperation(
            name: name, operations: invalid == nil ? children : [],
            maxConcurrentOperationCount: max(limit, 1), failurePolicy: coordinator.failurePolicy)
    }

    deinit {
        // Whoever frees the end of a chain frees all of it, and nobody is to do so by nested calls.
        var operations = parts.compactMap { if case .runs(let operation) = $0 { operation } else { nil } }
        parts = []
        DependencyRelease.release(&operations)
    }

    func run(completion: @escaping @Sendable ([(any Error)?]) -> Void) {
        if let invalid { return completion([invalid]) }
        compound.asyncCompletionBlock = { [self] error in completion(errors(of: error)) }
        compound.start()
    }

    func cancel() {
        compound.cancel()
    }

    /// - Parameter error: That of the compound.
    private func errors(of error: (any Error)?) -> [(any Error)?] {
        // Where the compound could not run its children, it cancelled them.
        let obstacle: (any Error)? =
            switch error as? CompoundOperationError {
            case .suboperationFailure, .cancelled: nil
            case .dependencyCycle, nil: error
            }
        return parts.map { part in
            switch part {
            case .refused(let error):
                return error
            case .runs(let operation):
                let error = operation.endingError
                if let obstacle, !operation.isFinished || Self.isCancellation(error) { return obstacle }
                return error
            }
        }
    }

    private static func isCancellation(_ error: (any Error)?) -> Bool {
        switch error {
        case is CancellationError: true
        case CompoundOperationError.cancelled(_, let errors, nil)?: errors.isEmpty
        default: false
        }
    }
}
