import Foundation

/// One run of a coordinator: a compound of the operations that can run, and a slot for each operation.
final class CoordinatedRun: @unchecked Sendable {
    /// The operations that run, and why others don't. Changed only in `deinit`.
    private var slots: [Result<Operation, CoordinationError>]
    private let compound: CompoundOperation
    private let invalidLimit: CoordinationError?

    init(_ operations: [Operation], by coordinator: some OperationCoordinator) {
        let name = String(describing: type(of: coordinator))
        let limit = coordinator.maxConcurrentOperationCount
        invalidLimit = limit < 1 ? .invalidLimit(type: name, maxConcurrentOperationCount: limit) : nil
        var seen = Set<ObjectIdentifier>()
        slots = operations.map { operation in
            if !seen.insert(ObjectIdentifier(operation)).inserted {
                return .failure(.givenTwice(operation: operation.displayName, coordinator: name))
            }
            if operation.isExecuting || operation.isFinished {
                return .failure(.alreadyStarted(operation: operation.displayName, coordinator: name))
            }
            return .success(operation)
        }
        compound = CompoundOperation(
            name: name, operations: invalidLimit == nil ? slots.compactMap { try? $0.get() } : [],
            maxConcurrentOperationCount: max(limit, 1), failurePolicy: coordinator.failurePolicy)
    }

    deinit {
        // Releasing the last operation of a chain frees all of it, which must not happen by nested calls.
        var operations = exchange(&slots, with: []).compactMap { try? $0.get() }
        DependencyRelease.release(&operations)
    }

    /// Starts the operations. To be called once.
    ///
    /// - Parameters:
    ///   - waiter: The task that waits for the run, and cancels it.
    ///   - completion: Called once, with the slots.
    func start(for waiter: CoordinationWaiter?, completion: @escaping @Sendable ([(any Error)?]) -> Void) {
        if let invalidLimit { return completion([invalidLimit]) }
        compound.asyncCompletionBlock = { [self] error in completion(errors(compoundError: error)) }
        waiter?.attach(compound)
        compound.start()
    }

    private func errors(compoundError: (any Error)?) -> [(any Error)?] {
        // A compound that could not run its children has cancelled them, for this reason.
        let reason: (any Error)? =
            switch compoundError as? CompoundOperationError {
            case .suboperationFailure, .cancelled: nil
            case .dependencyCycle, nil: compoundError
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

/// A task that waits for a coordinator, and cancels the run when it is cancelled.
///
/// The default `performOperations(_:completion:)` finds it in a task-local value. A coordinator's own implementation does not
/// look, and cannot be cancelled.
final class CoordinationWaiter: Sendable {
    private struct State {
        /// The run, until it is finished.
        weak var compound: CompoundOperation?
        var isTaken = false
        var isCancelled = false
    }

    @TaskLocal private static var current: CoordinationWaiter?

    private let coordinator: ObjectIdentifier
    private let state = Locked(State())

    init(for coordinator: some OperationCoordinator) {
        self.coordinator = ObjectIdentifier(type(of: coordinator))
    }

    /// Calls the requirement.
    func call(_ body: () -> Void) {
        CoordinationWaiter.$current.withValue(self, operation: body)
        // Tasks that were created during the call keep this.
        state.withLock { $0.isTaken = true }
    }

    /// Returns what waits for the current call of a coordinator.
    static func taken(by coordinator: some OperationCoordinator) -> CoordinationWaiter? {
        guard let current, current.coordinator == ObjectIdentifier(type(of: coordinator)) else { return nil }
        return current.state.withLock { exchange(&$0.isTaken, with: true) } ? nil : current
    }

    func attach(_ compound: CompoundOperation) {
        let isCancelled = state.withLock { state in
            state.compound = compound
            return state.isCancelled
        }
        if isCancelled { compound.cancel() }
    }

    /// Cancels the run, also one that has not started.
    func cancel() {
        let compound = state.withLock { state in
            state.isCancelled = true
            return state.compound
        }
        compound?.cancel()
    }
}
