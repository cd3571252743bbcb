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
    struct Entry {
        let kind: OperationEvent.Kind
        let nanoseconds: Int64
        let observers: ObserverList

        var isEnd: Bool { if case .finished = kind { true } else { false } }
    }

    let id = OperationID(UInt64(identifiers.add(1)))
    /// The observers of the operation itself.
    var observers = ObserverList()
    private var entries: [Entry] = []
    private var isDelivering = false

    /// Something has happened.
    ///
    /// - Parameters:
    ///   - kind: What.
    ///   - outer: The observers of what is around the operation.
    /// - Returns: Whether the caller has to deliver it, after unlocking. If not, another thread does, or no observer sees it.
    func happened(_ kind: OperationEvent.Kind, outer: ObserverList) -> Bool {
        var all = outer
        all.append(observers)
        if all.isEmpty { return false }
        entries.append(Entry(kind: kind, nanoseconds: OperationEvent.now, observers: all))
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

/// The events that the current thread delivers.
///
/// An event that is caused inside an observer waits until that has returned, whatever its operation is, so calls are never nested.
enum EventDelivery {
    private typealias Deferred = [(operation: AsyncOperation, queue: EventQueue)]

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key, nil)
        precondition(status == 0, "OperationKit: there are no thread-specific values left")
        return key
    }()

    /// Delivers the events of an operation: now, or when the observer has returned that this thread is calling.
    static func deliver(_ queue: EventQueue, of operation: AsyncOperation) {
        if let deferred = unsafe pthread_getspecific(key) {
            return unsafe deferred.assumingMemoryBound(to: Deferred.self).pointee.append((operation, queue))
        }
        var deferred: Deferred = []
        unsafe withUnsafeMutablePointer(to: &deferred) { deferred in
            unsafe pthread_setspecific(key, deferred)
            operation.deliverEvents(queue)
            while unsafe !deferred.pointee.isEmpty {
                for (operation, queue) in unsafe exchange(&deferred.pointee, with: []) {
                    operation.deliverEvents(queue)
                }
            }
            pthread_setspecific(key, nil)
        }
    }
}
