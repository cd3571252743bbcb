/// A state machine that decides which operations get the resources that they require, and in which order.
///
/// A resource has a number of places. A request for several resources takes a place of each, all together or none. Those that
/// have to wait are in the queue of each of their resources, by priority and then by arrival. A request is granted when it is
/// the first in all its queues, and each of the resources has a free place. So no request overtakes another one where both
/// need the same resource, even if that one still waits for something else.
///
/// An operation ends after those inside it. So a request inside an operation that was granted what it requires comes before those
/// that wait for the same: see the part about the order. The first of all that wait then waits only for requests that were
/// granted, and for none of these that waits for one inside it. So requests that are granted and end leave none behind, unless
/// operations hold crosswise what those inside them need, which is a cycle.
///
/// A request exists from ``requested(_:priority:inside:)`` to ``ended(_:givesBackPermits:)``, whether it is granted in
/// between or not. All resources whose requests may overlap have to be in the same machine.
///
/// Complexity: every event costs O(k log n) for n requests that wait, and k resources of the requests that it changes,
/// apart from requests inside others: see ``requested(_:priority:inside:)``.
struct ResourceStateMachine: Sendable {
    /// What became of a request.
    enum Answer: Equatable, Sendable {
        case granted(RequestID)
        /// It is granted, or ended, later. Others inside what it waits for come first now, and these of them are granted.
        case waiting(RequestID, granted: [RequestID])
        /// As many requests wait for this resource as may. There is no request.
        case tooManyWaiting(ResourceID)
        /// The requests would wait for each other for good: each one for what the operation around the next one holds, the last
        /// one for what an operation around this one does. There is no request.
        case cycle([Wait])
    }

    /// A request that waits for a resource that another one holds.
    struct Wait: Equatable, Sendable {
        let request: RequestID
        let resource: ResourceID
        let blocker: RequestID
    }

    var resources: [ResourceID: Resource] = [:]
    var requests: [RequestID: Request] = [:]
    /// The number of requests that were granted, and inside whose operations others wait.
    private(set) var blockedHolderCount = 0
    private var lastNumber = 0

    struct Resource: Sendable {
        let limit: Int
        let maximumWaiting: Int
        let isRate: Bool
        var freeCount: Int
        /// The requests that have a place. Places of a rate limit may be taken without one.
        var holders: Set<RequestID> = []
        var waiting = IndexedHeap<Rank, RequestID>()
        /// No request that waits inside the operation of a holder comes after this.
        var lastInside: Rank?

        /// Whether another request may neither have a place nor wait.
        var isFull: Bool { (freeCount == 0 || !waiting.isEmpty) && waiting.count >= maximumWaiting }

        /// Whether the one that holds it can be told for certain.
        var isExclusive: Bool { limit == 1 && !isRate }
    }

    struct Request: Sendable {
        let resources: [ResourceID]
        var rank: Rank
        /// The requests of operations around this one's that were granted before.
        let inside: [RequestID]
        var isGranted = false
        /// Where it is in the queues of its resources, until it is granted.
        var places: [HeapElementID] = []
        /// The requests that wait inside the operation of this one, by the resources that they require.
        var waitingInside: [ResourceID: Set<RequestID>] = [:]
    }

    mutating func makeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }
}

/// Identifies a resource of a ``ResourceStateMachine``.
struct ResourceID: Hashable, Sendable {
    fileprivate let number: Int
}

/// Identifies a request for resources of a ``ResourceStateMachine``.
struct RequestID: Hashable, Sendable {
    fileprivate let number: Int
}

// MARK: - Events of resources

extension ResourceStateMachine {
    /// A resource was created.
    ///
    /// - Parameters:
    ///   - limit: The number of its places, at least 1.
    ///   - maximumWaiting: How many requests may wait for it.
    ///   - isRate: Whether places come back with ``permitsReturned(_:of:)``, and not when the request that used them
    ///     ends.
    /// - Returns: The identifier of the resource.
    mutating func resourceAdded(limit: Int, maximumWaiting: Int = .max, isRate: Bool = false) -> ResourceID {
        let id = ResourceID(number: makeNumber())
        resources[id] = Resource(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate, freeCount: limit)
        return id
    }

    /// A resource was released. There are no requests for it.
    mutating func resourceRemoved(_ id: ResourceID) {
        resources[id] = nil
    }

    /// The time has come at which places of a rate limit can be used again.
    ///
    /// - Returns: The requests that are granted because of that.
    mutating func permitsReturned(_ count: Int, of id: ResourceID) -> [RequestID] {
        guard let resource = resources[id] else { return [] }
        resources[id]?.freeCount = min(resource.freeCount + count, resource.limit)
        return grantFirst(of: [id])
    }
}

// MARK: - Events of requests

extension ResourceStateMachine {
    /// An operation requires resources.
    ///
    /// - Parameters:
    ///   - required: The resources. One that is there twice counts once.
    ///   - priority: A higher one comes first.
    ///   - inside: The requests of operations around it that were granted.
    /// - Returns: What became of the request. Every request that there is has to be ended.
    ///
    /// Complexity: as of all events. A request inside operations looks at resources that others wait for inside the operations
    /// that it waits for, and so on: at each once. One that comes before requests inside what it waits for moves these.
    mutating func requested(
        _ required: [ResourceID], priority: Int = 0, inside: [RequestID] = []
    ) -> Answer {
        let number = makeNumber()
        let id = RequestID(number: number)
        var unique: [ResourceID] = []
        for resource in required where !unique.contains(resource) { unique.append(resource) }
        let rank = rank(of: number, priority: priority, inside: inside)
        requests[id] = Request(resources: unique, rank: rank, inside: inside)
        if isGrantable(unique, rank) {
            takePlaces(id, unique)
            return .granted(id)
        }
        if let full = unique.first(where: { resources[$0]?.isFull == true }) {
            requests[id] = nil
            return .tooManyWaiting(full)
        }
        if let cycle = cycle(closedBy: id) {
            requests[id] = nil
            return .cycle(cycle)
        }
        enqueue(id)
        let touched = makeWay(for: id).flatMap { requests[$0]?.resources ?? [] }
        return .waiting(id, granted: grantFirst(of: touched))
    }

    /// The operation of a request has ended, or does not want the resources any more.
    ///
    /// - Parameters:
    ///   - id: The request. One that has ended already is ignored.
    ///   - givesBackPermits: Whether places of rate limits were not used, because the work has not begun.
    /// - Returns: The requests that are granted because of that.
    mutating func ended(_ id: RequestID, givesBackPermits: Bool = false) -> [RequestID] {
        guard let request = requests[id] else { return [] }
        if request.isGranted {
            for resource in request.resources {
                resources[resource]?.holders.remove(id)
                if givesBackPermits || resources[resource]?.isRate == false { resources[resource]?.freeCount += 1 }
            }
            if !request.waitingInside.isEmpty { blockedHolderCount -= 1 }
        } else {
            dequeue(id)
        }
        requests[id] = nil
        return grantFirst(of: request.resources)
    }
}

// MARK: - Granting

extension ResourceStateMachine {
    /// Whether a request that has this rank is the first for all these resources, with free places.
    private func isGrantable(_ required: [ResourceID], _ rank: Rank) -> Bool {
        required.allSatisfy { id in
            guard let resource = resources[id], resource.freeCount > 0 else { return false }
            return resource.waiting.first.map { rank <= $0.key } ?? true
        }
    }

    /// Grants requests as long as one is the first of its queues, with free places, beginning with these resources.
    private mutating func grantFirst(of touched: [ResourceID]) -> [RequestID] {
        var granted: [RequestID] = []
        var open = touched
        while let id = open.popLast() {
            guard let first = resources[id]?.waiting.first?.element, let request = requests[first],
                isGrantable(request.resources, request.rank)
            else { continue }
            dequeue(first)
            takePlaces(first, request.resources)
            granted.append(first)
            // It has left its queues, so others may be the first now.
            open += request.resources
        }
        return granted
    }

    private mutating func takePlaces(_ id: RequestID, _ required: [ResourceID]) {
        requests[id]?.isGranted = true
        for resource in required {
            resources[resource]?.freeCount -= 1
            resources[resource]?.holders.insert(id)
        }
    }

    /// Puts a request into the queues of its resources.
    private mutating func enqueue(_ id: RequestID) {
        guard let request = requests[id] else { return }
        requests[id]?.places = request.resources.compactMap { resources[$0]?.waiting.insert(id, key: request.rank) }
        for holder in request.inside {
            guard let around = requests[holder] else { continue }
            if around.waitingInside.isEmpty { blockedHolderCount += 1 }
            for resource in request.resources { requests[holder]?.waitingInside[resource, default: []].insert(id) }
            for resource in around.resources where resources[resource]?.lastInside.map({ $0 < request.rank }) ?? true {
                resources[resource]?.lastInside = request.rank
            }
        }
    }

    /// Takes a request out of the queues of its resources. Its places are not valid any more.
    mutating func leaveQueues(_ request: Request) {
        for (resource, place) in zip(request.resources, request.places) {
            _ = resources[resource]?.waiting.remove(place)
        }
    }

    private mutating func dequeue(_ id: RequestID) {
        guard let request = requests[id] else { return }
        leaveQueues(request)
        requests[id]?.places = []
        for holder in request.inside where requests[holder]?.waitingInside.isEmpty == false {
            for resource in request.resources {
                requests[holder]?.waitingInside[resource]?.remove(id)
                if requests[holder]?.waitingInside[resource]?.isEmpty == true {
                    requests[holder]?.waitingInside[resource] = nil
                }
            }
            if requests[holder]?.waitingInside.isEmpty == true { blockedHolderCount -= 1 }
        }
    }
}
