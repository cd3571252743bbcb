extension ResourceStateMachine {
    /// Finds a shortest cycle that a request closes which has just been put into its queues.
    ///
    /// A request waits for the one that holds an exclusive resource, and for those before it that wait for other resources,
    /// too. The rest of those before it adds nothing, because they wait for the same holder. A request that was granted waits for
    /// those inside its operation, because that ends after its children. A resource with more than one place is no part of
    /// a cycle here, because any of those that hold it may end first: see ``deadlockedRequests()``.
    func cycle(closedBy start: RequestID) -> [Wait]? {
        guard let request = requests[start], blockedHolderCount > 0 else { return nil }
        // It could only be closed by requests behind this one, whose other resource this one waits for.
        if request.inside.isEmpty, request.resources.count == 1 { return nil }
        var search = CycleSearch(start)
        let around = Set(request.inside)
        while let current = search.next() {
            guard let request = requests[current] else { continue }
            if request.isGranted {
                for inside in request.waitingInside { search.reach(inside, from: current, by: nil) }
                continue
            }
            for wait in waits(of: current, request, &search) {
                if wait.blocker == start || around.contains(wait.blocker) { return search.path(to: current) + [wait] }
                search.reach(wait.blocker, from: current, by: wait)
            }
        }
        return nil
    }

    /// What a request waits for, for certain, unless that has been found before.
    private func waits(of id: RequestID, _ request: Request, _ search: inout CycleSearch) -> [Wait] {
        var found: [Wait] = []
        let exclusive = request.resources.filter { resources[$0]?.isExclusive == true }
        let unexplored = exclusive.filter { search.explore($0, upTo: request.rank) }
        for resource in unexplored {
            for holder in resources[resource]?.holders ?? [] {
                found.append(Wait(request: id, resource: resource, blocker: holder, isHeld: true))
            }
            // Those that wait only for resources that have been explored so far lead to nothing new.
            for (other, waiting) in resources[resource]?.waitingForOthers ?? [:]
            where resources[other]?.isExclusive == true && !search.isExplored(other, upTo: request.rank) {
                for first in waiting where requests[first].map({ $0.rank < request.rank }) ?? false {
                    found.append(Wait(request: id, resource: resource, blocker: first, isHeld: false))
                }
            }
        }
        return found
    }
}

/// A breadth-first search through requests that wait for each other.
private struct CycleSearch {
    typealias Wait = ResourceStateMachine.Wait
    typealias Rank = ResourceStateMachine.Rank

    /// From where a request was reached, and because of which wait; `nil` if it is inside that one.
    private var origins: [RequestID: (from: RequestID, wait: Wait?)] = [:]
    /// Up to which place of their queues resources were explored.
    private var explored: [ResourceID: Rank] = [:]
    private var reached: [RequestID]
    private var place = 0
    private let start: RequestID

    init(_ start: RequestID) {
        self.start = start
        reached = [start]
    }

    mutating func next() -> RequestID? {
        guard place < reached.count else { return nil }
        place += 1
        return reached[place - 1]
    }

    mutating func reach(_ id: RequestID, from current: RequestID, by wait: Wait?) {
        guard id != start, origins[id] == nil else { return }
        origins[id] = (current, wait)
        reached.append(id)
    }

    func isExplored(_ resource: ResourceID, upTo rank: Rank) -> Bool {
        explored[resource].map { $0 >= rank } ?? false
    }

    /// - Returns: Whether it had not been explored so far.
    mutating func explore(_ resource: ResourceID, upTo rank: Rank) -> Bool {
        if isExplored(resource, upTo: rank) { return false }
        explored[resource] = rank
        return true
    }

    /// The waits on the way to a request, in their order.
    func path(to end: RequestID) -> [Wait] {
        var waits: [Wait] = []
        var current = end
        while let origin = origins[current] {
            if let wait = origin.wait { waits.append(wait) }
            current = origin.from
        }
        return waits.reversed()
    }
}

// MARK: - Diagnostics

extension ResourceStateMachine {
    /// The requests that have places of a resource.
    func holders(of id: ResourceID) -> Set<RequestID> {
        resources[id]?.holders ?? []
    }

    /// How many requests wait for a resource.
    func waitingCount(of id: ResourceID) -> Int {
        resources[id]?.waiting.count ?? 0
    }

    /// The resources that a request waits for because it is not the first, or they have no free place.
    func missingResources(of id: RequestID) -> [ResourceID] {
        guard let request = requests[id], !request.isGranted else { return [] }
        return request.resources.filter { resource in
            guard let resource = resources[resource] else { return false }
            return resource.freeCount == 0 || resource.waiting.first?.element != id
        }
    }

    /// The requests that can never end unless one of them is cancelled, assuming that every operation ends that does not wait
    /// for what is inside it. It counts resources with any number of places.
    ///
    /// Complexity: O(n log n) for n requests. For diagnostics.
    func deadlockedRequests() -> Set<RequestID> {
        var future = self
        var open: [RequestID] = []
        for (id, resource) in resources where resource.isRate {
            open += future.permitsReturned(resource.limit, of: id)
        }
        open += future.requests.keys
        while let id = open.popLast() {
            guard let request = future.requests[id], request.isGranted, request.waitingInside.isEmpty else { continue }
            // What is granted because of it, and what is around it, may be able to end now.
            open += future.ended(id, givesBackPermits: true) + request.inside
        }
        return Set(future.requests.keys)
    }
}
