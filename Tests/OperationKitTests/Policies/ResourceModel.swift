/// What ``ResourceStateMachine`` decides, said in the simplest way: lists that are searched from the beginning each time.
struct ResourceModel {
    struct Request {
        let number: Int
        let resources: [Int]
        /// Its own, or that of the request that it came before.
        var priority: Int
        let inside: [Int]
        var isGranted = false
    }

    /// The number of places of each resource.
    let limits: [Int]
    /// Those that wait in their order, and among them the others.
    private(set) var requests: [Request] = []

    init(limits: [Int]) {
        self.limits = limits
    }

    var isExclusive: Bool { limits.allSatisfy { $0 == 1 } }

    /// - Returns: The numbers of the requests that are granted because of that, this one included, and whether this one can never
    ///   be.
    mutating func requested(
        _ resources: [Int], number: Int, priority: Int, inside: [Int]
    ) -> (granted: Set<Int>, isDeadlocked: Bool) {
        var next = self
        var request = Request(number: number, resources: resources, priority: priority, inside: inside)
        let own = requests.firstIndex { !$0.isGranted && $0.priority < priority } ?? requests.count
        let first = requests.firstIndex { isInside(request, whatBlocks: $0) } ?? requests.count
        if first < own { request.priority = requests[first].priority }
        next.requests.insert(request, at: min(own, first))
        if !next.isGrantable(request) {
            var moved: Set<Int> = [number]
            next.makeWay(for: number, &moved)
        }
        let granted = next.grant()
        let isDeadlocked = next.deadlocked().contains(number)
        self = next
        return (granted, isDeadlocked)
    }

    /// - Returns: The numbers of the requests that are granted because of that.
    mutating func ended(_ number: Int) -> Set<Int> {
        requests.removeAll { $0.number == number }
        return grant()
    }

    /// Those that can never end.
    func deadlocked() -> Set<Int> {
        var future = self
        while let next = future.requests.first(where: { $0.isGranted && !future.isBlocked($0) }) {
            _ = future.ended(next.number)
        }
        return Set(future.requests.map(\.number))
    }

    private func isBlocked(_ holder: Request) -> Bool {
        requests.contains { !$0.isGranted && $0.inside.contains(holder.number) }
    }

    /// Whether a request that waits requires what something around the other one has.
    private func isInside(_ request: Request, whatBlocks waiting: Request) -> Bool {
        !waiting.isGranted
            && requests.contains { holder in
                holder.isGranted && request.inside.contains(holder.number)
                    && !Set(holder.resources).isDisjoint(with: waiting.resources)
            }
    }

    /// Moves requests right before one that waits for what is around them.
    private mutating func makeWay(for number: Int, _ moved: inout Set<Int>) {
        guard let request = requests.first(where: { $0.number == number }) else { return }
        for inside in requests where !inside.isGranted && isInside(inside, whatBlocks: request) {
            let places = (
                requests.firstIndex { $0.number == number }, requests.firstIndex { $0.number == inside.number }
            )
            guard let place = places.0, let old = places.1, old > place, moved.insert(inside.number).inserted else {
                continue
            }
            var other = requests.remove(at: old)
            other.priority = requests[place].priority
            requests.insert(other, at: place)
            makeWay(for: inside.number, &moved)
        }
    }

    private mutating func grant() -> Set<Int> {
        var granted: Set<Int> = []
        while let next = requests.firstIndex(where: isGrantable) {
            requests[next].isGranted = true
            granted.insert(requests[next].number)
        }
        return granted
    }

    private func isGrantable(_ request: Request) -> Bool {
        if request.isGranted { return false }
        let isOvertaking = requests.prefix { $0.number != request.number }.contains { other in
            !other.isGranted && !Set(other.resources).isDisjoint(with: request.resources)
        }
        if isOvertaking { return false }
        return request.resources.allSatisfy { resource in
            requests.count { $0.isGranted && $0.resources.contains(resource) } < limits[resource]
        }
    }
}
