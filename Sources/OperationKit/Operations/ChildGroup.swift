import Foundation

/// The children of one composite.
///
/// A composite is created with its group, which does for a composite what a leaf does itself: starts the work, cancels
/// it, knows its progress. The children in turn report to the group. It refers to the composite weakly, and so do
/// children to their group: a composite keeps its group alive, and one that is executing is kept alive by its
/// children's scheduler.
///
/// An operation belongs to one group at most, so its parent is ``AsyncOperation/enclosingComposite``, whatever kind of
/// composite that is.
protocol ChildGroup: AnyObject, Sendable {
    /// The composite that the children are part of; `nil` once that is gone, or while the children move to another one.
    var operation: AsyncOperation? { get }

    // MARK: Called by the composite

    /// How far the children have come, from 0 to 1.
    var fraction: Double { get }

    /// The total in which the progress of the composite counts, -1 as long as it is not known.
    var unitCount: Int64 { get }

    /// The weight of the children that have ended, and that of all children; `nil` where they have no weights.
    var weightedUnits: OperationProgress.Units? { get }

    /// How many children have ended, in words.
    var progressDescription: String? { get }

    /// Why the children must not run, if that is known before they would.
    func problem(of composite: AsyncOperation) -> (any Error)?

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

    /// What the composite depends on, as far as it is recorded, so that cycles through composites are found.
    ///
    /// - Parameters:
    ///   - composite: The composite.
    ///   - recording: Whether recording begins now, if it has not.
    /// - Returns: `nil` where nothing is recorded: the composite has started, or has given its children away, or what is
    ///   inside it are no operations.
    func dependencies(of composite: AsyncOperation, recording: Bool) -> CompositeDependencies?

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
    func childProgressed(_ child: AsyncOperation, to fraction: Double) -> CompositeFraction?
}

/// A composite, and how far it has come.
typealias CompositeFraction = (composite: AsyncOperation, fraction: Double)

/// Decides what the result of a composite itself is, whose children have all finished.
typealias OwnResult<Value> = (_ isCancelled: Bool, _ reason: (any Error)?) -> Result<Value, any Error>

extension Operation {
    /// The group of a composite, unless it has moved to another one, as the steps of a macro do with `then`: this one is consumed then.
    var ownChildren: (any ChildGroup)? {
        guard let children = (self as? AsyncOperation)?.children, children.operation === self else { return nil }
        return children
    }

    /// Makes the operation part of a group, or of none. A foreign operation does not store this.
    ///
    /// - Parameters:
    ///   - parent: The group.
    ///   - previous: The group before.
    ///   - late: Called if the operation is inside others now, and has started, or something inside it has.
    /// - Returns: Whether it belonged to `previous` before. If not, nothing changes. Always `true` for a foreign
    ///   operation.
    @discardableResult
    func setParent(
        _ parent: (any ChildGroup)?, from previous: (any ChildGroup)?,
        late: (AsyncOperation) -> Void = { $0.cameInsideLate() }
    ) -> Bool {
        guard let operation = self as? AsyncOperation else { return true }
        let (current, isLate) = operation.withState { state in
            // Released after unlocking, as this may be the last reference.
            let current = state.parent
            if current === previous { state.parent = parent }
            return (current, !state.lifecycle.isPending || state.gates?.hasStartedParts == true)
        }
        if current !== previous { return false }
        if parent != nil, isLate { late(operation) }
        return true
    }

    /// Whether the operation is part of a group. `false` for a foreign operation.
    func isPart(of group: any ChildGroup) -> Bool {
        (self as? AsyncOperation)?.parent === group
    }

    /// The composites that the operation is inside of, the nearest first.
    var enclosingOperations: some Sequence<AsyncOperation> {
        sequence(state: (self as? AsyncOperation)?.enclosingComposite) { next in
            defer { next = next?.enclosingComposite }
            return next
        }
    }
}

/// The children of a composite that have not ended, as they were at one moment: for descriptions.
struct ChildSnapshot {
    typealias Child = (operation: Operation, index: Int, stage: Stage)

    /// How far a child has come.
    enum Stage {
        /// It waits for what it depends on, or is not known to be ready yet.
        case waiting
        /// It can start. What it depends on does not matter any more.
        case ready
        /// Handed to the operation queue, which starts it when the operation says that it is ready.
        case queued
        /// It has been started, which its own state may not show yet.
        case started
    }

    /// First those that have started, then the others, both in the order in which they were added.
    var children: [Child]
    /// How many others have not ended.
    var omitted: Int
    /// Remarks on all children together.
    var summary: [String]
    /// What keeps the children from starting that could; `nil` as long as the composite has not started.
    var readyText: String?
}

// What a composite asks its group of children. A leaf has no group.
extension AsyncOperation {
    /// Whether the children have become those of a longer chain.
    var isConsumed: Bool { isComposite && ownChildren == nil }

    /// Cancels the children of a composite that must not run, and waits for them.
    func drainChildren(_ list: inout Trampoline) {
        if let children = ownChildren { return children.drain() }
        childrenFinished(&list) { _, _ in .failure(CancellationError()) }
    }

    /// Reports the result of a composite, once all children have finished.
    ///
    /// - Parameters:
    ///   - list: What follows for other operations.
    ///   - own: The result of the composite itself, which depends on whether it was cancelled, and on the marked reason.
    ///     Called with the lock held, unless a call of `finish` has given an outcome, which wins.
    func childrenFinished(_ list: inout Trampoline, own: OwnResult<Void>) {
        perform(
            withState { state in
                let lifecycle = state.lifecycle
                // One that a call of `finish` has given wins.
                var outcome =
                    lifecycle.acceptsOutcome
                    ? own(lifecycle.isCancelled, lifecycle.markedReason) : .failure(CancellationError())
                // One that was cancelled before its `main()` has not succeeded, even if all children had ended before.
                if !lifecycle.reachedMain, case .success = outcome { outcome = .failure(CancellationError()) }
                return state.lifecycle.drained(with: outcome)
            }, &list)
    }

    /// Ends a leaf whose end is deferred, with an outcome that stands unless a call of `finish` has given another one.
    func endDeferred(with outcome: Lifecycle.Outcome) {
        let outcome = outcome.mapError(\.marked)
        Trampoline.run { childrenFinished(&$0) { _, _ in outcome } }
    }
}
