import Foundation

/// The children of one composite.
///
/// A composite is created with its group, which answers for the children what a leaf answers itself. The children in turn
/// report to it. It refers to the composite weakly, and so do children to their group: a composite keeps its group alive,
/// and one that is executing is kept alive by its children's scheduler.
///
/// An operation belongs to one group at most. So containment is followed from the inside to the outside, through
/// composites of every kind: the parent of an operation is `membership.parent?.operation`.
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

    /// What the children that have ended weigh, and what all do; `nil` where they have no weights.
    var weightedUnits: (completed: Int64, total: Int64)? { get }

    /// How many children have ended, in words.
    var progressDescription: String? { get }

    /// Starts the children. Called instead of `main()`, on the thread that starts the composite.
    func start()

    /// Keeps children from beginning, because all of them are about to be cancelled.
    ///
    /// - Returns: The children, the first time.
    func stopStarting() -> [Operation]

    /// Cancels all children. Called any number of times, on the thread that cancels or finishes the composite. What is
    /// inside of them is left in the list.
    func cancelAll(_ list: inout Worklist)

    /// Cancels the children of a composite that must not run, waits for them, and then reports
    /// `childrenFinished(_:own:)`.
    func drain()

    /// Called when the progress of the composite is first observed. From then on the group reports every change with
    /// `progressed(to:)`.
    ///
    /// - Returns: The children, whose progress is observed then, too.
    func startReportingProgress() -> [Operation]

    /// Takes the children of a composite to which nothing else refers and which is about to be freed.
    func removeAll() -> [Operation]

    /// Called once, after `asyncCompletionBlock` and before the composite becomes finished.
    func outcomeWasDelivered()

    /// The children that have not finished, as they are now, at most `count` of them.
    func snapshot(atMost count: Int) -> ChildSnapshot?

    /// The children that have not finished, where they are operations.
    var operations: [Operation] { get }

    /// The operations that the composite was made to depend on and that do not know what they are part of.
    var foreignDependencies: Set<ObjectIdentifier> { get }

    /// Adds an operation to ``foreignDependencies``.
    func addForeignDependency(_ operation: Operation)

    // MARK: Called by children

    /// Called when a child is cancelled, by the composite or by itself, on the thread that cancels it.
    func childWasCancelled(_ child: Operation)

    /// Called when a child makes progress, if its progress is observed.
    ///
    /// - Returns: The composite, and how far it has come by that, if it is to report that, too.
    func childProgressed(_ child: AsyncOperation, to fraction: Double) -> (composite: AsyncOperation, fraction: Double)?
}

/// What an operation is part of.
struct Membership {
    private(set) weak var parent: (any ChildGroup)?
    /// Whether a composite has been made to depend on the operation, or on something inside it.
    fileprivate(set) var isAwaitedByComposite = false

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
    /// Makes the operation part of a group, or of none. Operations of other libraries cannot tell.
    ///
    /// - Returns: Whether it belonged to `previous` before. If not, nothing changes.
    func setParent(_ parent: (any ChildGroup)?, from previous: (any ChildGroup)?) -> Bool {
        guard
            let (current, isAwaited) = withMembership({ membership in
                (membership.move(to: parent, from: previous), membership.isAwaitedByComposite)
            })
        else { return true }
        guard current === previous else { return false }
        if isAwaited { parent?.operation?.noteAwaitedByComposite() }
        return true
    }

    /// Whether the operation is part of a group. Operations of other libraries cannot tell.
    func isPart(of group: any ChildGroup) -> Bool {
        guard let parent = withMembership({ $0.parent }) else { return false }
        return parent === group
    }

    /// The composites that the operation is inside of, the nearest first.
    var enclosingOperations: some Sequence<AsyncOperation> {
        sequence(state: self) { operation in
            guard let next = operation.withMembership({ $0.parent })??.operation else { return nil }
            operation = next
            return next
        }
    }

    /// Whether a composite may depend on the operation, or on something inside it. `false` for operations of other
    /// libraries.
    var isAwaitedByComposite: Bool { withMembership { $0.isAwaitedByComposite } ?? false }

    /// A composite depends on the operation.
    func noteAwaitedByComposite() {
        var next: Operation? = self
        while let operation = next {
            let parent = operation.withMembership { membership -> (any ChildGroup)? in
                // Then what the operation is inside of knows, too.
                if membership.isAwaitedByComposite { return nil }
                membership.isAwaitedByComposite = true
                return membership.parent
            }
            next = parent??.operation
        }
    }

    /// Whether the operation knows what it is part of.
    var hasMembership: Bool { self is AsyncOperation || self is ThrowingBlockOperation }

    private func withMembership<Value>(_ body: (inout Membership) -> Value) -> Value? {
        if let operation = self as? AsyncOperation { return operation.withState { body(&$0.membership) } }
        return (self as? ThrowingBlockOperation)?.changeMembership(body)
    }
}
