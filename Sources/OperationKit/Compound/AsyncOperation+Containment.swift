import Foundation

// A composite starts after its dependencies, and what is inside it starts after the composite. So a composite cannot
// depend on what is inside it, nor be inside itself.
extension AsyncOperation {
    /// The error of adding what is a child already, or may not become one.
    func alreadyAdded(_ operation: Operation) -> CompoundAdditionError {
        .alreadyAdded(operation: operation.displayName, compound: displayName)
    }

    /// The error of waiting for an operation that waits for this one, or is this one.
    func dependencyCycle(through operation: Operation) -> CompoundOperationError {
        .dependencyCycle(
            name: displayName, path: [displayName] + (operation === self ? [] : [operation.displayName]))
    }

    /// Makes the composite depend on an operation, unless that is inside it. Then the composite ends with an error when it is
    /// started.
    ///
    /// Once the composite has started, a dependency has no effect, and is not refused.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - add: Adds the dependency.
    func addDependency(on operation: Operation, _ add: () -> Void) {
        // Recorded before the check, so that another thread that puts the operation inside after the check finds it.
        guard let dependencies = children?.dependencies(of: self, recording: true) else { return add() }
        dependencies.add(operation) {
            if operation.isInside(self) {
                let error = dependencyCycle(through: operation)
                let (isPending, action) = withState { state in
                    state.lifecycle.isPending
                        ? (true, state.lifecycle.finished(with: .failure(error)).action) : (false, nil)
                }
                perform(action)
                if isPending { return }
            }
            add()
        }
    }

    /// The composite itself, or a composite around it, that depends on an operation which has become a child,
    /// or on something inside that operation.
    ///
    /// The search ends at a composite that has started: what is inside that can run, whatever is around it.
    ///
    /// Complexity: O(1) for an operation without children on which no composite depends. Otherwise linear in what is inside
    /// the operation, or in the composites around this one that have not started and their dependencies, whichever takes
    /// fewer steps; in what is inside, if one of these composites depends on a foreign operation that has not finished.
    func waitingOperation(for child: Operation) -> AsyncOperation? {
        let (isPending, parent) = withState { ($0.lifecycle.isPending, $0.parent) }
        guard isPending, parent != nil || recordedDependencies != nil else { return nil }
        guard child.ownChildren != nil else { return firstToWait(for: CollectionOfOne(child)) }
        return child.searchNesting(
            whereInside: { firstToWait(for: $0) }, orAround: stepsOutward(to: child))
    }

    /// What the composite was made to depend on; `nil` if that is nothing, or it has started.
    private var recordedDependencies: CompositeDependencies? { children?.dependencies(of: self, recording: false) }

    /// The composite itself, and those around it, up to the first one that has started.
    private var pendingComposites: some Sequence<AsyncOperation> {
        sequence(first: self, next: \.enclosingComposite).lazy.prefix { $0.withState { $0.lifecycle.isPending } }
    }

    /// The composite itself, or a composite around it, that depends on one of some operations. Neither that one nor one in
    /// between has started.
    private func firstToWait(for operations: some Collection<Operation>) -> AsyncOperation? {
        let waiting = CompositeDependencies.composites(waitingForOneOf: operations)
        if waiting.isEmpty { return nil }
        let identifiers = Set(operations.map(ObjectIdentifier.init))
        return waiting.first { composite in
            let awaited = isInside(composite) ? composite.recordedDependencies?.awaited(by: composite) : nil
            return awaited?.contains { identifiers.contains(ObjectIdentifier($0)) } == true
                && pendingComposites.contains { $0 === composite }
        }
    }

    /// Goes from each of the composites that have not started to what it depends on, and on to what is around that, until
    /// the child is found there.
    private func stepsOutward(to child: Operation) -> some Sequence<NestingStep<AsyncOperation>> {
        var composites = pendingComposites.makeIterator()
        var composite: AsyncOperation?
        var unread: CompositeDependencies?
        var dependencies: [Operation] = []
        var operation: Operation?
        return AnyIterator {
            if let composite, let recorded = unread.take() {
                dependencies = recorded.awaited(by: composite)
                operation = dependencies.popLast()
            }
            guard let current = operation else {
                composite = composites.next()
                guard let composite else { return nil }
                unread = composite.recordedDependencies
                return .next(cost: 1 + (unread?.count ?? 0))
            }
            if let composite, current === child { return .found(composite) }
            // Foreign operations do not know what they are part of.
            guard let current = current as? AsyncOperation else { return .unknown }
            operation = current.enclosingComposite ?? dependencies.popLast()
            return .next(cost: 1)
        }
    }
}

extension Operation {
    /// Whether the operation is another one, or inside that, at any depth.
    ///
    /// Complexity: O(1) if the other one is no composite, or is a child of this one. Otherwise linear in the composites
    /// around this one, or in what is inside the other one, whichever are fewer; in the latter for a foreign operation.
    func isInside(_ other: Operation) -> Bool {
        if self === other { return true }
        guard other.ownChildren != nil else { return false }
        guard let operation = self as? AsyncOperation else { return other.parts.contains { $0 === self } }
        if let children = operation.children, other.isPart(of: children) { return false }
        return other.searchNesting(
            whereInside: { $0.contains { $0 === self } },
            orAround: enclosingOperations.lazy.map { $0 === other ? .found(true) : .next(cost: 1) }) ?? false
    }

    /// Searches composites that are nested for what can be answered from either end: from all that is inside this operation,
    /// or from the composites around another one. Returns the answer of whichever search ends first.
    ///
    /// Where composites are nested thousands deep, one of both is small in most cases: a new operation has few parts, and the
    /// outermost composite has none around it. So the search goes both ways by turns, and costs no more than a multiple of the
    /// shorter one. Putting any number of operations into each other, in any order, then takes O(n log n) steps in all.
    ///
    /// - Parameters:
    ///   - whereInside: Returns the answer from all the parts of this operation: those that ``parts`` returns.
    ///   - steps: The steps outward.
    /// - Returns: The answer; `nil` if there is none.
    fileprivate func searchNesting<Answer>(
        whereInside: ([Operation]) -> Answer?, orAround steps: some Sequence<NestingStep<Answer>>
    ) -> Answer? {
        var steps = steps.makeIterator()
        var limit = 8
        // A step that costs more than is left is taken when the search inside has cost as much.
        var credit = 0
        while true {
            if let parts = parts(atMost: limit) { return whereInside(parts) }
            credit += limit
            while credit > 0 {
                switch steps.next() {
                case .found(let answer)?: return answer
                case .next(let cost)?: credit -= cost
                case .unknown?: return whereInside(parts)
                case nil: return nil
                }
            }
            limit *= 4
        }
    }

    /// The operation itself, and all that is inside it and has not finished, at any depth.
    var parts: [Operation] { parts(atMost: .max) ?? [self] }

    /// The same, or `nil` if they take more than `limit` steps to find.
    func parts(atMost limit: Int) -> [Operation]? {
        var parts = [self]
        var next = 0
        while next < parts.count {
            if let group = parts[next].ownChildren {
                guard let inside = group.operations(atMost: limit - parts.count) else { return nil }
                parts += inside
            }
            next += 1
        }
        return parts
    }
}

/// A step of a search outward through composites that are nested.
enum NestingStep<Answer> {
    case found(Answer)
    /// Nothing was found. The steps up to the next one cost as much as so many operations inside.
    case next(cost: Int)
    /// This cannot be answered from here.
    case unknown
}
