import Foundation

/// An operation whose children a scheduler runs.
protocol Composite: AsyncOperation {
    /// All children have finished, and these failures count. Called once, on the thread on which the last child ended.
    func childrenFinished(failures: [SuboperationError])

    /// Its children that have not ended, as they are now, at most so many; `nil` if there are none yet.
    func snapshot(atMost count: Int) -> ChildSnapshot?
}

extension Composite {
    /// Whether `operation` is the compound itself, or one that it is inside of.
    func isInside(_ operation: Operation) -> Bool {
        (operation as? AsyncOperation)?.isComposite == true
            && (operation === self || enclosingOperations.contains { $0 === operation })
    }

    /// Traps if a compound would contain itself.
    func requireNotInside(_ operation: Operation) {
        precondition(
            !isInside(operation),
            "OperationKit: “\(operation.displayName)” cannot be added to “\(displayName)”: it would contain itself")
    }
}
