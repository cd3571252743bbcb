import Foundation

/// The children of one composite, as these children know it: what they belong to, and what they report to.
///
/// An operation belongs to one group at most, and refers to it weakly. So containment is followed from the inside to
/// the outside, through composites of every kind.
protocol ChildGroup: AnyObject {
    /// The composite that the children are part of; `nil` once that is gone.
    var operation: AsyncOperation? { get }

    /// Called when a child is cancelled, by the composite or by itself, on the thread that cancels it.
    func childWasCancelled(_ child: Operation)

    /// Called when a child makes progress, if its progress is observed.
    func childProgressed(_ child: AsyncOperation, to fraction: Double)
}

extension AsyncOperation {
    /// Makes the operation part of a group, or of none.
    ///
    /// - Returns: Whether it belonged to `previous` before. If not, nothing changes.
    final func setParent(_ parent: (any ChildGroup)?, from previous: (any ChildGroup)?) -> Bool {
        // Released after unlocking, as this may be the last reference.
        var current: (any ChildGroup)?
        return withState { state in
            current = state.parent
            guard current === previous else { return false }
            state.parent = parent
            return true
        }
    }

    /// The composite that the operation is part of, the one which that is part of, and so on.
    final var enclosingOperations: some Sequence<AsyncOperation> {
        sequence(first: self) { $0.withState { $0.parent }?.operation }.dropFirst()
    }
}
