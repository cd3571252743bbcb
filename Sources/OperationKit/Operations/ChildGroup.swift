import Foundation

/// The children of one composite.
///
/// A composite is created with its group, which does for a composite what a leaf does itself: starts the work, cancels
/// it, knows its progress. The children in turn report to the group. It refers to the composite weakly, and so do
/// children to their group: a composite keeps its group alive, and one that is executing is kept alive by its
/// children's scheduler.
///
/// An operation belongs to one group at most, so its parent is `membership.parent?.operation`, whatever kind of
/// composite that is.
protocol ChildGroup: AnyObject, Sendable {
    /// The composite that the children are part of; `nil` once that is gone, or while the children move to another one.
    var operation: AsyncOperation? { get }

    /// Takes the children away from the composite. They stay together, for another one to take.
    func detach()

    // MARK: Called by the composite

    /// How far the children have come, from 0 to 1.
    var fraction: Double { get }

    /// The total in which the progress of the composite counts, -1 as long as it is not known.
    var unitCount: Int64 { get }

    /// The weight of the children that have ended, and that of all children; `nil` where they have no weights.
    var weightedUnits: (completed: Int64, total: Int64)? { get }

    /// How many children have ended, in words.
    var progressDescription: String? { get }

    /// Starts the children. Called instead of `main()`, on the thread that starts the composite.
    func start()

    /// Keeps children from starting, because all of them are about to be cancelled.
    ///
    /// - Returns: The children, the first time.
    func stopStarting() -> [Operation]

    /// Cancels all children. Called any number of times, on the thread that cancels or finishes the composite. What is
    /// inside of them is left in the list.
    func cancelAll(_ list: inout Trampoline)

    /// Cancels the children of a composite that must not run, waits for them, and then reports
    /// `childrenFinished(_:own:)`.
    func drain()

    /// Called when the progress of the composite is first observed. From then on the group reports every change with
    /// `progressed(to:)`.
    ///
    /// - Returns: The children, whose progress is observed then, too.
    func startReportingProgress() -> [Operation]

    /// Removes and returns the children of a composite that is about to be freed, so that they can be released one by
    /// one.
    func removeAll() -> [Operation]

    /// Returns the object that records what the composite depends on, and keeps it until the composite starts.
    ///
    /// - Returns: `nil` where nothing has to be recorded: the composite has started, or has given its children away, or what
    ///   is inside it are no operations.
    func recordDependencies(of composite: AsyncOperation) -> CompositeDependencies?

    /// The object that records what the composite depends on, if there is one.
    func recordedDependencies(of composite: AsyncOperation) -> CompositeDependencies?

    /// Called once, after `asyncCompletionBlock` and before the composite becomes finished.
    func outcomeWasDelivered()

    /// The children that have not finished, as they are now, at most `count` of them.
    func snapshot(atMost count: Int) -> ChildSnapshot?

    /// The children that have not finished, where they are operations, or `nil` if they take more than `limit` steps to
    /// list.
    func operations(atMost limit: Int) -> [Operation]?

    // MARK: Called by children

    /// Called when a child is cancelled, by the composite or by itself, on the thread that cancels it.
    func childWasCancelled(_ child: Operation)

    /// Called when a child makes progress, if its progress is observed.
    ///
    /// - Returns: The composite and how far it has come now, if it has to report that in turn.
    func childProgressed(_ child: AsyncOperation, to fraction: Double) -> (composite: AsyncOperation, fraction: Double)?
}

/// What an operation is part of.
struct Membership {
    private(set) weak var parent: (any ChildGroup)?

    /// Makes the operation part of a group, or of none, if it belonged to `previous` before.
    ///
    /// - Returns: What it belonged to. It is to be released after unlocking, as this may be the last reference.
    mutating func move(to parent: (any ChildGroup)?, from previous: (any ChildGroup)?) -> (any ChildGroup)? {
        let current = self.parent
        if current === previous { self.parent = parent }
        return current
    }
}

extension Operation {
    /// Makes the operation part of a group, or of none. A foreign operation does not store this.
    ///
    /// - Returns: Whether it belonged to `previous` before. If not, nothing changes. Always `true` for a foreign
    ///   operation.
    func setParent(_ parent: (any ChildGroup)?, from previous: (any ChildGroup)?) -> Bool {
        guard let operation = self as? AsyncOperation else { return true }
        let (current, isLate) = operation.withState { state in
            let isLate = !state.lifecycle.isPending || state.gates?.hasStartedParts == true
            return (state.membership.move(to: parent, from: previous), isLate)
        }
        if current !== previous { return false }
        if isLate, parent != nil { operation.cameInsideLate() }
        return true
    }

    /// Whether the operation is part of a group. `false` for a foreign operation.
    func isPart(of group: any ChildGroup) -> Bool {
        (self as? AsyncOperation)?.withState { $0.membership.parent } === group
    }

    /// The composites that the operation is inside of, the nearest first.
    var enclosingOperations: some Sequence<AsyncOperation> {
        sequence(state: self) { operation in
            guard let next = (operation as? AsyncOperation)?.withState({ $0.membership.parent })?.operation else {
                return nil
            }
            operation = next
            return next
        }
    }
}
