import Foundation

/// One run of a coordinator: a compound of the operations that can run, and a slot for each operation.
final class CoordinatedRun: @unchecked Sendable {
    private enum Slot {
        case runs(Operation)
        case rejected(CoordinationError)

        var operation: Operation? {
            if case .runs(let operation) = self { operation } else { nil }
        }
    }

    /// Changed only in `deinit`.
    private var slots: [Slot]
    private let compound: CompoundOperation
    private let invalidLimit: CoordinationError?

    init(_ operations: [Operation], by coordinator: some OperationCoordinator) {
        let name = String(describing: type(of: coordinator))
        let limit = coordinator.maxConcurrentOperationCount
        invalidLimit = limit < 1 ? .invalidLimit(type: name, maxConcurrentOperationCount: limit) : nil
        var seen = Set<ObjectIdentifier>()
        slots = operations.map { operation in
            if !seen.insert(ObjectIdentifier(operation)).inserted {
                return .rejected(.givenTwice(operation: operation.displayName, coordinator: name))
            }
            if operation.isExecuting || operation.isFinished {
                return .rejected(.alreadyStarted(operation: operation.displayName, coordinator: name))
            }
            return .runs(operation)
        }
        compound = CompoundOperation(
            name: name, operations: invalidLimit == nil ? slots.compactMap(\.operation) : [],
            maxConcurrentOperationCount: max(limit, 1), failurePolicy: coordinator.failurePolicy)
    }

    deinit {
        // Releasing the last operation of a chain frees all of it, which must not happen by nested calls.
        var operations = exchange(&slots, with: []).compactMap(\.operation)
        DependencyRelease.release(&operations)
    }

    /// Starts the operations. To be called once.
    func start(completion: @escaping @Sendable ([(any Error)?]) -> Void) {
        if let invalidLimit { return completion([invalidLimit]) }
        compound.asyncCompletionBlock = { [self] error in completion(errors(compoundError: error)) }
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
            case .rejected(let error):
                return error
            case .runs(let operation):
                let error = operation.endingError
                if let reason, !operation.isFinished || error?.isCancellation == true { return reason }
                return error
            }
        }
    }
}
