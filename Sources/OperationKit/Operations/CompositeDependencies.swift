import Foundation

/// What one composite was made to depend on, as long as it has not started.
///
/// An operation does not know what depends on it. So an operation that becomes a child is looked up in a table of all these
/// objects, to see whether its new composite, or one around that, waits for it: the alternative is to ask all of these for
/// their dependencies.
///
/// The group of the composite holds the object until the composite starts, is freed or gives its children away. Nothing else
/// does for long, so the object itself removes what it has put into the table, and the table never has to be cleaned up.
final class CompositeDependencies: Sendable {
    private struct State {
        weak var composite: AsyncOperation?
        var identifiers: Set<ObjectIdentifier> = []
        /// The operations that are being added as dependencies at this moment.
        var adding: [Operation] = []
    }

    /// For each operation, by its address, what records the composites that depend on it.
    static let table = Locked<[ObjectIdentifier: [ObjectIdentifier: WeakReference<CompositeDependencies>]]>([:])

    private let state: Locked<State>

    init(of composite: AsyncOperation) {
        state = Locked(State(composite: composite))
    }

    deinit {
        let identifiers = state.withLock { $0.identifiers }
        Self.table.withLock { table in
            for operation in identifiers {
                table[operation]?[ObjectIdentifier(self)] = nil
                if table[operation]?.isEmpty == true { table.forget(operation) }
            }
        }
    }

    /// How many operations the composite was made to depend on, including those that are no dependencies any more.
    var count: Int { state.withLock { $0.identifiers.count } }

    private var composite: AsyncOperation? { state.withLock { $0.composite } }

    /// Records that the composite depends on an operation. Callers of ``composites(waitingForOneOf:)`` check whether it
    /// still does: the operation may be gone then, and another one have its address.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - add: Checks the dependency, and adds it. From before that on, the operation is among ``awaited(by:)``: another thread
    ///     that makes it a child meanwhile finds it there.
    func add(_ operation: Operation, _ add: () -> Void) {
        let identifier = ObjectIdentifier(operation)
        let isNew = state.withLock { state in
            state.adding.append(operation)
            return state.identifiers.insert(identifier).inserted
        }
        if isNew {
            Self.table.withLock { $0[identifier, default: [:]][ObjectIdentifier(self)] = WeakReference(self) }
        }
        add()
        state.withLock { state in
            // The caller holds the operation, so this does not free it.
            if let index = state.adding.firstIndex(where: { $0 === operation }) { state.adding.remove(at: index) }
        }
    }

    /// The unfinished operations that a composite waits for, including those that are being added at this moment.
    func awaited(by composite: AsyncOperation) -> [Operation] {
        let adding = state.withLock { $0.adding }
        return composite.unfinishedDependencies + adding
    }

    /// The composites that were made to depend on one of some operations, each once.
    ///
    /// Complexity: linear in the operations and these composites.
    static func composites(waitingForOneOf operations: some Sequence<Operation>) -> [AsyncOperation] {
        // Released after unlocking: what is released here last removes itself from the table.
        let found = table.withLock { table -> [CompositeDependencies] in
            if table.isEmpty { return [] }
            return operations.flatMap { table[ObjectIdentifier($0)]?.values.compactMap(\.object) ?? [] }
        }
        if found.isEmpty { return [] }
        var seen: Set<ObjectIdentifier> = []
        return found.filter { seen.insert(ObjectIdentifier($0)).inserted }.compactMap(\.composite)
    }
}
