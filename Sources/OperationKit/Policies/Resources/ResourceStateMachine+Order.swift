// The order of requests: by priority, then by arrival, but those inside operations come before those that wait for what these hold.
//
// An operation that holds a resource ends after those inside it. So of the requests that wait for the resource, none is granted
// before the ones that wait inside the operation, whatever the order: to let these come first delays none. If they came
// later, they might wait behind one that waits for the operation around them, and so for good. A place before others is
// one in all queues, so a request also comes before those that are behind such a one because of another resource. Where a
// resource has several places, it may come before one that would be granted when another holder ends.
//
// There are two events. A request inside operations arrives: it comes right before the first that waits for what they hold. A
// request arrives, at whatever place, that waits for what operations hold: the requests that wait inside them, and would be
// behind, come right before it, and so do, before these, the ones inside what they wait for. A request keeps its place when the
// one that it came before is gone.
extension ResourceStateMachine {
    /// Its size grows with each request that comes before another one which itself came before others.
    struct Rank: Comparable, Sendable {
        let priority: Int
        let arrival: Int
        /// Empty for the request of this priority and arrival. One that is right before another one has the numbers of that,
        /// and one more: the later it came there, the greater.
        private(set) var moves: [Int] = []

        /// The place right before this one, behind all others that are before it.
        func before(_ number: Int) -> Rank {
            Rank(priority: priority, arrival: arrival, moves: moves + [number])
        }

        static func < (left: Rank, right: Rank) -> Bool {
            if left.priority != right.priority { return left.priority > right.priority }
            if left.arrival != right.arrival { return left.arrival < right.arrival }
            for (left, right) in zip(left.moves, right.moves) where left != right { return left < right }
            return left.moves.count > right.moves.count
        }
    }

    /// The place of a request that arrives.
    func rank(of number: Int, priority: Int, inside: [RequestID]) -> Rank {
        let own = Rank(priority: priority, arrival: number)
        let held = inside.lazy.flatMap { requests[$0]?.resources ?? [] }.compactMap { resources[$0] }
        let first = held.filter { !$0.isRate }.compactMap { $0.waiting.first?.key }.min()
        return first.flatMap { $0 < own ? $0.before(number) : nil } ?? own
    }

    /// Lets requests come right before one that has just arrived, if they are inside the operations that it waits for.
    ///
    /// - Returns: The requests that have another place now.
    mutating func makeWay(for id: RequestID) -> [RequestID] {
        guard blockedHolderCount > 0 else { return [] }
        var known: Set<RequestID> = [id]
        var moved: [RequestID] = []
        // The last one is next.
        var open = requestsInside(whatBlocks: id, known).map { (request: $0, next: id) }
        while let (request, next) = open.popLast() {
            guard let rank = requests[request]?.rank, let nextRank = requests[next]?.rank, nextRank < rank,
                known.insert(request).inserted
            else { continue }
            move(request, to: nextRank.before(makeNumber()))
            moved.append(request)
            open += requestsInside(whatBlocks: request, known).map { ($0, request) }
        }
        return moved
    }

    /// The requests behind one that wait inside the operations that hold its resources, the last one first.
    private mutating func requestsInside(whatBlocks id: RequestID, _ known: Set<RequestID>) -> [RequestID] {
        guard let request = requests[id] else { return [] }
        var behind: [RequestID: Rank] = [:]
        for resource in request.resources {
            guard let entry = resources[resource], !entry.isRate, let last = entry.lastInside, request.rank < last
            else {
                continue
            }
            var isComplete = true
            for inside in entry.holders.compactMap({ requests[$0] }).flatMap(\.waitingInside.values).joined() {
                guard let rank = requests[inside]?.rank, request.rank < rank else { continue }
                if known.contains(inside) { isComplete = false } else { behind[inside] = rank }
            }
            // All of these come before it soon.
            if isComplete { resources[resource]?.lastInside = request.rank }
        }
        return behind.sorted { $0.value > $1.value }.map(\.key)
    }

    private mutating func move(_ id: RequestID, to rank: Rank) {
        guard let request = requests[id] else { return }
        leaveQueues(request)
        requests[id]?.rank = rank
        requests[id]?.places = request.resources.compactMap { resources[$0]?.waiting.insert(id, key: rank) }
    }
}
