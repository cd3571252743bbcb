import Foundation

// A composite starts after its dependencies, and what is inside it starts after the composite. So a composite cannot
// depend on what is inside it, nor be inside itself.
extension AsyncOperation {
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
    final func refusesDependency(on operation: Operation) -> Bool {
        guard operation.isInside(self) else {
            CompositeDependencies.shared.insert(self, waitingFor: operation)
            return false
        }
        let error = CompoundOperationError.dependencyCycle(
            name: displayName, path: [displayName, operation.displayName])
        return finishIfPending(withError: error)
    }

    /// The composite itself, or a composite around it, that depends on an operation which is about to become a child,
    /// or on something inside that operation.
    ///
    /// A composite that has started waits for nothing any more, and then neither does what is around it.
    ///
    /// Complexity: O(1) for an operation without children on which no composite depends. Otherwise linear in what is inside
    /// the operation, or in the composites around this one that have not started and their dependencies, whichever takes
    /// fewer steps.
    final func waitingOperation(for child: Operation) -> AsyncOperation? {
        guard withState({ $0.lifecycle.isPending }) else { return nil }
        return NestingSearch.first(
            inside: child, whereInside: { firstToWait(for: $0) },
            orAround: pendingComposites, whereAround: { $0.dependsOnPart(of: child) ? $0 : nil }
        )
    }

    /// The composite itself, and those around it, up to the first one that has started.
    private var pendingComposites: some Sequence<AsyncOperation> {
        sequence(state: self as AsyncOperation?) { next in
            guard let operation = next else { return nil }
            let (isPending, parent) = operation.withState { ($0.lifecycle.isPending, $0.membership.parent) }
            next = parent?.operation
            return isPending ? operation : nil
        }
    }

    /// The composite itself, or a composite around it, that depends on one of some operations and has not started.
    private func firstToWait(for operations: [Operation]) -> AsyncOperation? {
        CompositeDependencies.shared.composites(waitingForOneOf: operations).first { composite in
            isInside(composite) && composite.withState { $0.lifecycle.isPending }
                && composite.dependsOnOne(of: operations)
        }
    }

    private func dependsOnOne(of operations: [Operation]) -> Bool {
        let identifiers = Set(operations.map { ObjectIdentifier($0) })
        return unfinishedDependencies.contains { identifiers.contains(ObjectIdentifier($0)) }
    }

    private func dependsOnPart(of child: Operation) -> Bool {
        let dependencies = unfinishedDependencies
        if dependencies.contains(where: { $0.hasMembership && $0.isInside(child) }) { return true }
        // Foreign operations do not know what they are part of.
        return !dependencies.allSatisfy(\.hasMembership) && dependsOnOne(of: child.parts)
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
    /// Whether the operation is another one, or inside that, at any depth.
    ///
    /// Complexity: O(1) if the other one is no composite, or is a child of this one. Otherwise linear in the composites
    /// around this one, or in what is inside the other one, whichever are fewer; in the latter for a foreign operation.
    final func isInside(_ other: Operation) -> Bool {
        if self === other { return true }
        guard (other as? AsyncOperation)?.ownChildren != nil else { return false }
        guard hasMembership else { return other.parts.contains { $0 === self } }
        if let children = (self as? AsyncOperation)?.children, other.isPart(of: children) { return false }
        return NestingSearch.first(
            inside: other, whereInside: { $0.contains { $0 === self } },
            orAround: enclosingOperations, whereAround: { $0 === other ? true : nil }) ?? false
    }
}
