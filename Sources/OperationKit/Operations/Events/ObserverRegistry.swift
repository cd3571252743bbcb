import Foundation

/// What all operations have to know of the observers in the process.
enum ObserverRegistry {
    /// How many observers there are. As long as there is none, no operation does anything for observers.
    fileprivate static let count = AtomicCounter()
    private static let identifiers = AtomicCounter()
    /// The observers of all operations. This is also the lock that guards the scopes.
    private static let global = Locked(ScopedObservers(scope: ObserverScope(), registrations: []))

    /// Whether there is an observer anywhere.
    @inline(__always)
    static var isActive: Bool {
        #if DEBUG
        // Tests that explore or count what a thread does are not disturbed by what other tests observe.
        if count.value != 0, SchedulingProbe.observer != nil { return false }
        #endif
        return count.value != 0
    }

    static func makeIdentifier() -> OperationID {
        OperationID(UInt64(identifiers.add(1)))
    }

    // MARK: - Observers of all operations

    static var globalObservers: ScopedObservers { global.withLock(\.self) }

    static func addGlobal(_ observer: any OperationObserver) {
        changeGlobal { registrations in
            registrations.contains { $0.isOf(observer) } ? nil : registrations + [ObserverRegistration(observer)]
        }
    }

    static func removeGlobal(_ observer: any OperationObserver) {
        let previous = changeGlobal { registrations in
            registrations.contains { $0.isOf(observer) } ? registrations.filter { !$0.isOf(observer) } : nil
        }
        previous?.first { $0.isOf(observer) }?.end()
    }

    /// - Parameter change: Returns the observers of all operations from now on, or `nil` to leave them as they are.
    /// - Returns: The observers before, if they have changed.
    @discardableResult
    private static func changeGlobal(
        _ change: ([ObserverRegistration]) -> [ObserverRegistration]?
    ) -> [ObserverRegistration]? {
        // Released after unlocking; deinitializers of observers may run arbitrary code.
        let previous = global.withLock { global -> ScopedObservers? in
            guard let registrations = change(global.registrations) else { return nil }
            global.scope?.end()
            return exchange(&global, with: ScopedObservers(scope: ObserverScope(), registrations: registrations))
        }
        return previous?.registrations
    }

    // MARK: - Scopes

    /// Derives the scope of a composite from that of what it is part of.
    ///
    /// - Returns: `nil` if that one has ended.
    static func makeScope(in outer: ObserverScope) -> ObserverScope? {
        global.withLock { _ in outer.makeInner() }
    }

    /// Has all that is inside a composite look up its observers anew, at its next event.
    static func end(_ scope: ObserverScope) {
        global.withLock { _ in scope.end() }
    }
}

/// One addition of an observer.
final class ObserverRegistration: Sendable {
    /// For comparisons. An observer that is gone is in no list that is up to date.
    private let identifier: ObjectIdentifier
    private let current: Locked<(any OperationObserver)?>

    init(_ observer: any OperationObserver) {
        identifier = ObjectIdentifier(observer)
        current = Locked(observer)
        ObserverRegistry.count.add(1)
    }

    /// No operation refers to it.
    deinit {
        end()
    }

    /// The observer, unless it has been removed.
    var observer: (any OperationObserver)? { current.withLock(\.self) }

    func isOf(_ observer: any OperationObserver) -> Bool { identifier == ObjectIdentifier(observer) }

    /// The observer is not called from now on, and released, even if operations still refer to the registration.
    func end() {
        // Released after unlocking; its deinitializer may run arbitrary code.
        let removed = current.withLock { $0.take() }
        if removed != nil { ObserverRegistry.count.add(-1) }
        withExtendedLifetime(removed) {}
    }
}
