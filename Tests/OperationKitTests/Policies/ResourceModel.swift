/// What ``ResourceStateMachine`` decides, said in the simplest way: lists that are searched from the beginning each time.
struct ResourceModel {
    struct Request {
        let number: Int
        let resources: [Int]
        let priority: Int
        let inside: [Int]
        var isGranted = false
    }

    /// The number of places of each resource.
    let limits: [Int]
    /// In the order of their arrival.
    private(set) var requests: [Request] = []

    init(limits: [Int]) {
        self.limits = limits
    }

    /// - Returns: Whether the request is granted, and whether it can never be.
    mutating func requested(
        _ resources: [Int], number: Int, priority: Int, inside: [Int]
    ) -> (isGranted: Bool, isDeadlocked: Bool) {
        requests.append(Request(number: number, resources: resources, priority: priority, inside: inside))
        let isGranted = grant().contains(number)
        return (isGranted, deadlocked().contains(number))
    }

    var isExclusive: Bool { limits.allSatisfy { $0 == 1 } }

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
        let isOvertaking = requests.contains { other in
            !other.isGranted && (other.priority, -other.number) > (request.priority, -request.number)
                && !Set(other.resources).isDisjoint(with: request.resources)
        }
        if isOvertaking { return false }
        return request.resources.allSatisfy { resource in
            requests.count { $0.isGranted && $0.resources.contains(resource) } < limits[resource]
        }
    }
}
