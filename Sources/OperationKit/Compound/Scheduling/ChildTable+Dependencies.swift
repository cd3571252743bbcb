// What children wait for: each other, and external dependencies, which have slots of their own. ``ChildStateMachine``
// connects children when it registers them, ``ExternalDependencies`` when a child waits for an operation that is none, and
// ``ReadySchedule`` counts down the dependents of what has ended.
extension ChildTable {
    /// A child depends on another one, or on an external dependency.
    mutating func addDependency(of slot: Int, on dependency: Int) {
        hasDependencies = true
        records[dependency].dependents.append(slot)
        records[slot].open += 1
        if records[dependency].phase == .external { records[slot].openExternal += 1 }
    }

    /// A child that is not registered does not depend on another one after all. Complexity: O(1) for what was added last.
    mutating func removeDependency(of slot: Int, on dependency: Int) {
        guard let index = records[dependency].dependents.lastIndex(of: slot) else { return }
        records[dependency].dependents.remove(at: index)
        records[slot].open -= 1
        if records[dependency].phase == .external { records[slot].openExternal -= 1 }
    }

    /// How many children wait for a child, or for an external dependency.
    func dependentCount(of slot: Int) -> Int { records[slot].dependents.count }

    /// Removes the children that have ended from the dependents of a child, or of an external dependency.
    ///
    /// Complexity: linear in its dependents.
    mutating func removeEndedDependents(of slot: Int) {
        let dependents = records[slot].dependents
        records[slot].dependents = dependents.filter { records[$0].phase != .gone }
        for dependent in dependents where records[dependent].phase == .gone {
            records[dependent].open -= 1
            if records[slot].phase == .external { records[dependent].openExternal -= 1 }
            freeIfUnused(dependent)
        }
    }

    /// Removes all dependencies, and frees the slots of external dependencies. Valid only before a child has started.
    mutating func removeDependencies() {
        hasDependencies = false
        for slot in records.indices {
            records[slot].dependents = []
            records[slot].open = 0
            records[slot].openExternal = 0
            if case .external = records[slot].phase { records[slot].phase = .gone }
            freeIfUnused(slot)
        }
    }

    /// An external dependency has become a child, or the other way around: changes for all that wait for it how many of
    /// their open dependencies are external.
    mutating func changeOpenExternal(ofDependentsOf slot: Int, by change: Int32) {
        for dependent in records[slot].dependents { records[dependent].openExternal += change }
    }
}

// MARK: - Cycles

extension ChildTable {
    /// Finds children that wait for each other in a cycle.
    ///
    /// Complexity: linear in the children that wait for those in `slots`, directly or not.
    ///
    /// - Parameter slots: Where to search. A cycle is found if it passes through one of these.
    /// - Returns: The slots of the children, each of which waits for the one after it, and the last for the first; `nil` if
    ///   there is no cycle.
    mutating func dependencyCycle(through slots: some Sequence<Int>) -> [Int]? {
        if !hasDependencies { return nil }
        searches += 1
        var path: [(slot: Int, next: Int)] = []
        for start in slots where records[start].search < 2 * searches && mayBeOnCycle(start) {
            path.append((start, 0))
            records[start].search = 2 * searches
            while let (slot, next) = path.last {
                guard next < records[slot].dependents.count else {
                    records[slot].search = 2 * searches + 1
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let dependent = records[slot].dependents[next]
                if hasStarted(dependent) { continue }
                switch records[dependent].search - 2 * searches {
                case 0: return path.map(\.slot).drop { $0 != dependent }.reversed()
                case 1: continue
                default:
                    path.append((dependent, 0))
                    records[dependent].search = 2 * searches
                }
            }
        }
        return nil
    }

    /// Only a child that waits for others, and that others wait for, can be on a cycle.
    private func mayBeOnCycle(_ slot: Int) -> Bool {
        records[slot].open > records[slot].openExternal && !records[slot].dependents.isEmpty
    }

    /// Whether a child has started, and so waits for nothing any more.
    private func hasStarted(_ slot: Int) -> Bool {
        switch records[slot].phase {
        case .detached, .ending, .gone: true
        case .free, .adding, .added, .waiting, .ready, .starting, .queued, .external: false
        }
    }
}
