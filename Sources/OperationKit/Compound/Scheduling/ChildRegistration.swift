import Foundation

/// A child, and the slot that it has.
struct ChildReference {
    let slot: Int
    let operation: Operation
}

/// What a child says of itself when it is added, or when its composite starts. These properties may be overridden, so they
/// are asked for without the lock.
struct ChildRegistration {
    /// Negative as long as the child has none.
    var slot: Int
    let operation: Operation
    let weight: Int64
    let priority: Operation.QueuePriority
    /// Those of its dependencies that have not finished.
    let unfinished: [Operation]
    /// Whether these do not matter, because of the state that the child has already.
    private(set) var ignoresDependencies: Bool
    let mayHaveDependencies: Bool

    var child: ChildReference { ChildReference(slot: slot, operation: operation) }

    /// Asks a child that is about to be added.
    init(adding operation: Operation, weight: Int64) {
        self.init(ChildReference(slot: -1, operation: operation), weight: weight)
    }

    /// Asks a child that has its slot. If it is about to be cancelled, it only has to end, whatever it depends on.
    init(_ child: ChildReference, weight: Int64 = 1, isCancelled: Bool = false) {
        slot = child.slot
        operation = child.operation
        self.weight = weight
        priority = operation.queuePriority
        let dependencies = operation.dependencies
        unfinished = isCancelled ? [] : dependencies.filter { !$0.isFinished }
        ignoresDependencies = !unfinished.isEmpty && operation.ignoresDependencies
        // A class of another library may depend on something by now, and reach for it after its end.
        mayHaveDependencies = !dependencies.isEmpty || !(operation is AsyncOperation)
    }

    /// Asks once more. A child that was cancelled before it had its slot was not found when it was.
    mutating func updateIgnoresDependencies() {
        ignoresDependencies = ignoresDependencies || !unfinished.isEmpty && operation.ignoresDependencies
    }
}

extension Operation {
    /// Whether it makes no difference to the operation any more what it depends on. Asks the operation, so nothing may be
    /// locked.
    fileprivate var ignoresDependencies: Bool { isCancelled || isExecuting || isFinished }
}
