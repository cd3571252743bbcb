/// The observers of an operation, or of all operations, in the order of their addition.
///
/// A value, so that each event keeps those that it is meant for, whatever becomes of the operations around it.
struct ObserverList: Sendable {
    private(set) var registrations: [ObserverRegistration] = []

    /// How many additions of observers there are in the process. As long as there is none, no operation does anything for observers.
    fileprivate static let count = AtomicCounter()
    /// The observers of all operations.
    static let global = Locked(ObserverList())

    /// Whether there is an observer anywhere.
    @inline(__always)
    static var isObserving: Bool {
        #if DEBUG
        // Tests that explore or count what a thread does are not disturbed by what other tests observe.
        if count.value != 0, SchedulingProbe.observer != nil { return false }
        #endif
        return count.value != 0
    }

    var isEmpty: Bool { registrations.isEmpty }

    /// Whether there are no others in the process.
    var areAllThereAre: Bool { Self.count.value == registrations.count }

    /// Adds an observer, unless it is there.
    mutating func add(_ registration: ObserverRegistration) {
        if !registrations.contains(where: { $0.observer === registration.observer }) {
            registrations.append(registration)
        }
    }

    /// Removes an observer.
    ///
    /// - Returns: Its registration, to be released after unlocking.
    mutating func remove(_ observer: any OperationObserver) -> ObserverRegistration? {
        guard let index = registrations.firstIndex(where: { $0.observer === observer }) else { return nil }
        let removed = registrations.remove(at: index)
        removed.end()
        return removed
    }

    /// Adds the observers of an operation that is inside. One that was added to several operations is there several times, because
    /// each of these additions may end.
    mutating func append(_ inner: ObserverList) {
        // The storage is shared where that is possible.
        if isEmpty { self = inner } else { registrations += inner.registrations }
    }

    /// Calls each observer once that has not been removed.
    func send(_ event: OperationEvent, of operation: AsyncOperation) {
        var called: [any OperationObserver] = []
        for registration in registrations where !registration.hasEnded {
            let observer = registration.observer
            if registrations.count > 1 {
                if called.contains(where: { $0 === observer }) { continue }
                called.append(observer)
            }
            observer.operation(operation, emitted: event)
        }
    }
}

/// One addition of an observer.
final class ObserverRegistration: Sendable {
    let observer: any OperationObserver
    /// 1 once the observer was removed. Events that happened before may still refer to the registration.
    private let ends = AtomicCounter()

    init(_ observer: any OperationObserver) {
        self.observer = observer
        ObserverList.count.add(1)
    }

    deinit {
        ObserverList.count.add(-1)
    }

    var hasEnded: Bool { ends.value != 0 }

    func end() { ends.add(1) }
}
