import Foundation

/// An operation whose children a scheduler runs.
protocol Composite: AsyncOperation {
    /// All children have finished, and these failures count. Called once, on the thread on which the last child ended.
    func childrenFinished(failures: [SuboperationError])
}

extension Composite {
    /// Traps if `operation` is the compound or one that it is inside of.
    func requireNotInside(_ operation: Operation) {
        guard operation is CompoundOperation else { return }
        precondition(operation !== self, "OperationKit: the compound “\(displayName)” cannot contain itself")
        precondition(
            !owners.contains { $0 === operation },
            "OperationKit: the compound “\(operation.displayName)” cannot be added to “\(displayName)”, which it contains"
        )
    }

}
