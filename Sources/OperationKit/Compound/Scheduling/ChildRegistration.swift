import Foundation

/// A child, and the slot that it has.
struct ChildReference {
    let slot: Int
    let operation: Operation
}

/// The properties of a child, as they are read when it is added, or when its composite starts. They may be overridden,
/// so they are read without the lock.
struct ChildRegistration {
    /// Negative as long as the child has none.
    var slot: Int
    let operation: Operation
    let weight: Int64
    let priority: Operation.QueuePriority
    /// Those of its dependencies that have not finished.
    let unfinished: [Operation]
    /// Whether the child does not wait for these, because it is cancelled, executing or finished already.
    private(set) var ignoresDependencies: Bool
    let mayHaveDependencies: Bool

    var child: ChildReference { ChildReference(slot: slot, operation: operation) }

    /// Reads the properties of a child that is about to be added.
    init(adding operation: Operation, weight: Int64) {
        self.init(ChildReference(slot: -1, operation: operation), weight: weight)
    }

    /// Reads the properties of a child that has its slot. If it is about to be cancelled, it only has to end, whatever
    /// it depends on.
    init(_ child: ChildReference, weight: Int64 = 1, isCancelled: Bool = false) {
        slot = child.slot
        operation = child.operation
        self.weight = weight
        priority = operation.queuePriority
        let dependencies = operation.dependencies
        // Usually none has finished, and no other array is needed.
        let relevant = isCancelled ? [] : dependencies
        unfinished = relevant.contains { $0.isFinished } ? relevant.filter { !$0.isFinished } : relevant
        ignoresDependencies = !unfinished.isEmpty && operation.ignoresDependencies
        // An operation of another class may be given a dependency later, and end before that does.
        mayHaveDependencies = !dependencies.isEmpty || !(operation is AsyncOperation)
    }

    /// Reads this once more: a cancellation that came before the child had its slot could not find it.
    mutating func updateIgnoresDependencies() {
        ignoresDependencies = ignoresDependencies || !unfinished.isEmpty && operation.ignoresDependencies
    }
}

extension Operation {
    /// Whether the operation no longer has to wait for its dependencies. Asks the operation, so callers hold no lock.
    fileprivate var ignoresDependencies: Bool { isCancelled || isExecuting || isFinished }
}
