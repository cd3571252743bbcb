import Foundation

// Callers hold no lock.
extension AsyncOperation {
    /// Takes a step in which something happens, with the lock held and the observers that are around the operation then; `nil` if there
    /// is none in the process. They are looked up before, and again if one, or an operation to a composite, was added meanwhile.
    @inline(__always)
    func withObservers<Answer>(_ step: (inout State, _ outer: ObserverList?) -> Answer) -> Answer {
        while true {
            let additions = ObserverList.additionCount
            let outer = ObserverList.isObserving ? findOuterObservers() : nil
            let answer = withState { ObserverList.additionCount == additions ? step(&$0, outer) : nil }
            if let answer { return answer }
        }
    }

    /// The observers of all operations, and of what is around this one, those of the outermost composite first. Not inlined, because
    /// what has no observers should not pay for the size of this.
    ///
    /// Complexity: linear in the composites around the operation.
    @inline(never)
    private func findOuterObservers() -> ObserverList? {
        if ObserverRegistration.outerCount.value == 0 { return [] }
        let global = ObserverRegistration.global.withLock { $0 }
        if global.count == ObserverRegistration.outerCount.value { return global }
        var group = parent
        var inner: ObserverList = []
        while let composite = group?.operation {
            let (list, parent) = composite.withState { ($0.eventQueue?.observers, $0.parent) }
            inner = list?.followed(by: inner) ?? inner
            group = parent
        }
        return global.followed(by: inner)
    }

    /// Delivers an event that was noted, unless another thread does.
    @inline(__always)
    func send(_ queue: EventQueue?) {
        queue?.flush(for: self)
    }

    /// Delivers events until there are none. Called by ``EventQueue/flush(for:)``.
    func sendEvents(_ queue: EventQueue) {
        var count = 1
        if let first = queue.first.take() { send(first, of: queue) }
        while queue.pendingCount.add(-count) > 0 {
            // Released after unlocking, as these may be the last references.
            let events = withState { _ in exchange(&queue.later, with: []) }
            for event in events { send(event, of: queue) }
            count = events.count
        }
    }

    /// Calls each observer of an event once that has not been removed.
    private func send(_ entry: EventQueue.Entry, of queue: EventQueue) {
        let event = OperationEvent(
            operation: queue.id, kind: entry.kind, givenName: ownName ?? ownTitle, type: type(of: self),
            nanoseconds: entry.nanoseconds)
        var called: Set<ObjectIdentifier> = []
        for registration in entry.observers where registration.ends.value == 0 {
            let observer = registration.observer
            if entry.observers.count > 1, !called.insert(ObjectIdentifier(observer)).inserted { continue }
            observer.operation(self, emitted: event)
        }
        if case .finished = event.kind { _ = withState { _ in exchange(&queue.observers, with: []) } }
    }

    /// Notes and delivers an event that is no change of the life cycle, unless the operation has finished.
    ///
    /// - Parameter kind: What has happened. Evaluated with the lock held, so that several threads note in order what they see.
    func emit(_ kind: @autoclosure () -> OperationEvent.Kind) {
        send(withObservers { $0.lifecycle.isFinished ? nil : $0.note(kind(), $1) })
    }

    /// Tells observers that `main()` is about to be called, or the children are about to start.
    ///
    /// - Parameter hasGates: Whether the operation has gates, all of which it has passed. If that is not so, nothing is done.
    /// - Returns: Whether that is so, and observers may have been told.
    @discardableResult
    func announceMain(hasGates: Bool) -> Bool {
        guard ObserverList.isObserving, startProblem == nil else { return false }
        let (isNext, event) = withObservers {
            let isNext = $0.lifecycle.isPassingGates && ($0.gates != nil) == hasGates
            return (isNext, isNext ? $0.note(.running, $1) : nil)
        }
        send(event)
        return isNext
    }

    /// Tells observers that the operation has become a child of a composite. Called before it can start.
    func announceAddition(to composite: AsyncOperation) {
        guard ObserverList.isObserving else { return }
        // A thread that has looked up observers before the addition must not note an event for them after it.
        ObserverRegistration.additions.add(1)
        let (id, name) = (composite.observationID, composite.displayName)
        emit(.added(to: id, name: name))
    }
}

// MARK: - Adding observers

extension AsyncOperation {
    /// Adds an observer of the operation and, if it is a composite, of all that is inside it, at any depth, also of what is
    /// added later.
    ///
    /// May be called at any time, on any thread. The observer is given what happens from now on; one that is added to an operation that
    /// has finished is not. It is called once for each event, also if it was added to several operations. It is kept alive until
    /// the operation has finished, or it is removed. ``OperationObserver`` says on which threads and in which order it is called.
    ///
    /// As long as there is any observer of a composite in the process, each event costs a little for each composite around its operation.
    ///
    /// - Parameter observer: The observer. It is not added twice.
    public final func addObserver(_ observer: any OperationObserver) {
        let registration = ObserverRegistration(observer, isOuter: isComposite)
        withState {
            if $0.lifecycle.isFinished || $0.isHidden { return }
            $0.requiredEventQueue().observers.add(registration)
        }
        registration.added()
    }

    /// Removes an observer that was added to this operation. Nothing happens if it was not.
    ///
    /// May be called at any time, on any thread, also inside an observer. Once it has returned, the observer is not called for
    /// this operation, unless it was added to a composite around it, or to all operations, too. Another thread may be about to call it,
    /// or inside it.
    ///
    /// - Parameter observer: The observer.
    public final func removeObserver(_ observer: any OperationObserver) {
        _ = withState { $0.eventQueue?.observers.remove(observer) }
    }

    /// Adds an observer of every `AsyncOperation` in the process, also of those that exist.
    ///
    /// May be called at any time, on any thread. It is kept alive until it is removed.
    ///
    /// - Parameter observer: The observer. It is not added twice.
    public static func addGlobalObserver(_ observer: any OperationObserver) {
        let registration = ObserverRegistration(observer, isOuter: true)
        ObserverRegistration.global.withLock { $0.add(registration) }
        registration.added()
    }

    /// Removes an observer of every operation. Nothing happens if it was not added.
    ///
    /// May be called at any time, on any thread. See ``removeObserver(_:)``.
    ///
    /// - Parameter observer: The observer.
    public static func removeGlobalObserver(_ observer: any OperationObserver) {
        _ = ObserverRegistration.global.withLock { $0.remove(observer) }
    }

    /// Identifies the operation in its events. May be read on any thread, at any time; it does not change.
    public final var observationID: OperationID {
        withState { $0.requiredEventQueue().id }
    }
}

/// Receives the events of operations.
///
/// ```swift
/// final class Logger: OperationObserver {
///     func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
///         switch event.kind {
///         case .waiting(let reason): print("\(event.name) is \(reason)")
///         case .finished(let error?): print("\(event.name) failed: \(error)")
///         default: break
///         }
///     }
/// }
/// ```
///
/// Add an observer to an operation with ``AsyncOperation/addObserver(_:)``, or to all of the process with
/// ``AsyncOperation/addGlobalObserver(_:)``.
public protocol OperationObserver: AnyObject, Sendable {
    /// Called with each event of an operation.
    ///
    /// - With no lock held, so this method may use operations freely: cancel, finish and add them, add and remove observers.
    /// - For each operation one event at a time, in the order in which they have happened: on the thread on which the event has
    ///   happened, or on the one that delivers an earlier event of the same operation. Events of different operations may be delivered
    ///   at the same time, on different threads.
    /// - An event that is caused inside this method is delivered after the method has returned.
    /// - ``OperationEvent/Kind/finished(error:)`` comes after `isFinished` has become true. No other event of the operation follows.
    ///
    /// A method that blocks holds up its thread, which may be that of the operation.
    ///
    /// - Parameters:
    ///   - operation: The operation that the observer was added to, or one inside it.
    ///   - event: What has happened to it.
    func operation(_ operation: AsyncOperation, emitted event: OperationEvent)
}

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
    /// Whether the operation has no events, because only the library knows it.
    var isHidden: Bool { eventQueue === EventQueue.hidden }

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
    ///   - outer: The observers around the operation: see ``AsyncOperation/withObservers(_:)``.
    /// - Returns: The queue, if the caller has to deliver the event after unlocking. If not, another thread does, or no observer sees it.
    @inline(__always)
    mutating func note(_ kind: @autoclosure () -> OperationEvent.Kind, _ outer: ObserverList?) -> EventQueue? {
        outer == nil && eventQueue == nil ? nil : noteObserved(kind(), outer ?? [])
    }

    /// Not inlined, because what has no observers should not pay for the size of this.
    @inline(never)
    private mutating func noteObserved(_ kind: OperationEvent.Kind, _ outer: ObserverList) -> EventQueue? {
        guard !isHidden, let queue = eventQueue ?? (outer.isEmpty ? nil : requiredEventQueue()) else { return nil }
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
    func flush(for operation: AsyncOperation) {
        if let deferred = unsafe pthread_getspecific(Self.key) {
            return unsafe deferred.assumingMemoryBound(to: Deferred.self).pointee.append((operation, self))
        }
        var deferred: Deferred = []
        unsafe withUnsafeMutablePointer(to: &deferred) { deferred in
            unsafe pthread_setspecific(Self.key, deferred)
            operation.sendEvents(self)
            while unsafe !deferred.pointee.isEmpty {
                for (operation, queue) in unsafe exchange(&deferred.pointee, with: []) {
                    operation.sendEvents(queue)
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
    static var isObserving: Bool { ObserverRegistration.count.value != 0 && SchedulingProbe.heedsOthers }

    /// How many outer observers were added, and children of composites. What is looked up before and after an addition differs.
    static var additionCount: Int { SchedulingProbe.heedsOthers ? ObserverRegistration.additions.value : 0 }

    /// Adds an observer, unless it is there.
    mutating func add(_ registration: ObserverRegistration) {
        if !contains(where: { $0.observer === registration.observer }) { append(registration) }
    }

    /// Removes an observer.
    ///
    /// - Returns: Its registration, to be released after unlocking.
    mutating func remove(_ observer: any OperationObserver) -> ObserverRegistration? {
        guard let index = firstIndex(where: { $0.observer === observer }) else { return nil }
        self[index].ends.add(1)
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
    /// How many of these were added, and how many children of composites while there were observers.
    static let additions = AtomicCounter()
    /// Those of the observers of all operations.
    static let global = Locked<ObserverList>([])

    let observer: any OperationObserver
    /// 1 once the observer was removed. Events that happened before may still refer to the registration.
    let ends = AtomicCounter()
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

    /// The observer is where it is looked up.
    func added() {
        if isOuter { Self.additions.add(1) }
    }
}
