import Foundation

/// The observers of an operation, and its events that have not been delivered. The operation's lock guards it.
///
/// One thread at a time delivers: the one whose event finds that none does. Events that happen meanwhile are left to it. Observers are
/// looked up when an event happens: what is around the operation may have ended when another thread delivers it.
final class EventQueue: @unchecked Sendable {
    /// That of all operations that only the library knows, which have no events.
    static let hidden = EventQueue()
    private static let identifiers = AtomicCounter()

    /// An event that has not been delivered.
    typealias Entry = (kind: OperationEvent.Kind, nanoseconds: Int64, observers: ObserverList)

    let id = OperationID(UInt64(identifiers.add(1)))
    // The lock guarantees exclusive access; skip the run-time checks.
    /// The observers of the operation itself.
    @safe @exclusivity(unchecked) var observers: ObserverList = []
    /// The event with which a thread begins to deliver, which takes it without the lock.
    @safe @exclusivity(unchecked) var first: Entry?
    /// What has happened since.
    @safe @exclusivity(unchecked) var later: [Entry] = []
    /// How many events have not been delivered. As long as it is not zero, a thread delivers.
    let pendingCount = AtomicCounter()
}

extension AsyncOperation.State {
    /// Returns the queue, which is created if there is none.
    mutating func requiredEventQueue() -> EventQueue {
        let queue = eventQueue ?? EventQueue()
        eventQueue = queue
        return queue
    }

    /// Notes an event in the step in which it happens, so that events keep their order.
    ///
    /// - Parameters:
    ///   - kind: What has happened.
    ///   - outer: What ``AsyncOperation/outerObservers`` was before locking.
    /// - Returns: The queue, if the caller has to deliver the event after unlocking. If not, another thread does, or no observer sees it.
    @inline(__always)
    mutating func note(_ kind: @autoclosure () -> OperationEvent.Kind, _ outer: ObserverList?) -> EventQueue? {
        if let outer { noteObserved(kind(), outer) } else { nil }
    }

    /// Not inlined, because what has no observers should not pay for the size of this.
    @inline(never)
    private mutating func noteObserved(_ kind: OperationEvent.Kind, _ outer: ObserverList) -> EventQueue? {
        guard let queue = eventQueue ?? (outer.isEmpty ? nil : requiredEventQueue()), queue !== EventQueue.hidden else {
            return nil
        }
        let observers = outer.followed(by: queue.observers)
        if observers.isEmpty { return nil }
        let entry = (kind, OperationEvent.now, observers)
        if queue.pendingCount.add(1) > 1 {
            queue.later.append(entry)
            return nil
        }
        queue.first = entry
        return queue
    }
}

// An event that is caused inside an observer waits until that has returned, whatever its operation is, so calls are never nested.
extension EventQueue {
    /// The events that the current thread delivers.
    private typealias Deferred = [(operation: AsyncOperation, queue: EventQueue)]

    private static let key = makeThreadKey()

    /// Delivers the events of an operation: now, or when the observer has returned that this thread is calling.
    func deliver(of operation: AsyncOperation) {
        if let deferred = unsafe pthread_getspecific(Self.key) {
            return unsafe deferred.assumingMemoryBound(to: Deferred.self).pointee.append((operation, self))
        }
        var deferred: Deferred = []
        unsafe withUnsafeMutablePointer(to: &deferred) { deferred in
            unsafe pthread_setspecific(Self.key, deferred)
            operation.deliverEvents(self)
            while unsafe !deferred.pointee.isEmpty {
                for (operation, queue) in unsafe exchange(&deferred.pointee, with: []) {
                    operation.deliverEvents(queue)
                }
            }
            pthread_setspecific(Self.key, nil)
        }
    }
}

/// The observers of an operation, or of all operations, in the order of their addition.
///
/// A value, so that each event keeps those that it is meant for, whatever becomes of the operations around it.
typealias ObserverList = [ObserverRegistration]

extension ObserverList {
    /// Whether there is an observer anywhere.
    @inline(__always)
    static var isObserving: Bool {
        // Tests that explore or count what a thread does are not disturbed by what other tests observe.
        ObserverRegistration.count.value != 0 && SchedulingProbe.observer == nil
    }

    /// Adds an observer, unless it is there.
    mutating func add(_ registration: ObserverRegistration) {
        if !contains(where: { $0.observer === registration.observer }) { self = followed(by: [registration]) }
    }

    /// Removes an observer.
    ///
    /// - Returns: Its registration, to be released after unlocking.
    mutating func remove(_ observer: any OperationObserver) -> ObserverRegistration? {
        guard let index = firstIndex(where: { $0.observer === observer }) else { return nil }
        self[index].end()
        return remove(at: index)
    }

    /// Returns these observers and those of an operation that is inside. One that was added to several operations is there several
    /// times, because each of these additions may end.
    func followed(by inner: ObserverList) -> ObserverList {
        // The storage is shared where that is possible.
        isEmpty ? inner : inner.isEmpty ? self : self + inner
    }
}

/// One addition of an observer.
final class ObserverRegistration: Sendable {
    /// How many there are in the process. As long as there is none, no operation does anything for observers.
    static let count = AtomicCounter()
    /// How many of them are of composites or of all operations, so that they are there for operations inside.
    static let outerCount = AtomicCounter()
    /// Those of the observers of all operations.
    static let global = Locked<ObserverList>([])

    let observer: any OperationObserver
    /// 1 once the observer was removed. Events that happened before may still refer to the registration.
    private let ends = AtomicCounter()
    private let isOuter: Bool

    init(_ observer: any OperationObserver, isOuter: Bool) {
        self.observer = observer
        self.isOuter = isOuter
        Self.count.add(1)
        if isOuter { Self.outerCount.add(1) }
    }

    deinit {
        Self.count.add(-1)
        if isOuter { Self.outerCount.add(-1) }
    }

    var hasEnded: Bool { ends.value != 0 }

    func end() { ends.add(1) }
}
