import Foundation

/// What all operations have to know of the observers in the process.
enum ObserverRegistry {
    /// How many observers there are. As long as there is none, no operation does anything for observers.
    fileprivate static let count = AtomicCounter()
    /// How many observers there are, added or not, that want to know when `main()` returns after the end.
    private static let lateReturnCount = AtomicCounter()
    /// Counts the changes after which an operation may have other observers than before.
    private static let changes = AtomicCounter()
    private static let identifiers = AtomicCounter()
    private static let global = Locked<[ObserverRegistration]>([])

    /// Whether there is an observer anywhere.
    @inline(__always)
    static var isActive: Bool {
        #if DEBUG
        // Tests that explore or count what a thread does are not disturbed by what other tests observe.
        if count.value != 0, SchedulingProbe.observer != nil { return false }
        #endif
        return count.value != 0
    }

    /// Whether there is an observer anywhere that wants to know when `main()` returns after the end.
    @inline(__always)
    static var watchesLateReturns: Bool { isActive && lateReturnCount.value != 0 }

    /// Identifies a moment, up to which all changes were made that this number stands for. Not 0.
    static var epoch: Int { changes.value + 1 }

    /// Has operations look up their observers anew, at their next event.
    static func observersChanged() {
        changes.add(1)
    }

    static func makeIdentifier() -> OperationID {
        OperationID(UInt64(identifiers.add(1)))
    }

    /// An observer was created or released that wants to know when `main()` returns after the end.
    static func countLateReturnObservers(_ difference: Int) {
        lateReturnCount.add(difference)
    }

    // MARK: - Observers of all operations

    static var globalObservers: [ObserverRegistration] { global.withLock(\.self) }

    static func addGlobal(_ observer: any OperationObserver) {
        global.withLock { registrations in
            if !registrations.contains(where: { $0.isOf(observer) }) { registrations.append(.init(observer)) }
        }
        observersChanged()
    }

    static func removeGlobal(_ observer: any OperationObserver) {
        // Released after unlocking; its deinitializer may run arbitrary code.
        let removed = global.withLock { registrations in
            registrations.firstIndex { $0.isOf(observer) }.map { registrations.remove(at: $0) }
        }
        removed?.end()
        observersChanged()
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
