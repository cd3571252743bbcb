import Foundation

// Children come: all of a batch, or none.
extension ChildScheduler {
    /// The children that a compound is created with. Whom they wait for is looked at when it starts, or when another
    /// child is added.
    ///
    /// - Throws: The first one that is there twice, or belongs to another composite. All that can be added have been.
    func addInitial(_ operations: [Operation], to compound: AsyncOperation) throws {
        // Those that can be claimed twice are remembered.
        var unclaimable: Set<ObjectIdentifier> = []
        func isNew(_ operation: Operation) -> Bool {
            guard operation.claim(for: self) else { return false }
            return operation is AsyncOperation || unclaimable.insert(ObjectIdentifier(operation)).inserted
        }
        let firstRefused = operations.firstIndex { !isNew($0) }
        withState { $0.insert(operations[..<(firstRefused ?? operations.endIndex)]) }
        guard let firstRefused else { return }
        // They will not run, but have to end with the compound.
        let others = operations[firstRefused...].dropFirst().filter(isNew)
        withState { $0.insert(others) }
        throw CompoundAdditionError.alreadyAdded(
            operation: operations[firstRefused].displayName, compound: compound.displayName)
    }

    /// Adds a child that has been claimed, to a composite that has not begun. Whom it waits for is looked at when it
    /// does.
    func addClaimed(_ operation: AsyncOperation, weight: Int64) {
        let (isCancelled, isProgressWanted) = withState { state in
            state.insert(CollectionOfOne(operation), weight: weight)
            return (state.schedule.cancelsNewChildren, state.isProgressWanted)
        }
        if isCancelled { operation.cancel() }
        if isProgressWanted { operation.children?.startReportingProgress() }
    }

    /// Adds children, at any time before the last one has ended.
    ///
    /// They are counted from the insertion on, so that the compound does not end meanwhile, and begin only after the
    /// last step, so that a cancelled compound can cancel them first.
    func add(_ operations: [Operation], weights: [Int64] = [], to compound: AsyncOperation) throws {
        try claim(operations, for: compound)
        connectEarlier()
        var arrivals = operations.map { Arrival((-1, $0)) }
        if let error = hopeless(arrivals, in: compound) ?? insert(&arrivals, weights: weights)?.error(for: compound) {
            for operation in operations { operation.giveUpClaim(of: self) }
            throw error
        }
        // Whoever cancels the children from here on finds these among them.
        if withState({ $0.schedule.cancelsNewChildren }) {
            for operation in operations { operation.cancel() }
        }
        if withState({ $0.isProgressWanted }) {
            for operation in operations { (operation as? AsyncOperation)?.children?.startReportingProgress() }
        }
        // One that was cancelled before it had its slot was not found when it was.
        let released = arrivals.filter { !$0.unfinished.isEmpty && $0.operation.ignoresDependencies }.map(\.slot)
        let due = withState { state in
            for slot in released { state.schedule.released(slot) }
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

    private func claim(_ operations: [Operation], for compound: AsyncOperation) throws {
        for (index, operation) in operations.enumerated() {
            compound.requireNotInside(operation)
            if operation.claim(for: self) { continue }
            for operation in operations[..<index] { operation.giveUpClaim(of: self) }
            throw CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: compound.displayName)
        }
    }

    /// A child that waits for its own compound, or for one around it, or that one of these waits for.
    private func hopeless(_ arrivals: [Arrival], in compound: AsyncOperation) -> CompoundOperationError? {
        for (place, child) in arrivals.enumerated() {
            let around =
                child.unfinished.first { compound.isInside($0) } ?? compound.waitingOperation(for: child.operation)
            guard let around else { continue }
            let name = child.operation.displayName(at: withState { $0.schedule.added } + place)
            return .dependencyCycle(name: compound.displayName, path: [name, around.displayName])
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

        func error(for compound: AsyncOperation) -> any Error {
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

    /// Gives the children their slots, unless one of them cannot be added.
    private func insert(_ arrivals: inout [Arrival], weights: [Int64]) -> Refusal? {
        let (refusal, due) = withState { state in
            let refusal = insert(&arrivals, weights: weights, into: &state)
            return (refusal, refusal == nil ? Consequences() : consequences(of: &state))
        }
        perform(due)
        return refusal
    }

    /// If the children close a cycle, they are taken back before another thread can see them.
    private func insert(_ arrivals: inout [Arrival], weights: [Int64], into state: inout State) -> Refusal? {
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
        guard let cycle = state.circle(through: arrivals.lazy.map(\.slot)) else { return nil }
        state.remove(arrivals)
        return .closesCycle(cycle)
    }
}

extension Operation {
    /// Whether it makes no difference to the operation any more what it depends on. Asks the operation, so nothing may be
    /// locked.
    var ignoresDependencies: Bool { isCancelled || isExecuting || isFinished }

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
