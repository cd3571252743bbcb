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

/// Where an operation belongs.
struct Membership {
    /// What the operation is part of.
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
