import Foundation

// A composite begins after what it depends on, and what is inside it begins after the composite. So a composite cannot
// depend on what is inside it.
extension Composite {
    /// Whether the composite cannot depend on an operation, because that is inside it. Then it ends with an error when it
    /// is started.
    ///
    /// Once the composite has begun, a dependency has no effect, and is not refused.
    func refusesDependency(on operation: Operation) -> Bool {
        operation.noteAwaitedByComposite()
        let isInside =
            if operation.hasMembership {
                operation.enclosingOperations.contains { $0 === self }
            } else {
                (self as? CompoundOperation)?.noteForeignDependency(operation) ?? false
            }
        guard isInside else { return false }
        let error = CompoundOperationError.dependencyCycle(
            name: displayName, path: [displayName, operation.displayName])
        return finishIfPending(withError: error)
    }

    /// The composite itself, or one that it is inside of, if that depends on an operation that is about to become a
    /// child, or on something inside that.
    ///
    /// Complexity: O(1) unless a composite depends on the operation or on something inside it.
    func waitingOperation(for child: Operation) -> AsyncOperation? {
        let compound = child as? CompoundOperation
        guard compound != nil || !child.hasMembership || child.isAwaitedByComposite else { return nil }
        for operation in CollectionOfOne<AsyncOperation>(self) + Array(enclosingOperations) {
            if child.isAwaitedByComposite, operation.dependsOnPart(of: child) { return operation }
            if let waiting = operation as? CompoundOperation, waiting.dependsOnForeignPart(of: child) { return waiting }
        }
        return nil
    }
}

extension AsyncOperation {
    fileprivate func dependsOnPart(of child: Operation) -> Bool {
        unfinishedDependencies.contains { dependency in
            dependency === child || dependency.enclosingOperations.contains { $0 === child }
        }
    }

    /// Gives an operation its outcome, unless it has been started.
    ///
    /// - Returns: Whether it has not been started.
    fileprivate func finishIfPending(withError error: any Error) -> Bool {
        let action = withState { state -> Lifecycle.Action?? in
            guard state.lifecycle.isPending else { return nil }
            return .some(state.lifecycle.finished(with: .failure(error)).action)
        }
        guard let action else { return false }
        perform(action)
        return true
    }
}

// Operations of other libraries do not know what they are part of, so compounds have to be searched for them.
extension CompoundOperation {
    /// The compound is made to depend on an operation of another library.
    ///
    /// Complexity: linear in the children of the compound, at any depth.
    ///
    /// - Returns: Whether that is inside the compound.
    final func noteForeignDependency(_ operation: Operation) -> Bool {
        lock.withLock { _ = foreignDependencies.insert(ObjectIdentifier(operation)) }
        return foreignParts.contains { $0 === operation }
    }

    /// Whether the compound depends on an operation of another library that is about to become a child, or is inside
    /// one that is.
    ///
    /// Complexity: O(1) if the compound depends on none, or `child` is no compound.
    final func dependsOnForeignPart(of child: Operation) -> Bool {
        let identifiers = lock.withLock { foreignDependencies }
        if identifiers.isEmpty { return false }
        let parts = (child as? CompoundOperation)?.foreignParts ?? [child]
        let known = parts.filter { identifiers.contains(ObjectIdentifier($0)) }
        if known.isEmpty { return false }
        // It may have been removed, and another operation have its place in memory.
        return unfinishedDependencies.contains { dependency in known.contains { $0 === dependency } }
    }

    private var foreignParts: [Operation] {
        var parts: [Operation] = []
        var open = [self]
        while let compound = open.popLast() {
            for operation in compound.children {
                if let inner = operation as? CompoundOperation {
                    open.append(inner)
                } else if !operation.hasMembership {
                    parts.append(operation)
                }
            }
        }
        return parts
    }
}
