@testable import OperationKit

/// A machine whose requests have names, and that writes down which are granted.
struct ResourceDesk {
    var machine = ResourceStateMachine()
    var granted: [String] = []
    var ids: [String: RequestID] = [:]

    mutating func resource(_ limit: Int = 1, maximumWaiting: Int = .max, isRate: Bool = false) -> ResourceID {
        machine.resourceAdded(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate)
    }

    @discardableResult
    mutating func request(
        _ name: String, _ resources: ResourceID..., priority: Int = 0, inside: String...
    ) -> ResourceStateMachine.Answer {
        let answer = machine.requested(resources, priority: priority, inside: inside.compactMap { ids[$0] })
        switch answer {
        case .granted(let id):
            granted.append(name)
            ids[name] = id
        case .waiting(let id, let others):
            ids[name] = id
            granted += others.compactMap { self.name(of: $0) }
        case .tooManyWaiting, .cycle:
            break
        }
        return answer
    }

    /// The waits of a request that is rejected because of a cycle.
    mutating func cycle(
        _ name: String, _ resources: ResourceID..., priority: Int = 0, inside: String...
    ) -> [String]? {
        let answer = machine.requested(resources, priority: priority, inside: inside.compactMap { ids[$0] })
        guard case .cycle(let waits) = answer else { return nil }
        return waits.map {
            let (waiting, blocker) = (self.name(of: $0.request) ?? name, self.name(of: $0.blocker) ?? name)
            return "\(waiting) needs \(blocker)"
        }
    }

    func name(of id: RequestID) -> String? {
        ids.first { $0.value == id }?.key
    }

    mutating func end(_ name: String, givesBackPermits: Bool = false) {
        guard let id = ids[name] else { return }
        granted += machine.ended(id, givesBackPermits: givesBackPermits).compactMap { self.name(of: $0) }
    }

    func holders(of resource: ResourceID) -> [String] {
        machine.holders(of: resource).compactMap { name(of: $0) }.sorted()
    }

    var deadlocked: [String] { machine.deadlockedRequests().compactMap { name(of: $0) }.sorted() }
}
