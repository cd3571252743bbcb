import Foundation

/// Which composites were made to depend on which operations.
///
/// An operation does not know what depends on it. So an operation that becomes a child is looked up here, to see whether
/// its new composite, or one around that, waits for it: the alternative is to ask all of these for their dependencies.
final class CompositeDependencies: Sendable {
    fileprivate struct Entry {
        weak var composite: AsyncOperation?
    }

    fileprivate struct Table {
        var composites: [ObjectIdentifier: [Entry]] = [:]
        var count = 0
        /// The number of entries at which those whose composites are gone are removed, so that adding costs the same on
        /// average.
        var limit = 64
    }

    static let shared = CompositeDependencies()

    private let table = Locked(Table())

    /// A composite is about to depend on an operation. Whether it still does has to be asked later: the operation may be
    /// gone then, and another one have its address.
    func insert(_ composite: AsyncOperation, waitingFor operation: Operation) {
        let entry = Entry(composite: composite)
        // Release the composites after unlocking; their deinitializers may run arbitrary code.
        let discarded = table.withLock { table -> [AsyncOperation] in
            let discarded = table.count == table.limit ? table.removeUnused() : []
            table.composites[ObjectIdentifier(operation), default: []].append(entry)
            table.count += 1
            return discarded
        }
        withExtendedLifetime(discarded) {}
    }

    /// The composites that were made to depend on one of some operations, each once.
    ///
    /// Complexity: linear in the operations and these composites.
    func composites(waitingForOneOf operations: [Operation]) -> [AsyncOperation] {
        let entries = table.withLock { table in
            table.composites.isEmpty ? [] : operations.flatMap { table.composites[ObjectIdentifier($0)] ?? [] }
        }
        var seen: Set<ObjectIdentifier> = []
        return entries.compactMap(\.composite).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// How many dependencies are in the table, those included whose composites are gone and that were not removed yet.
    var count: Int { table.withLock(\.count) }
}

extension CompositeDependencies.Table {
    /// - Returns: The composites that are not gone, to be released after unlocking.
    fileprivate mutating func removeUnused() -> [AsyncOperation] {
        var present: [AsyncOperation] = []
        composites = composites.compactMapValues { entries in
            let used = entries.filter { entry in
                guard let composite = entry.composite else { return false }
                present.append(composite)
                return true
            }
            return used.isEmpty ? nil : used
        }
        count = present.count
        limit = 2 * count + 64
        return present
    }
}
