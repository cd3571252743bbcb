import Foundation

// Adding children: all of a batch, or none.
extension ChildStateMachine {
    /// Children were added to a composite that has not started. Their dependencies are read when it starts, or when
    /// another child is added.
    mutating func addedInitially(_ operations: some Collection<Operation>, weight: Int64 = 1) -> Effects {
        readiness.table.reserveCapacity(operations.count)
        for operation in operations { unregistered.append(insert(operation, weight: weight, phase: .added)) }
        return requests(to: operations)
    }

    /// Takes the children whose dependencies have not been read.
    mutating func takeUnregistered() -> [ChildReference] {
        exchange(&unregistered, with: []).compactMap { readiness.table.child(in: $0) }
    }

    /// The dependencies of these children were read, before another child is added.
    mutating func connected(_ children: [(child: ChildReference, unfinished: [Operation])]) {
        // After the start, the composite reads all dependencies itself.
        guard readiness.stage == .idle else { return }
        for (child, unfinished) in children where readiness.table.isPresent(child) { connect(child, to: unfinished) }
    }

    /// Children are added: they get their slots, and are counted from here on, so that the composite does not end
    /// meanwhile. They start after ``committed(_:)``.
    ///
    /// If they close a cycle, they are taken back before another thread can see them. Replaces `expected`, the share reserved
    /// for them, by their own weights in the same step, so that the fraction does not fall.
    mutating func adding(_ registrations: inout [ChildRegistration], inPlaceOf expected: Int64 = 0) -> Effects {
        if let rejection = rejection(of: registrations) { return effects(rejection: rejection) }
        for index in registrations.indices {
            let child = registrations[index]
            registrations[index].slot = insert(child.operation, weight: child.weight, phase: .adding)
        }
        for registration in registrations { connect(registration.child, to: registration.unfinished) }
        if let cycle = dependencyCycle(through: registrations.lazy.map(\.slot)) {
            takeBack(registrations)
            return effects(rejection: cycle)
        }
        ledger.added(-expected)
        return requests(to: registrations.lazy.map(\.operation))
    }

    /// What is asked of new children because all children are cancelled or observed already. A thread that does so
    /// later finds the new ones among them.
    private func requests(to operations: some Collection<Operation>) -> Effects {
        guard readiness.cancelsNewChildren || isProgressObserved else { return Effects() }
        let requests = ChildRequests(
            cancel: readiness.cancelsNewChildren ? Array(operations) : [],
            reportProgress: isProgressObserved ? Array(operations) : [])
        return Effects(others: Reference(Others(requests: requests)))
    }

    private func rejection(of registrations: [ChildRegistration]) -> Rejection? {
        var seen = Set<ObjectIdentifier>()
        for child in registrations {
            if readiness.stage == .finished { return .finished(child.operation) }
            guard readiness.table.slot(of: child.operation) == nil,
                seen.insert(ObjectIdentifier(child.operation)).inserted
            else { return .duplicate(child.operation) }
        }
        return nil
    }

    /// The addition of children is complete.
    mutating func committed(_ registrations: [ChildRegistration]) -> Effects {
        for registration in registrations {
            if readiness.stage == .idle {
                readiness.table.records[registration.slot].phase = .added
            } else {
                register(registration)
            }
        }
        return effects()
    }

    mutating func connect(_ child: ChildReference, to dependencies: [Operation]) {
        for dependency in dependencies {
            if let other = readiness.table.slot(of: dependency) {
                readiness.table.addDependency(of: child.slot, on: other)
            } else {
                externals.awaited(dependency, by: child.slot, in: &readiness)
            }
        }
    }

    /// A cycle of children that wait for each other, if there is one.
    private mutating func dependencyCycle(
        through slots: some Sequence<Int>
    ) -> Rejection? {
        readiness.table.dependencyCycle(through: slots).map { cycle in
            .cycle(cycle.compactMap { readiness.table.child(in: $0) }.map { ($0.operation, ordinal(of: $0)) })
        }
    }

    private mutating func insert(_ operation: Operation, weight: Int64, phase: ChildPhase) -> Int {
        ledger.added(ProgressLedger.weight(weight))
        guard let slot = externals.adopted(operation) else {
            return readiness.table.insert(operation, weight: weight, phase: phase)
        }
        readiness.adopted(slot, operation, weight: weight, phase: phase)
        return slot
    }

    /// Takes back children that were added last, before anything else has happened.
    private mutating func takeBack(_ registrations: [ChildRegistration]) {
        // The last ones first, as each is the last dependent of what it waits for then.
        for registration in registrations.reversed() {
            for dependency in registration.unfinished {
                if let other = readiness.table.slot(of: dependency) {
                    readiness.table.removeDependency(of: registration.slot, on: other)
                } else {
                    externals.notAwaited(dependency, by: registration.slot, in: &readiness)
                }
            }
        }
        externals.removeUnobservedThatAreNotAwaited()
        for registration in registrations.reversed() {
            let slot = registration.slot
            ledger.added(-Int64(readiness.table.records[slot].weight))
            readiness.takenBack(slot)
            if readiness.table.records[slot].phase == .external {
                externals.childTakenBack(registration.child, in: readiness)
            }
        }
    }
}

// MARK: - Starting the composite

extension ChildStateMachine {
    /// The properties and dependencies of children were read.
    mutating func registered(_ registrations: [ChildRegistration]) -> Effects {
        for registration in registrations where readiness.table.isPresent(registration.child) {
            connect(registration.child, to: registration.unfinished)
            if isCommitted(registration.child) { register(registration) }
        }
        return effects()
    }

    /// A cycle of children that wait for each other, if there is one.
    mutating func dependencyCycle() -> Rejection? {
        dependencyCycle(through: readiness.table.records.indices)
    }

    /// The children may start.
    mutating func started() -> Effects {
        readiness.started()
        return effects()
    }

    mutating func register(_ registration: ChildRegistration) {
        let slot = registration.slot
        readiness.table.records[slot].isSynchronous = registration.isSynchronous
        if registration.ignoresDependencies { readiness.ignoresDependencies(slot) }
        readiness.registered(slot, priority: registration.priority)
    }
}

// MARK: - Registrations

/// A child, and the slot that it has.
struct ChildReference {
    let slot: Int
    let operation: Operation
}

/// The properties of a child, as they are read when it is added, or when its composite starts. They may be overridden,
/// so they are read without the lock.
struct ChildRegistration {
    /// Negative as long as the child has none.
    var slot: Int
    let operation: Operation
    let weight: Int64
    let priority: Operation.QueuePriority
    /// Those of its dependencies that have not finished.
    let unfinished: [Operation]
    /// Whether the child does not wait for these, because it is cancelled, executing or finished already.
    private(set) var ignoresDependencies: Bool
    /// Whether only a queue can start it: a synchronous operation of another class.
    let isSynchronous: Bool

    var child: ChildReference { ChildReference(slot: slot, operation: operation) }

    /// Reads the properties of a child. If it is about to be cancelled, it only has to end, whatever it depends on.
    init(_ child: ChildReference, weight: Int64 = 1, isCancelled: Bool = false) {
        slot = child.slot
        operation = child.operation
        self.weight = weight
        priority = operation.queuePriority
        // Usually none has finished, and no other array is needed.
        let relevant = isCancelled ? [] : operation.dependencies
        unfinished = relevant.contains { $0.isFinished } ? relevant.filter { !$0.isFinished } : relevant
        ignoresDependencies = !unfinished.isEmpty && operation.ignoresDependencies
        isSynchronous = !(operation is AsyncOperation) && !operation.isAsynchronous
    }

    /// Reads this once more: a cancellation that came before the child had its slot could not find it.
    mutating func updateIgnoresDependencies() {
        ignoresDependencies = ignoresDependencies || !unfinished.isEmpty && operation.ignoresDependencies
    }
}

extension Operation {
    /// Whether the operation no longer has to wait for its dependencies. Asks the operation, so callers hold no lock.
    fileprivate var ignoresDependencies: Bool { hasBeenCancelled || hasBeenStarted }
}

extension ChildStateMachine.Rejection {
    func error(for composite: AsyncOperation) -> any Error {
        switch self {
        case .finished(let operation):
            CompoundAdditionError.compoundFinished(
                operation: operation.displayName, compound: composite.displayName)
        case .duplicate(let operation):
            composite.alreadyAdded(operation)
        case .cycle(let cycle):
            CompoundOperationError.dependencyCycle(
                name: composite.displayName, path: cycle.map { $0.operation.displayName(at: $0.index) })
        }
    }
}
