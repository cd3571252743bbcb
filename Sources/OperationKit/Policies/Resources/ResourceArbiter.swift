import Foundation

/// Decides about all resources of the process, and lets operations go on when they get theirs.
///
/// Nothing is called with its lock held: operations are let go on, and asked for their names, after unlocking. The lock of an
/// operation that makes a request, or ends one, may be held around it, and nothing is locked inside.
final class ResourceArbiter: Sendable {
    static let shared = ResourceArbiter()

    /// What became of a request.
    enum Answer {
        case granted(RequestID)
        /// The operation's `preparationEnded()` is called once it is granted.
        case waiting(RequestID)
        case tooManyWaiting(ResourceID)
        case cycle([ResourceWait])
    }

    /// A resource that a request waits for.
    struct MissingResource {
        let resource: ResourceID
        /// The names of the operations that hold it, some of them.
        let holders: [String]
        /// The name of the operation that comes first, if the resource is free.
        let first: String?
    }

    fileprivate struct Entry: Sendable {
        weak var operation: AsyncOperation?
        /// The identity of a composite that was granted what it requires.
        var composite: ObjectIdentifier?
    }

    fileprivate struct State: Sendable {
        var machine = ResourceStateMachine()
        var names: [ResourceID: String] = [:]
        var entries: [RequestID: Entry] = [:]
        /// The requests of composites that were granted.
        var composites: [ObjectIdentifier: RequestID] = [:]
    }

    private let state = Locked(State())

    // MARK: - Resources

    func resourceAdded(name: String, limit: Int, maximumWaiting: Int, isRate: Bool) -> ResourceID {
        state.withLock { state in
            let id = state.machine.resourceAdded(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate)
            state.names[id] = name
            return id
        }
    }

    func resourceRemoved(_ id: ResourceID) {
        state.withLock { state in
            state.machine.resourceRemoved(id)
            state.names[id] = nil
        }
    }

    /// Permits of a rate limit can be used again. Called with nothing locked.
    func permitsReturned(_ count: Int, of id: ResourceID) {
        granted { $0.machine.permitsReturned(count, of: id) }.preparationEnded()
    }

    // MARK: - Requests

    /// Requests resources for an operation, which has to be ended with ``ended(_:givesBackPermits:)`` if there is a request.
    /// Called with nothing locked.
    ///
    /// - Parameters:
    ///   - resources: What it requires.
    ///   - operation: The operation.
    ///   - accepted: Called with the request, if there is one, with the operation's lock held: the operation ends after that.
    /// - Returns: `nil` if the operation has ended, or was cancelled. It requests nothing then.
    func request(
        _ resources: [ResourceID], for operation: AsyncOperation, accepted: (RequestID) -> Void
    ) -> Answer? {
        // Both may be overridden.
        let priority = operation.queuePriority.rawValue
        let parents =
            state.withLock { $0.composites.isEmpty } ? [] : RunningPrerequisites.shared.operationsAround(operation)
        let made = operation.withState { state -> (ResourceStateMachine.Answer, [Participants], [AsyncOperation])? in
            guard state.lifecycle.isPreparing else { return nil }
            let made = request(resources, for: operation, priority, parents)
            switch made.0 {
            case .granted(let id), .waiting(let id, _): accepted(id)
            case .tooManyWaiting, .cycle: break
            }
            return made
        }
        guard let (answer, waits, others) = made else { return nil }
        others.preparationEnded()
        return switch answer {
        case .granted(let id): .granted(id)
        case .waiting(let id, _): .waiting(id)
        case .tooManyWaiting(let id): .tooManyWaiting(id)
        case .cycle: .cycle(waits.map { $0.named(without: operation) })
        }
    }

    /// - Returns: The answer, the operations of a cycle, and those that are granted what they wait for.
    private func request(
        _ resources: [ResourceID], for operation: AsyncOperation, _ priority: Int, _ parents: [AsyncOperation]
    ) -> (ResourceStateMachine.Answer, [Participants], [AsyncOperation]) {
        state.withLock { state in
            let inside = parents.compactMap { state.request(heldBy: $0) }
            let answer = state.machine.requested(resources, priority: priority, inside: inside)
            switch answer {
            case .granted(let id):
                state.entries[id] = Entry(operation: operation)
                state.granted(id, operation)
            case .waiting(let id, let others):
                state.entries[id] = Entry(operation: operation)
                return (answer, [], state.granted(others))
            case .cycle(let waits): return (answer, waits.map { state.participants(of: $0) }, [])
            case .tooManyWaiting: break
            }
            return (answer, [], [])
        }
    }

    /// The operation of a request has ended, or does not want the resources any more. Called any number of times. The lock of
    /// that operation may be held.
    ///
    /// - Returns: The operations that are granted theirs because of that, for the caller to tell them after unlocking.
    func ended(_ id: RequestID, givesBackPermits: Bool) -> [AsyncOperation] {
        granted { state in
            state.removeEntry(of: id)
            return state.machine.ended(id, givesBackPermits: givesBackPermits)
        }
    }

    /// Ends a request whose time is over, unless it has been granted or ended. Called with nothing locked.
    ///
    /// - Returns: What it has waited for; `nil` if it does not wait.
    func expired(_ id: RequestID) -> [MissingResource]? {
        // Asked before, because names may be overridden, and the holders are known now.
        guard let missing = missingResources(of: id) else { return nil }
        var isWaiting = false
        let granted = granted { state in
            guard state.machine.requests[id]?.isGranted == false else { return [] }
            isWaiting = true
            state.removeEntry(of: id)
            return state.machine.ended(id)
        }
        granted.preparationEnded()
        return isWaiting ? missing : nil
    }

    /// The operations whose requests are granted because of a change.
    private func granted(because change: (inout State) -> [RequestID]) -> [AsyncOperation] {
        state.withLock { state in
            let granted = change(&state)
            return state.granted(granted)
        }
    }
}

// MARK: - Diagnostics

extension ResourceArbiter {
    /// How many operations wait for a resource.
    func waitingCount(of id: ResourceID) -> Int {
        state.withLock { $0.machine.waitingCount(of: id) }
    }

    /// What a request waits for; `nil` if it does not wait. Called with nothing locked, because operations are asked for their
    /// names.
    func missingResources(of id: RequestID, namesAtMost count: Int = 3) -> [MissingResource]? {
        let missing = state.withLock { state -> [(ResourceID, [AsyncOperation], AsyncOperation?)]? in
            guard state.machine.requests[id]?.isGranted == false else { return nil }
            return state.machine.missingResources(of: id).map { resource in
                let holders = state.machine.holders(of: resource).prefix(count)
                let isFree = (state.machine.resources[resource]?.freeCount ?? 0) > 0
                let first = isFree ? state.machine.resources[resource]?.waiting.first?.element : nil
                let operations = holders.compactMap { state.entries[$0]?.operation }
                return (resource, operations, first.flatMap { state.entries[$0]?.operation })
            }
        }
        return missing?.map { resource, holders, first in
            MissingResource(
                resource: resource, holders: holders.map(\.displayName).sorted(), first: first?.displayName)
        }
    }

    /// Whether a request can never be granted, unless an operation is cancelled, because operations that hold resources wait for
    /// operations inside them, and these for each other. Not found where very many operations wait.
    func isDeadlocked(_ id: RequestID) -> Bool {
        let machine = state.withLock { state in
            state.machine.blockedHolderCount > 0 && state.machine.requests.count <= 10_000 ? state.machine : nil
        }
        return machine?.deadlockedRequests().contains(id) ?? false
    }
}

// MARK: - Names of operations

extension ResourceArbiter {
    /// A wait with its operations, to be named after unlocking.
    fileprivate struct Participants {
        let waiting: AsyncOperation?
        let resource: String
        let blocker: AsyncOperation?

        /// Asks the operations for their names; the one whose request was refused is not known any more.
        func named(without operation: AsyncOperation) -> ResourceWait {
            ResourceWait(
                operation: (waiting ?? operation).displayName, resource: resource,
                blocker: (blocker ?? operation).displayName)
        }
    }
}

extension ResourceArbiter.State {
    /// - Returns: The operations of requests that were granted, without those that are being freed: these end their requests.
    fileprivate mutating func granted(_ ids: [RequestID]) -> [AsyncOperation] {
        ids.compactMap { id in
            guard let operation = entries[id]?.operation else { return nil }
            granted(id, operation)
            return operation
        }
    }

    fileprivate mutating func granted(_ id: RequestID, _ operation: AsyncOperation) {
        guard operation.children != nil else { return }
        let identity = ObjectIdentifier(operation)
        entries[id]?.composite = identity
        composites[identity] = id
    }

    fileprivate mutating func removeEntry(of id: RequestID) {
        guard let entry = entries.removeValue(forKey: id), let composite = entry.composite else { return }
        // Another composite may have come into the place of one that was freed.
        if composites[composite] == id { composites[composite] = nil }
    }

    /// The request of a composite that was granted. The caller holds the composite, so that it is not released here.
    fileprivate func request(heldBy composite: AsyncOperation) -> RequestID? {
        guard let id = composites[ObjectIdentifier(composite)], entries[id]?.operation === composite else { return nil }
        return id
    }

    fileprivate func participants(of wait: ResourceStateMachine.Wait) -> ResourceArbiter.Participants {
        ResourceArbiter.Participants(
            waiting: entries[wait.request]?.operation, resource: names[wait.resource] ?? "",
            blocker: entries[wait.blocker]?.operation)
    }
}
