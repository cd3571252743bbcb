import Foundation

// Children come: all of a batch, or none.
extension ChildScheduler {
    /// The children that a compound is created with. Whether they depend on each other in a circle is looked at when it
    /// starts.
    ///
    /// - Throws: The first one that is there twice, or belongs to another composite. Those before it have been added.
    func addInitial(_ operations: [Operation], to compound: CompoundOperation) throws {
        for operation in operations {
            guard slots[ObjectIdentifier(operation)] == nil, operation.claim(for: compound) else {
                throw CompoundAdditionError.alreadyAdded(
                    operation: operation.displayName, compound: compound.displayName)
            }
            let slot = insert(operation, isBeingAdded: false)
            connect(slot, to: operation.unfinishedDependencies)
        }
    }

    /// Adds children, at any time before the last one has ended.
    ///
    /// They are counted from the insertion on, so that the compound does not end meanwhile, and begin only after the
    /// last step, so that a cancelled compound can cancel them first.
    func add(_ operations: [Operation], to compound: CompoundOperation) throws {
        try claim(operations, for: compound)
        let dependencies = operations.map(\.unfinishedDependencies)
        let insertion = insert(operations, dependencies: dependencies)
        if let error = insertion.error(for: compound)
            ?? hopeless(insertion, operations, dependencies, in: compound)
        {
            if !insertion.slots.isEmpty { takeBack(operations, slots: insertion.slots) }
            for operation in operations { operation.giveUpClaim(of: compound) }
            throw error
        }
        // Whoever cancels the children from here on finds these among them.
        if lock.withLock({ schedule.cancelsNewChildren }) {
            for operation in operations { operation.cancel() }
        }
        let priorities = operations.map(\.queuePriority)
        let due = lock.withLock {
            for (index, slot) in insertion.slots.enumerated() {
                children[slot]?.isBeingAdded = false
                if hasBegun { schedule.known(slot, priority: priorities[index]) }
            }
            return consequences()
        }
        perform(due)
    }

    private func claim(_ operations: [Operation], for compound: CompoundOperation) throws {
        for (index, operation) in operations.enumerated() {
            compound.requireNotInside(operation)
            if operation.claim(for: compound) { continue }
            for operation in operations[..<index] { operation.giveUpClaim(of: compound) }
            throw CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: compound.displayName)
        }
    }

    /// A child that waits for its own compound, or for one around it, or that the compound itself waits for.
    private func hopeless(
        _ insertion: Insertion, _ operations: [Operation], _ dependencies: [[Operation]], in compound: CompoundOperation
    ) -> CompoundOperationError? {
        let before = compound.dependencies
        for (place, operation) in operations.enumerated() {
            let around = dependencies[place].first { compound.isInside($0) } ?? before.first { $0 === operation }
            guard let around else { continue }
            let index = lock.withLock { schedule.ordinal(of: insertion.slots[place]) }
            let name = operation.displayName(at: index)
            let other = around === operation ? compound : around
            return .dependencyCycle(name: compound.displayName, path: [name, other.displayName])
        }
        return nil
    }
}

// Children as the scheduler knows them. With the lock held, or before anybody else knows the scheduler.
extension ChildScheduler {
    private struct Insertion {
        enum Refusal {
            case isOver(Operation)
            case isThere(Operation)
            case closesCycle([(operation: Operation, index: Int)])
        }

        var slots: [Int] = []
        var refusal: Refusal?

        func error(for compound: CompoundOperation) -> (any Error)? {
            let name = compound.displayName
            switch refusal {
            case .isOver(let operation):
                return CompoundAdditionError.compoundFinished(operation: operation.displayName, compound: name)
            case .isThere(let operation):
                return CompoundAdditionError.alreadyAdded(operation: operation.displayName, compound: name)
            case .closesCycle(let circle):
                return CompoundOperationError.dependencyCycle(
                    name: name, path: circle.map { $0.operation.displayName(at: $0.index) })
            case nil:
                return nil
            }
        }
    }

    private func insert(_ operations: [Operation], dependencies: [[Operation]]) -> Insertion {
        lock.withLock {
            var insertion = Insertion()
            var seen = Set<ObjectIdentifier>()
            for operation in operations {
                if isOver {
                    insertion.refusal = .isOver(operation)
                    return insertion
                }
                let id = ObjectIdentifier(operation)
                if slots[id] != nil || !seen.insert(id).inserted {
                    insertion.refusal = .isThere(operation)
                    return insertion
                }
            }
            insertion.slots = operations.map { insert($0, isBeingAdded: true) }
            for (slot, dependencies) in zip(insertion.slots, dependencies) { connect(slot, to: dependencies) }
            if let circle = circle(through: insertion.slots) { insertion.refusal = .closesCycle(circle) }
            return insertion
        }
    }

    private func insert(_ operation: Operation, isBeingAdded: Bool) -> Int {
        let slot = schedule.addedChild()
        if slot == children.count { children.append(nil) }
        children[slot] = Child(operation: operation, isBeingAdded: isBeingAdded)
        let id = ObjectIdentifier(operation)
        slots[id] = slot
        for waiting in awaited.removeValue(forKey: id) ?? [] { schedule.depends(waiting, on: slot) }
        return slot
    }

    private func takeBack(_ operations: [Operation], slots taken: [Int]) {
        let due = lock.withLock {
            for (operation, slot) in zip(operations, taken).reversed() {
                connect(slot, to: [])
                let id = ObjectIdentifier(operation)
                for waiting in schedule.removed(slot) { awaited[id, default: []].insert(waiting) }
                slots[id] = nil
                children[slot] = nil
            }
            return consequences()
        }
        perform(due)
    }

    /// Tells the schedule which children a child depends on, and notes which operations that are none; instead of those
    /// that it was told before.
    func connect(_ slot: Int, to dependencies: [Operation]) {
        let ids = dependencies.map { ObjectIdentifier($0) }
        guard let known = children[slot]?.dependencies, known != ids else { return }
        for id in known {
            if let child = slots[id] { schedule.dependsNoMore(slot, on: child) } else { forget(id, slot: slot) }
        }
        for id in ids {
            if let child = slots[id] {
                schedule.depends(slot, on: child)
            } else {
                awaited[id, default: []].insert(slot)
            }
        }
        children[slot]?.dependencies = ids
    }

    /// A child does not wait for an operation that is none.
    func forget(_ id: ObjectIdentifier, slot: Int) {
        awaited[id]?.remove(slot)
        if awaited[id]?.isEmpty == true { awaited[id] = nil }
    }

    func circle(through slots: some Sequence<Int>) -> [(operation: Operation, index: Int)]? {
        schedule.cycle(through: slots)?.compactMap { slot in
            children[slot].map { ($0.operation, schedule.ordinal(of: slot)) }
        }
    }
}

extension Operation {
    /// Takes the operation as a part of a composite.
    ///
    /// - Returns: Whether it was not part of one already. Operations of other libraries cannot tell.
    func claim(for owner: AnyObject) -> Bool {
        changeOwner(to: owner, from: nil)
    }

    func giveUpClaim(of owner: AnyObject) {
        _ = changeOwner(to: nil, from: owner)
    }

    private func changeOwner(to owner: AnyObject?, from previous: AnyObject?) -> Bool {
        if let operation = self as? AsyncOperation { return operation.setOwner(owner, from: previous) }
        if let operation = self as? ThrowingBlockOperation { return operation.setOwner(owner, from: previous) }
        return true
    }
}
