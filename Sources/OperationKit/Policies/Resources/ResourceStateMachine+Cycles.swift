extension ResourceStateMachine {
    /// Finds a shortest cycle that a request would close.
    ///
    /// A request waits for the one that holds an exclusive resource. That waits for those inside its operation, because the
    /// operation ends after them. So only a request inside another one can close a cycle. To be behind others is no part of one:
    /// see the part about the order. Nor is a resource with more than one place, because any of those that hold it may
    /// end first: see ``deadlockedRequests()``.
    ///
    /// Complexity: looks at each resource once, whatever the number of requests that wait for it.
    func cycle(closedBy start: RequestID) -> [Wait]? {
        guard let request = requests[start], !request.inside.isEmpty else { return nil }
        let around = Set(request.inside)
        // Breadth first. Each wait comes because of an earlier one.
        var waits: [(wait: Wait, origin: Int?)] = []
        var explored: Set<ResourceID> = []
        func explore(_ resource: ResourceID, by request: RequestID, _ origin: Int?) {
            guard let entry = resources[resource], entry.isExclusive, let holder = entry.holders.first,
                explored.insert(resource).inserted
            else { return }
            waits.append((Wait(request: request, resource: resource, blocker: holder), origin))
        }
        for resource in request.resources { explore(resource, by: start, nil) }
        var place = 0
        while place < waits.count {
            let blocker = waits[place].wait.blocker
            if around.contains(blocker) {
                return sequence(first: place) { waits[$0].origin }.map { waits[$0].wait }.reversed()
            }
            for (resource, waiting) in requests[blocker]?.waitingInside ?? [:] {
                if let inside = waiting.first { explore(resource, by: inside, place) }
            }
            place += 1
        }
        return nil
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
