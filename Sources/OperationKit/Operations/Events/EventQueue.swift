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
    /// The observers of the operation itself.
    var observers: ObserverList = []
    private var entries: [Entry] = []
    private var isDelivering = false

    /// Something has happened.
    ///
    /// - Parameters:
    ///   - kind: What.
    ///   - outer: The observers of what is around the operation.
    /// - Returns: Whether the caller has to deliver it, after unlocking. If not, another thread does, or no observer sees it.
    func happened(_ kind: OperationEvent.Kind, outer: ObserverList) -> Bool {
        let all = outer.followed(by: observers)
        if all.isEmpty { return false }
        entries.append((kind, OperationEvent.now, all))
        return !exchange(&isDelivering, with: true)
    }

    /// Takes the events that have to be delivered.
    ///
    /// - Parameter delivered: An empty array, whose storage is used again.
    /// - Returns: Whether there are any. If not, the caller no longer delivers.
    func next(_ delivered: inout [Entry]) -> Bool {
        swap(&entries, &delivered)
        isDelivering = !delivered.isEmpty
        return isDelivering
    }
}

extension AsyncOperation.State {
    /// Returns the queue, which is created if there is none.
    mutating func requiredEventQueue() -> EventQueue {
        if let eventQueue { return eventQueue }
        let created = EventQueue()
        eventQueue = created
        return created
    }

    /// Notes an event in the step in which it happens, so that events keep their order.
    ///
    /// - Parameters:
    ///   - kind: What has happened.
    ///   - outer: What ``AsyncOperation/outerObservers`` was before locking.
    /// - Returns: The queue, if the caller has to deliver the event after unlocking.
    @inline(__always)
    mutating func note(_ kind: @autoclosure () -> OperationEvent.Kind, _ outer: ObserverList?) -> EventQueue? {
        if let outer { noteObserved(kind(), outer) } else { nil }
    }

    /// Not inlined, because what has no observers should not pay for the size of this.
    @inline(never)
    private mutating func noteObserved(_ kind: OperationEvent.Kind, _ outer: ObserverList) -> EventQueue? {
        if eventQueue == nil && outer.isEmpty || eventQueue === EventQueue.hidden { return nil }
        let queue = requiredEventQueue()
        return queue.happened(kind, outer: outer) ? queue : nil
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
        if !contains(where: { $0.observer === registration.observer }) { append(registration) }
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
        isEmpty ? inner : self + inner
    }

    /// Calls each observer once that has not been removed.
    func send(_ event: OperationEvent, of operation: AsyncOperation) {
        var called: [any OperationObserver] = []
        for registration in self where !registration.hasEnded {
            let observer = registration.observer
            if count > 1 {
                if called.contains(where: { $0 === observer }) { continue }
                called.append(observer)
            }
            observer.operation(operation, emitted: event)
        }
    }
}

/// One addition of an observer.
final class ObserverRegistration: Sendable {
    /// How many there are in the process. As long as there is none, no operation does anything for observers.
    static let count = AtomicCounter()
    /// Those of the observers of all operations.
    static let global = Locked<ObserverList>([])

    let observer: any OperationObserver
    /// 1 once the observer was removed. Events that happened before may still refer to the registration.
    private let ends = AtomicCounter()

    init(_ observer: any OperationObserver) {
        self.observer = observer
        Self.count.add(1)
    }

    deinit {
        Self.count.add(-1)
    }

    var hasEnded: Bool { ends.value != 0 }

    func end() { ends.add(1) }
}
