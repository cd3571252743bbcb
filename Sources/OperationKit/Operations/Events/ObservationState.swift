/// What an operation knows of its observers, and its events that have not been delivered, as a value.
///
/// One thread at a time delivers: the one whose event finds that none does. Events that happen meanwhile are left to it. The end of a
/// composite is delivered only after those of its children, even if other threads deliver them.
///
/// ```
/// idle ──happened──▶ delivering ──delivered, others left──▶ delivering
///   ▲                    └──────delivered, none left, or the end has to wait──▶ idle
/// ```
struct ObservationState {
    typealias Kind = OperationEvent.Kind

    /// An event that is to be delivered.
    struct Pending {
        let kind: Kind
        let nanoseconds: Int64
        /// What the end of the composite around the operation waits for, if this is the end and is not delivered immediately.
        var hold: DeliveryHold?

        var isEnd: Bool { if case .finished = kind { true } else { false } }
    }

    let id: OperationID
    /// What events call the operation, or `nil` for what its class is called; `nil` if that has to be looked up.
    private(set) var name: String??
    /// The observers of the operation itself.
    private(set) var own: [ObserverRegistration] = []
    /// All that see it, as long as the scope is current.
    private var observers: [ObserverRegistration] = []
    /// What the operation tells its parts if it is a composite; otherwise what it was told.
    private var scope: ObserverScope?
    /// Whether the scope is the operation's own.
    private(set) var isComposite = false

    /// The event that is being delivered.
    private(set) var current: Pending?
    private var next: [Pending] = []
    /// How many children have finished whose end has not been delivered.
    private var undeliveredChildren = 0
    /// Whether the end has happened.
    private(set) var hasEnded = false

    init(id: OperationID) {
        self.id = id
    }
}

// MARK: - Events

extension ObservationState {
    /// Something has happened.
    ///
    /// - Returns: Whether the caller has to deliver it, after unlocking. If not, another thread does, later.
    mutating func happened(_ kind: Kind, at nanoseconds: Int64, hold: @autoclosure () -> DeliveryHold? = nil) -> Bool {
        if hasEnded { return false }
        var event = Pending(kind: kind, nanoseconds: nanoseconds)
        if case .started = kind { name = nil }
        hasEnded = event.isEnd
        if current == nil, !hasEnded || undeliveredChildren == 0 {
            current = event
            return true
        }
        if hasEnded { event.hold = hold() }
        next.append(event)
        return false
    }

    /// The thread that delivers the current event delivers it later than its end allows.
    mutating func currentDeferred(_ hold: DeliveryHold) {
        current?.hold = hold
    }

    /// The current event has been delivered.
    ///
    /// - Returns: Whether the caller has to deliver another one, which is the current one now.
    mutating func delivered() -> Bool {
        current = nil
        return beginDelivery()
    }

    /// The end of a child has happened, and is delivered later.
    mutating func childEndDeferred() {
        undeliveredChildren += 1
    }

    /// The end of a child has been delivered that was deferred.
    ///
    /// - Returns: Whether the caller has to deliver an event, which is the current one now.
    mutating func childEndDelivered() -> Bool {
        undeliveredChildren -= 1
        return current == nil && beginDelivery()
    }

    private mutating func beginDelivery() -> Bool {
        guard let event = next.first, !event.isEnd || undeliveredChildren == 0 else { return false }
        current = next.removeFirst()
        return true
    }
}

// MARK: - Observers

extension ObservationState {
    /// What an operation does not refer to any more. The caller releases it after unlocking: that may release an observer, whose
    /// deinitializer may run arbitrary code.
    typealias Released = [ObserverRegistration]

    /// - Returns: Whether the observer was added: it is not there, and the operation has not finished.
    mutating func add(
        _ registration: ObserverRegistration, of observer: any OperationObserver
    ) -> (isAdded: Bool, released: Released) {
        if hasEnded || own.contains(where: { $0.isOf(observer) }) { return (false, []) }
        own.append(registration)
        return (true, forgetObservers())
    }

    /// - Returns: The registration of an observer of the operation itself, to be ended after unlocking.
    mutating func remove(
        _ observer: any OperationObserver
    ) -> (removed: ObserverRegistration?, released: Released) {
        guard let index = own.firstIndex(where: { $0.isOf(observer) }) else { return (nil, []) }
        return (own.remove(at: index), forgetObservers())
    }

    /// The observers, if they are known.
    var knownObservers: [ObserverRegistration]? {
        if let scope, scope.isCurrent { observers } else { nil }
    }

    /// What a composite tells its parts, if that is known.
    var known: ScopedObservers? {
        if let scope, scope.isCurrent { ScopedObservers(scope: scope, registrations: observers) } else { nil }
    }

    /// The observers were looked up. One that was added to several operations is there several times: any of these additions may
    /// end.
    ///
    /// - Parameters:
    ///   - outer: Those of what the operation is part of, or else those of all operations.
    ///   - isComposite: Whether the operation is a composite, and so has a scope of its own.
    /// - Returns: All observers of the operation, those of what is around it first; `nil` if it has other ones meanwhile. And what
    ///   is to be released after unlocking.
    mutating func inherit(_ outer: ScopedObservers, isComposite: Bool) -> (all: ScopedObservers?, released: Released) {
        // Another thread may have looked them up, too. What is inside the operation may refer to the scope.
        if let known { return (known, []) }
        let inherited = outer.registrations
        // The storage is shared where that is possible.
        let all = inherited.isEmpty ? own : own.isEmpty ? inherited : inherited + own
        guard let outerScope = outer.scope else { return (ScopedObservers(scope: nil, registrations: all), []) }
        let ownScope = isComposite ? ObserverRegistry.makeScope(in: outerScope) : outerScope
        guard let scope = ownScope else { return (nil, []) }
        self.scope = scope
        self.isComposite = isComposite
        return (ScopedObservers(scope: scope, registrations: all), exchange(&observers, with: all))
    }

    /// The operation has other observers than before. What is inside it looks up its own anew, at its next event.
    mutating func forgetObservers() -> Released {
        let scope = scope.take()
        // Not later: another change that finds nothing to forget relies on that.
        if isComposite, let scope { ObserverRegistry.end(scope) }
        return exchange(&observers, with: [])
    }

    /// The last event was delivered.
    mutating func releaseObservers() -> (own: Released, all: Released) {
        (exchange(&own, with: []), forgetObservers())
    }

    /// What events call the operation from now on.
    mutating func named(_ name: String?) {
        self.name = .some(name)
    }
}

/// The end of a child that is delivered later than it happened, for which the end of the composite waits.
final class DeliveryHold: Sendable {
    private enum State {
        case open
        case held(AsyncOperation)
        case delivered
    }

    private let state = Locked(State.open)

    /// Creates one where it is needed.
    static func create(_ hold: inout DeliveryHold?) -> DeliveryHold {
        let created = DeliveryHold()
        hold = created
        return created
    }

    /// The composite waits. It has counted the child already.
    ///
    /// - Returns: Whether the end has not been delivered yet.
    func hold(_ composite: AsyncOperation) -> Bool {
        state.withLock { state in
            if case .delivered = state { return false }
            state = .held(composite)
            return true
        }
    }

    /// The end was delivered.
    ///
    /// - Returns: The composite that waits for it.
    func delivered() -> AsyncOperation? {
        let previous = state.withLock { exchange(&$0, with: .delivered) }
        if case .held(let composite) = previous { return composite }
        return nil
    }
}
