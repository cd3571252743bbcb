import Foundation

// Children come: all of a batch, or none.
extension ChildScheduler {
    /// The children that a compound is created with. Whom they wait for is looked at when it starts, or when another
    /// child is added.
    ///
    /// - Throws: The first one that is there twice, or belongs to another composite. Those before it have been added.
    func addInitial(_ operations: [Operation], to compound: any Composite & ChildGroup) throws {
        // Those that can be claimed twice are remembered.
        var unclaimable: Set<ObjectIdentifier> = []
        let firstRefused = operations.firstIndex { operation in
            let isNew = operation.claim(for: compound)
            return !isNew || !(operation is AsyncOperation || unclaimable.insert(ObjectIdentifier(operation)).inserted)
        }
        withState { $0.insert(operations[..<(firstRefused ?? operations.endIndex)]) }
        guard let firstRefused else { return }
        throw CompoundAdditionError.alreadyAdded(
            operation: operations[firstRefused].displayName, compound: compound.displayName)
    }

    /// Adds a child that has been claimed, to a composite that has not begun. Whom it waits for is looked at when it
    /// does.
    func addClaimed(_ operation: Operation, weight: Int64) {
        withState { $0.insert(CollectionOfOne(operation), weight: weight) }
    }

    /// Adds children, at any time before the last one has ended.
    ///
    /// They are counted from the insertion on, so that the compound does not end meanwhile, and begin only after the
    /// last step, so that a cancelled compound can cancel them first.
    func add(_ operations: [Operation], weights: [Int64] = [], to compound: any Composite & ChildGroup) throws {
        try claim(operations, for: compound)
        connectEarlier()
        var arrivals = operations.map { Arrival((-1, $0), dependencies: $0.dependencies) }
        let refusal = insert(&arrivals, weights: weights)
        if let error = refusal?.error(for: compound) ?? hopeless(arrivals, in: compound) {
            takeBack(arrivals)
            for operation in operations { operation.giveUpClaim(of: compound) }
            throw error
        }
        // Whoever cancels the children from here on finds these among them.
        if withState({ $0.schedule.cancelsNewChildren }) {
            for operation in operations { operation.cancel() }
        }
        if withState({ $0.isProgressWanted }) {
            for operation in operations { (operation as? AsyncOperation)?.progressIsWanted() }
        }
        let due = withState { state in
            for child in arrivals {
                state.children[child.slot]?.isBeingAdded = false
                if state.stage != .idle { state.known(child) }
            }
            return consequences(of: &state)
        }
        perform(due)
    }

    /// A circle may pass through children that were there when the compound was created.
    private func connectEarlier() {
        let operations = withState { $0.takeUnconnected() }
        let dependencies = operations.map(\.operation.unfinishedDependencies)
        withState { state in
            guard state.stage == .idle else { return }
            for (next, dependencies) in zip(operations, dependencies) where state.isPresent(next) {
                state.connect(next.slot, to: dependencies)
            }
        }
    }

    private func claim(_ operations: [Operation], for compound: any Composite & ChildGroup) throws {
        for (index, operation) in operations.enumerated() {
            compound.requireNotInside(operation)
            if operation.claim(for: compound) { continue }
            for operation in operations[..<index] { operation.giveUpClaim(of: compound) }
            throw CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: compound.displayName)
        }
    }

    /// A child that waits for its own compound, or for one around it, or that one of these waits for.
    private func hopeless(_ arrivals: [Arrival], in compound: any Composite) -> CompoundOperationError? {
        for child in arrivals {
            let around =
                child.unfinished.first { compound.isInside($0) } ?? compound.waitingOperation(for: child.operation)
            guard let around else { continue }
            let index = withState { $0.schedule.ordinal(of: child.slot) }
            return .dependencyCycle(
                name: compound.displayName, path: [child.operation.displayName(at: index), around.displayName])
        }
        return nil
    }
}

// Children as the scheduler knows them.
extension ChildScheduler {
    private enum Refusal {
        case isOver(Operation)
        case isThere(Operation)
        case closesCycle([(operation: Operation, index: Int)])

        func error(for compound: any Composite) -> any Error {
            let name = compound.displayName
            switch self {
            case .isOver(let operation):
                return CompoundAdditionError.compoundFinished(operation: operation.displayName, compound: name)
            case .isThere(let operation):
                return CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: name)
            case .closesCycle(let circle):
                return CompoundOperationError.dependencyCycle(
                    name: name, path: circle.map { $0.operation.displayName(at: $0.index) })
            }
        }
    }

    /// Gives the children their slots, unless one of them cannot be added. If they close a circle, they are there and
    /// have to be taken back.
    private func insert(_ arrivals: inout [Arrival], weights: [Int64]) -> Refusal? {
        withState { state in
            var seen = Set<ObjectIdentifier>()
            for child in arrivals {
                if state.stage == .over { return .isOver(child.operation) }
                let isNew =
                    state.slot(of: child.operation) == nil && seen.insert(ObjectIdentifier(child.operation)).inserted
                if !isNew { return .isThere(child.operation) }
            }
            for index in arrivals.indices {
                arrivals[index].slot = state.insert(
                    arrivals[index].operation, weight: weights.isEmpty ? 1 : weights[index], isBeingAdded: true)
            }
            for child in arrivals { state.connect(child.slot, to: child.unfinished) }
            return state.circle(through: arrivals.lazy.map(\.slot)).map { .closesCycle($0) }
        }
    }

    private func takeBack(_ arrivals: [Arrival]) {
        let due = withState { state in
            state.remove(arrivals)
            return consequences(of: &state)
        }
        perform(due)
    }
}

extension Operation {
    /// Takes the operation as a part of a composite.
    ///
    /// - Returns: Whether it was not part of one already. Operations of other libraries cannot tell.
    func claim(for parent: any ChildGroup) -> Bool {
        setParent(parent, from: nil)
    }

    func giveUpClaim(of parent: any ChildGroup) {
        _ = setParent(nil, from: parent)
    }
}
