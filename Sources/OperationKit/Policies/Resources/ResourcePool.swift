/// A resource that a request waits for.
struct MissingResource<Holder> {
    let resource: ResourceID
    /// Some of the requests or operations that hold it.
    let holders: [Holder]
    /// The one that comes first, if the resource is free.
    let first: Holder?
}

/// Decides about all resources of the process.
///
/// Nothing is called with its lock held. The locks of an operation and of its lease may be held around it.
final class ResourcePool: Sendable {
    static let shared = ResourcePool()

    private struct State {
        var machine = ResourceStateMachine()
        var entries: [RequestID: WeakReference<ResourceLease>] = [:]

        /// - Returns: The leases of requests, without those that are being freed: these end their requests.
        func leases(of requests: [RequestID]) -> [ResourceLease] {
            requests.compactMap { entries[$0]?.object }
        }

        mutating func ended(_ id: RequestID, givesBackPermits: Bool) -> [ResourceLease] {
            entries.forget(id)
            let granted = machine.ended(id, givesBackPermits: givesBackPermits)
            return leases(of: granted)
        }
    }

    private let state = Locked(State())

    // MARK: - Resources

    /// Tells or asks what concerns a resource alone.
    func withMachine<Answer>(_ body: (inout ResourceStateMachine) -> Answer) -> Answer {
        state.withLock { body(&$0.machine) }
    }

    /// Permits of a rate limit can be used again. Called with nothing locked.
    func permitsReturned(_ count: Int, of id: ResourceID) {
        let granted = state.withLock { state in
            let granted = state.machine.permitsReturned(count, of: id)
            return state.leases(of: granted)
        }
        for lease in granted { lease.granted() }
    }

    // MARK: - Requests. The caller notifies the leases that are returned, after unlocking

    /// Requests resources, which have to be given back with ``ended(_:givesBackPermits:)`` if there is a request.
    func requested(
        _ resources: [ResourceID], for lease: ResourceLease, priority: Int, isComposite: Bool, inside holder: RequestID?
    ) -> ResourceStateMachine.Answer {
        state.withLock { state in
            let answer = state.machine.requested(
                resources, priority: priority, isComposite: isComposite, inside: holder)
            switch answer {
            case .granted(let id), .waiting(let id): state.entries[id] = WeakReference(lease)
            case .tooManyWaiting, .refused: break
            }
            return answer
        }
    }

    /// The operation of a request has ended, or does not want the resources any more. Called any number of times.
    func ended(_ id: RequestID, givesBackPermits: Bool) -> [ResourceLease] {
        state.withLock { $0.ended(id, givesBackPermits: givesBackPermits) }
    }

    /// Ends a request whose time is over.
    ///
    /// - Returns: `nil` if it has been granted or ended.
    func expired(_ id: RequestID) -> [ResourceLease]? {
        state.withLock { state in
            guard state.machine.missing(for: id, holdersAtMost: 0) != nil else { return nil }
            return state.ended(id, givesBackPermits: false)
        }
    }

    /// A request is inside a composite that holds something.
    ///
    /// - Returns: Why it is refused, if it is. There is no request any more then.
    func enclosed(
        _ id: RequestID, by holder: RequestID
    ) -> (refusal: ResourceStateMachine.Refusal?, granted: [ResourceLease]) {
        state.withLock { state in
            let (refusal, granted) = state.machine.enclosed(id, by: holder)
            if refusal != nil { state.entries.forget(id) }
            return (refusal, state.leases(of: granted))
        }
    }

    /// The request of the nearest composite around an operation that holds something. Called with nothing locked.
    ///
    /// Complexity: linear in the operations around it up to that composite, if there is any in the process that holds something.
    func holder(around operation: AsyncOperation) -> RequestID? {
        if SchedulingProbe.heedsOthers, state.withLock({ $0.machine.holdingCompositeCount }) == 0 { return nil }
        for surrounding in operation.surroundingOperations {
            if let id = surrounding.resourceLease?.requestID, state.withLock({ $0.machine.holdsSomething(id) }) {
                return id
            }
        }
        return nil
    }

    // MARK: - Diagnostics

    /// The operation of a request. Called with nothing locked.
    func operation(of id: RequestID) -> AsyncOperation? {
        state.withLock { $0.entries[id]?.object }?.operation
    }

    /// What a request waits for; `nil` if it does not wait. Called with nothing locked.
    func missingResources(for id: RequestID) -> [MissingResource<AsyncOperation>]? {
        let missing = state.withLock { state in
            state.machine.missing(for: id, holdersAtMost: 3)?.map { missing in
                (
                    missing.resource, state.leases(of: missing.holders),
                    missing.first.flatMap { state.entries[$0]?.object }
                )
            }
        }
        return missing?.map { resource, holders, first in
            MissingResource(resource: resource, holders: holders.compactMap(\.operation), first: first?.operation)
        }
    }
}
