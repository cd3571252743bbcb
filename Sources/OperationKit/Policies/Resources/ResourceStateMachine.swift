/// A state machine that decides which operations get the resources that they require, and in which order.
///
/// A resource has a number of places. A request takes a place of each of its resources, all together or none. Until then it is in
/// the line of each of them. There is one order for all lines: the requests that come from inside a composite that holds a resource, among
/// these by priority and then by arrival; after them the others, in the same way.
///
/// - A request from outside is granted when it is the first in all its lines, and each has a free place. So it keeps its place in
///   each of them, whatever it lacks.
/// - A request from inside is granted when each of its resources has a free place that no earlier one takes. It holds up those from
///   outside only: an earlier one from inside, which lacks another resource, may wait for the end of a composite that ends after it.
///
/// So the requests that are granted and end leave none behind, unless composites need crosswise what the other one holds. A request for
/// what a composite around it holds is refused, because it would never be granted.
///
/// Complexity: O(k log n) for n requests and k resources that an event concerns, for each request that is granted or looked at. A
/// request from inside is looked at when the one resource has a free place that it lacked before.
struct ResourceStateMachine {
    /// What became of a request.
    enum Answer: Equatable {
        case granted(RequestID)
        /// It is granted, refused or ended later.
        case waiting(RequestID)
        /// As many requests wait for this resource as may. There is no request.
        case tooManyWaiting(ResourceID)
        case refused(Refusal)
    }

    /// A composite around a request holds what that requires. There is no request any more.
    struct Refusal: Equatable {
        let resource: ResourceID
        let holder: RequestID
    }

    fileprivate struct Rank: Comparable {
        let priority: Int
        let arrival: Int

        static func < (left: Rank, right: Rank) -> Bool {
            left.priority == right.priority ? left.arrival < right.arrival : left.priority > right.priority
        }
    }

    private struct Resource {
        let limit: Int
        let maximumWaiting: Int
        let isRate: Bool
        var freeCount: Int
        /// The requests that have a place. Places of a rate limit may be taken without one.
        var holders: Set<RequestID> = []
        /// How many of these are composites.
        var compositeCount = 0
        /// How many requests from inside wait, wherever they are looked at.
        var insideCount = 0
        /// Of the requests from inside those for which this is the resource that they lack.
        var inside = IndexedHeap<Rank, RequestID>()
        var outside = IndexedHeap<Rank, RequestID>()

        var waitingCount: Int { insideCount + outside.count }

        /// Whether another request may neither have a place nor wait.
        var isFull: Bool { (freeCount == 0 || waitingCount > 0) && waitingCount >= maximumWaiting }
    }

    private struct Request {
        let resources: [ResourceID]
        let rank: Rank
        let isComposite: Bool
        /// The request of the nearest composite around that holds something.
        var holder: RequestID?
        var isGranted = false
        /// Where it is in the lines: in all of them, or from inside in one.
        var places: [(resource: ResourceID, id: HeapElementID)] = []
    }

    private var resources: [ResourceID: Resource] = [:]
    private var requests: [RequestID: Request] = [:]
    private var lastNumber = 0
    /// How many composites hold resources.
    private(set) var holdingCompositeCount = 0
}

/// Identifies a resource of a ``ResourceStateMachine``.
struct ResourceID: Hashable {
    fileprivate let number: Int
}

/// Identifies a request for resources of a ``ResourceStateMachine``.
struct RequestID: Hashable {
    fileprivate let number: Int
}

// MARK: - Events of resources

extension ResourceStateMachine {
    /// A resource was created.
    ///
    /// - Parameters:
    ///   - limit: The number of its places, at least 1.
    ///   - maximumWaiting: How many requests may wait for it.
    ///   - isRate: Whether places come back with ``permitsReturned(_:of:)``, and not when the request that used them ends.
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

    private mutating func makeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }
}

// MARK: - Events of requests

extension ResourceStateMachine {
    /// An operation requires resources.
    ///
    /// - Parameters:
    ///   - required: The resources, each once.
    ///   - priority: A higher one comes first.
    ///   - isComposite: Whether other requests may come from inside the operation.
    ///   - holder: The request of the nearest composite around it that holds something.
    /// - Returns: What became of the request. Every request that there is has to be ended.
    mutating func requested(
        _ required: [ResourceID], priority: Int = 0, isComposite: Bool = false, inside holder: RequestID? = nil
    ) -> Answer {
        let number = makeNumber()
        let id = RequestID(number: number)
        let request = Request(
            resources: required, rank: Rank(priority: priority, arrival: number), isComposite: isComposite,
            holder: holder)
        if let refusal = refusal(of: request) { return .refused(refusal) }
        let isGranted = isGrantable(request)
        if !isGranted, let full = required.first(where: { resources[$0]?.isFull == true }) {
            return .tooManyWaiting(full)
        }
        requests[id] = request
        if isGranted { takePlaces(id) } else { enterLines(id) }
        return isGranted ? .granted(id) : .waiting(id)
    }

    /// The operation of a request, which may have been granted, has come inside a composite that holds something, or is inside
    /// one that has begun to, also where a nearer one does.
    ///
    /// - Parameters:
    ///   - id: The request. One that has ended is ignored.
    ///   - holder: The request of the nearest such composite.
    /// - Returns: Why the request is refused, if it is, and the requests that are granted because of the change.
    mutating func enclosed(_ id: RequestID, by holder: RequestID) -> (refusal: Refusal?, granted: [RequestID]) {
        guard let request = requests[id], id != holder else { return (nil, []) }
        if request.isGranted {
            requests[id]?.holder = holder
            return (nil, [])
        }
        leaveLines(id)
        requests[id]?.holder = holder
        let refusal = requests[id].flatMap { self.refusal(of: $0) }
        if refusal == nil { enterLines(id) } else { requests.forget(id) }
        return (refusal, grantFirst(of: request.resources))
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
                if request.isComposite { resources[resource]?.compositeCount -= 1 }
                if givesBackPermits || resources[resource]?.isRate == false { resources[resource]?.freeCount += 1 }
            }
            if request.isComposite { holdingCompositeCount -= 1 }
        } else {
            leaveLines(id)
        }
        requests.forget(id)
        return grantFirst(of: request.resources)
    }

    /// Whether a request was granted, and has a place of something other than a rate limit.
    func holdsSomething(_ id: RequestID) -> Bool {
        guard let request = requests[id], request.isGranted else { return false }
        return request.resources.contains { resources[$0]?.isRate == false }
    }

    /// Looks for a resource of a request that a composite around it holds.
    ///
    /// Complexity: O(1) if no composite holds any of its resources; otherwise linear in the composites around it.
    private func refusal(of request: Request) -> Refusal? {
        let held = request.resources.filter { resources[$0].map { !$0.isRate && $0.compositeCount > 0 } == true }
        var next = held.isEmpty ? nil : request.holder
        while let holder = next {
            if let resource = held.first(where: { resources[$0]?.holders.contains(holder) == true }) {
                return Refusal(resource: resource, holder: holder)
            }
            next = requests[holder]?.holder
        }
        return nil
    }
}

// MARK: - Granting

extension ResourceStateMachine {
    private func hasFreePlaces(_ request: Request) -> Bool {
        request.resources.allSatisfy { resources[$0].map { $0.freeCount > 0 } == true }
    }

    /// Whether there are free places for a request, and no other one comes before it.
    private func isGrantable(_ request: Request) -> Bool {
        guard hasFreePlaces(request) else { return false }
        return request.holder != nil
            || request.resources.allSatisfy { id in
                guard let resource = resources[id], resource.insideCount == 0 else { return false }
                return resource.outside.first.map { request.rank <= $0.key } ?? true
            }
    }

    /// Grants requests, beginning with these resources, as long as there are places for the first ones.
    private mutating func grantFirst(of touched: [ResourceID]) -> [RequestID] {
        var granted: [RequestID] = []
        var open = touched
        while let first = firstInside(of: touched), let request = requests[first] {
            leaveLines(first)
            if hasFreePlaces(request) {
                takePlaces(first)
                granted.append(first)
                open += request.resources
            } else {
                // It lacks another resource now, and is looked at there.
                enterLines(first)
            }
        }
        while let id = open.popLast() {
            guard let first = resources[id]?.outside.first?.element, let request = requests[first],
                isGrantable(request)
            else { continue }
            leaveLines(first)
            takePlaces(first)
            granted.append(first)
            // Others may be the first in its lines now.
            open += request.resources
        }
        return granted
    }

    /// The first request from inside that lacked one of these resources, of which there is a free place now.
    private func firstInside(of touched: [ResourceID]) -> RequestID? {
        touched.compactMap { id in resources[id].flatMap { $0.freeCount > 0 ? $0.inside.first : nil } }
            .min { $0.key < $1.key }?.element
    }

    private mutating func takePlaces(_ id: RequestID) {
        guard let request = requests[id] else { return }
        requests[id]?.isGranted = true
        if request.isComposite { holdingCompositeCount += 1 }
        for resource in request.resources {
            resources[resource]?.freeCount -= 1
            resources[resource]?.holders.insert(id)
            if request.isComposite { resources[resource]?.compositeCount += 1 }
        }
    }

    private mutating func enterLines(_ id: RequestID) {
        guard let request = requests[id] else { return }
        let isInside = request.holder != nil
        if isInside { for resource in request.resources { resources[resource]?.insideCount += 1 } }
        // One that lacks nothing is looked at where it is, before anything else happens.
        let lacking = request.resources.first { resources[$0]?.freeCount == 0 } ?? request.resources.first
        for resource in request.resources where !isInside || resource == lacking {
            let line = isInside ? \Resource.inside : \Resource.outside
            if let place = resources[resource]?[keyPath: line].insert(id, key: request.rank) {
                requests[id]?.places.append((resource, place))
            }
        }
    }

    private mutating func leaveLines(_ id: RequestID) {
        guard let request = requests[id] else { return }
        let isInside = request.holder != nil
        if isInside { for resource in request.resources { resources[resource]?.insideCount -= 1 } }
        let line = isInside ? \Resource.inside : \Resource.outside
        for (resource, place) in request.places { _ = resources[resource]?[keyPath: line].remove(place) }
        requests[id]?.places = []
    }
}

// MARK: - Diagnostics

extension ResourceStateMachine {
    /// How many requests wait for a resource.
    func waitingCount(of id: ResourceID) -> Int {
        resources[id]?.waitingCount ?? 0
    }

    /// The resources that a request waits for because others come before it, or they have no free place, with so many holders of
    /// each: none of a rate limit, whose places do not come back when these end. `nil` if it does not wait.
    func missing(for id: RequestID, holdersAtMost count: Int) -> [MissingResource<RequestID>]? {
        guard let request = requests[id], !request.isGranted else { return nil }
        return request.resources.compactMap { resourceID in
            guard let resource = resources[resourceID] else { return nil }
            var first: RequestID?
            if resource.freeCount > 0 {
                if request.holder != nil { return nil }
                first = resource.insideCount > 0 ? resource.inside.first?.element : resource.outside.first?.element
                if first == id { return nil }
            }
            return MissingResource(
                resource: resourceID, holders: resource.isRate ? [] : Array(resource.holders.prefix(count)),
                first: first)
        }
    }
}
