import Foundation

/// What all operations have to know of the observers in the process.
enum ObserverRegistry {
    /// How many observers there are. As long as there is none, no operation does anything for observers.
    private static let count = AtomicCounter()
    /// How many of them want to know when `main()` returns after the end.
    private static let lateReturnCount = AtomicCounter()
    /// Counts the changes after which an operation may have other observers than before.
    private static let changes = AtomicCounter()
    private static let identifiers = AtomicCounter()
    private static let global = Locked<[ObserverRegistration]>([])

    /// Whether there is an observer anywhere.
    @inline(__always)
    static var isActive: Bool { count.value != 0 }

    /// Whether there is an observer anywhere that wants to know when `main()` returns after the end.
    @inline(__always)
    static var watchesLateReturns: Bool { lateReturnCount.value != 0 }

    /// Identifies a moment, up to which all changes were made that this number stands for. Not 0.
    static var epoch: Int { changes.value + 1 }

    /// Has operations look up their observers anew, at their next event.
    static func observersChanged() {
        changes.add(1)
    }

    static func makeIdentifier() -> OperationID {
        OperationID(number: UInt64(identifiers.add(1)))
    }

    /// The number of observers has changed.
    fileprivate static func counted(_ difference: Int, watchesLateReturns: Bool) {
        count.add(difference)
        if watchesLateReturns { lateReturnCount.add(difference) }
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

/// One addition of an observer. It is counted as long as an operation refers to it.
final class ObserverRegistration: Sendable {
    /// For comparisons. The observer is held as long as the registration has not ended.
    private let identifier: ObjectIdentifier
    private let watchesLateReturns: Bool
    private let current: Locked<(any OperationObserver)?>

    init(_ observer: any OperationObserver) {
        identifier = ObjectIdentifier(observer)
        watchesLateReturns = observer is any LateReturnObserving
        current = Locked(observer)
        ObserverRegistry.counted(1, watchesLateReturns: watchesLateReturns)
    }

    deinit {
        ObserverRegistry.counted(-1, watchesLateReturns: watchesLateReturns)
    }

    /// The observer, unless it has been removed.
    var observer: (any OperationObserver)? { current.withLock(\.self) }

    func isOf(_ observer: any OperationObserver) -> Bool {
        identifier == ObjectIdentifier(observer)
    }

    func isOfSameObserver(as other: ObserverRegistration) -> Bool {
        identifier == other.identifier
    }

    /// The observer is not called from now on, and released.
    func end() {
        let removed = current.withLock { $0.take() }
        withExtendedLifetime(removed) {}
    }
}
