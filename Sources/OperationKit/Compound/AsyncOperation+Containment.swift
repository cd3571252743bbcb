import Foundation

// A composite starts after its dependencies, and what is inside it starts after the composite. So a composite cannot
// depend on what is inside it, nor be inside itself.
extension AsyncOperation {
    /// Whether `operation` is this composite, or one that it is inside of.
    final func isInside(_ operation: Operation) -> Bool {
        (operation as? AsyncOperation)?.children != nil
            && (operation === self || enclosingOperations.contains { $0 === operation })
    }

    /// Traps if a composite would contain itself.
    final func requireNotInside(_ operation: Operation) {
        precondition(
            !isInside(operation),
            "OperationKit: “\(operation.displayName)” cannot be added to “\(displayName)”: it would contain itself")
    }

    /// Checks an operation that a closure of this composite has made while that runs, and that it is about to wait for.
    ///
    /// - Throws: ``CompoundAdditionError``, if the composite is inside the operation, or may be: one that executes and is a
    ///   composite itself waits for its children, so both would wait for each other.
    final func requireOutside(_ operation: AsyncOperation) throws {
        if isInside(operation) || operation.children != nil && operation.isExecuting {
            throw CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: displayName)
        }
    }

    /// Whether the composite cannot depend on an operation, because that is inside it. Then it ends with an error when it
    /// is started.
    ///
    /// Once the composite has started, a dependency has no effect, and is not refused.
    final func refusesDependency(on operation: Operation, _ children: any ChildGroup) -> Bool {
        operation.noteAwaitedByComposite()
        let isInside =
            if operation.hasMembership {
                operation.enclosingOperations.contains { $0 === self }
            } else {
                hasForeignPart(operation, children)
            }
        guard isInside else { return false }
        let error = CompoundOperationError.dependencyCycle(
            name: displayName, path: [displayName, operation.displayName])
        return finishIfPending(withError: error)
    }

    /// The composite itself, or a composite around it, that depends on an operation which is about to become a child,
    /// or on something inside that operation.
    ///
    /// Complexity: O(1) unless a composite depends on the operation or on something inside it.
    final func waitingOperation(for child: Operation) -> AsyncOperation? {
        let composite = (child as? AsyncOperation)?.children
        guard composite != nil || !child.hasMembership || child.isAwaitedByComposite else { return nil }
        for operation in CollectionOfOne<AsyncOperation>(self) + Array(enclosingOperations) {
            if child.isAwaitedByComposite, operation.dependsOnPart(of: child) { return operation }
            if operation.dependsOnForeignPart(of: child) { return operation }
        }
        return nil
    }

    /// Complexity: linear in the children of the composite, at any depth.
    private func hasForeignPart(_ operation: Operation, _ children: any ChildGroup) -> Bool {
        children.addForeignDependency(operation)
        return foreignParts.contains { $0 === operation }
    }

    private func dependsOnPart(of child: Operation) -> Bool {
        unfinishedDependencies.contains { dependency in
            dependency === child || dependency.enclosingOperations.contains { $0 === child }
        }
    }

    /// Whether the composite depends on a foreign operation that is about to become a child, or is inside one that is.
    ///
    /// Complexity: O(1) if the composite depends on none.
    private func dependsOnForeignPart(of child: Operation) -> Bool {
        let identifiers = children?.foreignDependencies ?? []
        if identifiers.isEmpty { return false }
        let parts = child.foreignParts.filter { identifiers.contains(ObjectIdentifier($0)) }
        if parts.isEmpty { return false }
        // The dependency may have been removed, and another operation may have its address.
        return unfinishedDependencies.contains { dependency in parts.contains { $0 === dependency } }
    }

    /// Gives an operation its outcome, unless it has been started.
    ///
    /// - Returns: Whether it has not been started.
    private func finishIfPending(withError error: any Error) -> Bool {
        let action = withState { state -> Lifecycle.Action?? in
            guard state.lifecycle.isPending else { return nil }
            return .some(state.lifecycle.finished(with: .failure(error)).action)
        }
        guard let action else { return false }
        perform(action)
        return true
    }
}

extension Operation {
    /// The foreign operations among the children, at any depth, or the operation itself if it is one. Foreign
    /// operations do not know what they are part of, so composites have to be searched for them.
    ///
    /// Complexity: linear in the children of the operation, at any depth.
    var foreignParts: [Operation] {
        var parts: [Operation] = []
        var open = [self]
        while let operation = open.popLast() {
            if let children = (operation as? AsyncOperation)?.ownChildren {
                open += children.operations
            } else if !operation.hasMembership {
                parts.append(operation)
            }
        }
        return parts
    }
}
