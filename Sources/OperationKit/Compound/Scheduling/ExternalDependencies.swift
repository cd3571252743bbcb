import Foundation

/// An operation that is no child, but that children wait for. It has a slot in the ``ChildTable``, as children have,
/// and may become a child later. The lock that guards the ``ChildStateMachine`` guards it.
final class ExternalDependency: @unchecked Sendable {
    let slot: Int
    /// `nil` once it has ended, has become a child, or is not waited for any more.
    fileprivate(set) var operation: Operation?
    fileprivate var observer: FinishObserver?
    /// How many children wait for it.
    fileprivate var waiting = 0

    fileprivate init(_ operation: Operation, slot: Int) {
        self.operation = operation
        self.slot = slot
    }
}

/// The external dependencies of a composite's children: which children wait for them, and how their ends are noticed.
///
/// Each has one ``FinishObserver``, however many children wait for it, and only while some do. Like the rest of the
/// ``ChildStateMachine`` this value calls nothing: which operations to observe, and which observers are not needed any
/// more, is taken with ``takeChanges(isStarted:)``, for ``ChildScheduler`` to do.
struct ExternalDependencies {
    /// What has to be done after unlocking.
    struct Changes {
        /// Operations that children wait for now.
        var toObserve: [Operation] = []
        /// The observers to end. An observer and what it observes hold each other until then.
        var staleObservers: [FinishObserver] = []
        /// These may be the last references.
        var released: [Operation] = []

        var isEmpty: Bool { toObserve.isEmpty && staleObservers.isEmpty && released.isEmpty }
    }

    private var dependencies: [ObjectIdentifier: ExternalDependency] = [:]
    /// The external dependencies of each child, by its slot.
    private var awaited: [Int: [ExternalDependency]] = [:]
    private(set) var changes = Changes()

    /// Takes what has to be done after unlocking. Nothing is observed before the children may start.
    mutating func takeChanges(isStarted: Bool) -> Changes? {
        if changes.isEmpty { return nil }
        var taken = exchange(&changes, with: Changes())
        if !isStarted { changes.toObserve = exchange(&taken.toObserve, with: []) }
        return taken
    }
}

// MARK: - Children that wait

extension ExternalDependencies {
    /// A child waits for an operation that is no child.
    mutating func awaited(_ operation: Operation, by child: Int, in readiness: inout ReadinessStateMachine) {
        let dependency =
            dependencies[ObjectIdentifier(operation)]
            ?? add(operation, slot: readiness.table.insertExternal())
        readiness.table.addDependency(of: child, on: dependency.slot)
        dependency.waiting += 1
        awaited[child, default: []].append(dependency)
    }

    /// A child that is taken back does not wait for an operation after all.
    mutating func notAwaited(_ operation: Operation, by child: Int, in readiness: inout ReadinessStateMachine) {
        awaited[child] = nil
        guard let dependency = dependencies[ObjectIdentifier(operation)] else { return }
        readiness.table.removeDependency(of: child, on: dependency.slot)
        dependency.waiting -= 1
        endIfNotAwaited(dependency, in: &readiness)
    }

    /// A child has ended, perhaps without having waited for what it depends on.
    mutating func childEnded(_ child: Int, in readiness: inout ReadinessStateMachine) {
        guard !awaited.isEmpty, let dependencies = awaited.removeValue(forKey: child) else { return }
        for dependency in dependencies where dependency.operation != nil {
            dependency.waiting -= 1
            endIfNotAwaited(dependency, in: &readiness)
        }
    }

    /// A child that others wait for was taken back, and keeps its slot as an external dependency.
    mutating func childTakenBack(_ child: ChildReference, in readiness: ReadinessStateMachine) {
        let dependency = add(child.operation, slot: child.slot)
        // Some may have ended without having waited for it.
        for dependent in readiness.table.records[child.slot].dependents
        where readiness.table.records[dependent].phase != .gone {
            dependency.waiting += 1
            awaited[dependent, default: []].append(dependency)
        }
    }

    private mutating func add(_ operation: Operation, slot: Int) -> ExternalDependency {
        let dependency = ExternalDependency(operation, slot: slot)
        dependencies[ObjectIdentifier(operation)] = dependency
        changes.toObserve.append(operation)
        return dependency
    }
}

// MARK: - Dependencies that end

extension ExternalDependencies {
    /// An operation becomes a child.
    ///
    /// - Returns: The slot that it had as an external dependency.
    mutating func adopted(_ operation: Operation) -> Int? {
        guard let dependency = dependencies[ObjectIdentifier(operation)] else { return nil }
        removeExternalDependency(dependency)
        return dependency.slot
    }

    /// An operation has finished. If it is an external dependency, it is not waited for any more.
    mutating func finished(_ operation: Operation, in readiness: inout ReadinessStateMachine) {
        guard let dependency = dependencies[ObjectIdentifier(operation)] else { return }
        removeExternalDependency(dependency)
        readiness.externalEnded(dependency.slot)
    }

    /// An operation is observed. The observer is stale if no child waits for the operation any more, or if there is
    /// another observer: the operation may have been a child for a moment, and been observed again since.
    mutating func observed(_ operation: Operation, by observer: FinishObserver) {
        guard let dependency = dependencies[ObjectIdentifier(operation)], dependency.observer == nil else {
            return changes.staleObservers.append(observer)
        }
        dependency.observer = observer
    }

    /// Forgets the last operations, as far as only rejected children waited for them: they need no observer.
    mutating func removeUnobservedThatAreNotAwaited() {
        while let last = changes.toObserve.last, dependencies[ObjectIdentifier(last)] == nil {
            changes.toObserve.removeLast()
        }
    }

    /// Removes all external dependencies. Their slots stay as they are.
    mutating func removeAll() {
        for dependency in dependencies.values { removeExternalDependency(dependency) }
        awaited = [:]
        changes.released += changes.toObserve
        changes.toObserve = []
    }

    private mutating func endIfNotAwaited(_ dependency: ExternalDependency, in readiness: inout ReadinessStateMachine) {
        if dependency.waiting > 0 { return }
        removeExternalDependency(dependency)
        readiness.externalEnded(dependency.slot)
    }

    private mutating func removeExternalDependency(_ dependency: ExternalDependency) {
        guard let operation = dependency.operation.take() else { return }
        dependencies[ObjectIdentifier(operation)] = nil
        changes.released.append(operation)
        if let observer = dependency.observer.take() { changes.staleObservers.append(observer) }
    }
}
