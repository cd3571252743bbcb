import Foundation

// Adding children: all of a batch, or none.
extension ChildScheduler {
    /// Adds the children that a compound is created with. Their dependencies are read when it starts, or when another
    /// child is added.
    ///
    /// - Throws: An error for the first one that is there twice, or belongs to another composite. All that can be added
    ///   are added nevertheless.
    func addInitial(_ operations: [Operation], to composite: AsyncOperation) throws {
        // Foreign operations can be adopted twice, so they are remembered.
        var foreign: Set<ObjectIdentifier> = []
        func adopt(_ operation: Operation) -> Bool {
            guard operation.setParent(self, from: nil) else { return false }
            return operation is AsyncOperation || foreign.insert(ObjectIdentifier(operation)).inserted
        }
        let firstRejected = operations.firstIndex { !adopt($0) }
        update { $0.addedInitially(operations[..<(firstRejected ?? operations.endIndex)]) }
        announce(operations[..<(firstRejected ?? operations.endIndex)], to: composite)
        guard let firstRejected else { return }
        // They will not run, but have to end with the composite.
        let others = operations[firstRejected...].dropFirst().filter(adopt)
        update { $0.addedInitially(others) }
        throw CompoundAdditionError.alreadyAdded(
            operation: operations[firstRejected].displayName, compound: composite.displayName)
    }

    /// Adds children, at any time before the last one has ended.
    ///
    /// They are counted from ``ChildStateMachine/adding(_:)`` on, so that the composite does not end meanwhile, and start only
    /// after ``ChildStateMachine/committed(_:)``, so that a cancelled composite can cancel them first.
    ///
    /// The lock is taken three times, and once more if there are children whose dependencies have not been read.
    ///
    /// - Parameters:
    ///   - operations: The children.
    ///   - weights: The share of each in the progress.
    ///   - composite: The composite that the children are added to.
    ///   - expected: How much of the progress was left for them before: from here on their own weights count instead.
    /// - Throws: An error, if they cannot be added. Then none of them is.
    func add(
        _ operations: [Operation], weights: [Int64], to composite: AsyncOperation, inPlaceOf expected: Int64 = 0
    ) throws {
        try adopt(operations, into: composite)
        connectEarlier()
        var registrations = zip(operations, weights).map { ChildRegistration(adding: $0, weight: $1) }
        if let error = selfDependencyError(of: registrations, in: composite)
            ?? insert(&registrations, inPlaceOf: expected)?.error(for: composite)
        {
            for operation in operations { operation.setParent(nil, from: self) }
            throw error
        }
        announce(operations, to: composite)
        for index in registrations.indices { registrations[index].updateIgnoresDependencies() }
        update { $0.committed(registrations) }
    }

    /// Tells observers of the children that were added.
    private func announce(_ operations: some Sequence<Operation>, to composite: AsyncOperation) {
        guard ObserverList.isObserving else { return }
        for case let operation as AsyncOperation in operations { operation.announceAddition(to: composite) }
    }

    /// - Returns: Why the children are not added.
    private func insert(
        _ registrations: inout [ChildRegistration], inPlaceOf expected: Int64
    ) -> ChildStateMachine.Rejection? {
        var rejection: ChildStateMachine.Rejection?
        update { machine in
            let effects = machine.adding(&registrations, inPlaceOf: expected)
            rejection = effects.others?.value.rejection
            return effects
        }
        return rejection
    }

    /// Reads the dependencies of the children that the compound was created with: a cycle may pass through them.
    private func connectEarlier() {
        let children = machine.withLock { $0.takeUnregistered() }
        if children.isEmpty { return }
        let asked = children.map { (child: $0, unfinished: $0.operation.unfinishedDependencies) }
        machine.withLock { $0.connected(asked) }
    }

    private func adopt(_ operations: [Operation], into composite: AsyncOperation) throws {
        for (index, operation) in operations.enumerated() {
            composite.requireNotInside(operation)
            if operation.setParent(self, from: nil) { continue }
            for operation in operations[..<index] { operation.setParent(nil, from: self) }
            throw CompoundAdditionError.alreadyAdded(
                operation: operation.displayName, compound: composite.displayName)
        }
    }

    /// An error, if a child waits for its own composite, or for one around it, or if one of these waits for the child.
    private func selfDependencyError(
        of registrations: [ChildRegistration], in composite: AsyncOperation
    ) -> (any Error)? {
        for (place, child) in registrations.enumerated() {
            let parent =
                child.unfinished.first { composite.isInside($0) } ?? composite.waitingOperation(for: child.operation)
            guard let parent else { continue }
            let name = child.operation.displayName(at: machine.withLock { $0.schedule.table.added } + place)
            return CompoundOperationError.dependencyCycle(
                name: composite.displayName, path: [name, parent.displayName])
        }
        return nil
    }
}

extension ChildStateMachine.Rejection {
    func error(for composite: AsyncOperation) -> any Error {
        let name = composite.displayName
        switch self {
        case .finished(let operation):
            return CompoundAdditionError.compoundFinished(operation: operation.displayName, compound: name)
        case .duplicate(let operation):
            return CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: name)
        case .cycle(let cycle):
            return CompoundOperationError.dependencyCycle(
                name: name, path: cycle.map { $0.operation.displayName(at: $0.index) })
        }
    }
}
