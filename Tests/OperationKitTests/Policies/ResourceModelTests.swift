import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Resources against a model", .takesTurns) struct ResourceModelTests {
    /// The machine and the model, side by side.
    private struct Pair {
        var machine = ResourceStateMachine()
        var model: ResourceModel
        let resources: [ResourceID]
        var ids: [Int: RequestID] = [:]
        var lastNumber = 0
        var cycles = 0

        init(limits: [Int]) {
            model = ResourceModel(limits: limits)
            var machine = machine
            resources = limits.map { machine.resourceAdded(limit: $0) }
            self.machine = machine
        }

        mutating func request(_ required: [Int], priority: Int = 0, inside: [Int] = []) {
            lastNumber += 1
            let number = lastNumber
            let before = model
            let expected = model.requested(required, number: number, priority: priority, inside: inside)
            let answer = machine.requested(
                required.map { resources[$0] }, priority: priority, inside: inside.compactMap { ids[$0] })
            switch answer {
            case .granted(let id):
                #expect(expected.granted == [number] && !expected.isDeadlocked)
                ids[number] = id
            case .waiting(let id, let granted):
                #expect(Set(granted) == Set(expected.granted.compactMap { ids[$0] }))
                #expect(!expected.granted.contains(number) && granted.count == expected.granted.count)
                // A cycle through a resource with several places is not found.
                if model.isExclusive { #expect(!expected.isDeadlocked) }
                ids[number] = id
            case .cycle(let waits):
                #expect(!expected.granted.contains(number) && expected.isDeadlocked)
                cycles += 1
                model = before
                check(waits, inside: inside)
            case .tooManyWaiting:
                Issue.record("Any number of requests may wait.")
            }
        }

        mutating func end(_ number: Int) {
            let expected = model.ended(number)
            guard let id = ids.removeValue(forKey: number) else { return }
            #expect(Set(machine.ended(id)) == Set(expected.compactMap { ids[$0] }))
        }

        /// Each in a cycle waits for the next one, or for one that is around that. The first one is that which closes it.
        private func check(_ waits: [ResourceStateMachine.Wait], inside: [Int]) {
            #expect(waits.first.map { machine.requests[$0.request] == nil } == true)
            for (wait, next) in zip(waits, waits.dropFirst()) {
                let around = machine.requests[next.request]?.inside ?? []
                #expect(around.contains(wait.blocker))
            }
            let around = inside.compactMap { ids[$0] }
            #expect(waits.last.map { around.contains($0.blocker) } == true)
            #expect(Set(waits.map(\.request)).count == waits.count)
        }

        /// What can never end, by its numbers.
        var deadlocked: Set<Int> {
            let deadlocked = machine.deadlockedRequests()
            return Set(ids.filter { deadlocked.contains($0.value) }.keys)
        }

        /// Those that may end: the others have operations inside them.
        var numbers: [Int] {
            let around = Set(model.requests.flatMap(\.inside))
            return model.requests.map(\.number).filter { !around.contains($0) }
        }
    }

    /// Continues a history in all ways that are possible, up to a number of requests.
    private func explore(_ pair: Pair, requests: Int, count: inout Int) {
        count += 1
        for number in pair.numbers {
            var next = pair
            next.end(number)
            explore(next, requests: requests, count: &count)
        }
        if pair.lastNumber == requests { return }
        let arounds = [[]] + pair.model.requests.filter(\.isGranted).map { [$0.number] + $0.inside }
        for required in [[0], [1], [0, 1]] {
            for (place, inside) in arounds.enumerated() {
                // One priority for the last ones is enough to have each order.
                for priority in place == 0 && pair.lastNumber > 0 ? [0, 1] : [0] {
                    var next = pair
                    next.request(required, priority: priority, inside: inside)
                    explore(next, requests: requests, count: &count)
                }
            }
        }
    }

    @Test("Every history of a few requests for two resources agrees with the model", arguments: [[1, 1], [1, 2]])
    func everyHistory(limits: [Int]) {
        var count = 0
        explore(Pair(limits: limits), requests: TestExtent.choose(3, long: 4), count: &count)
        #expect(count > 5_000)
        TestExtent.report("Resources: \(count) histories of limits \(limits)")
    }

    @Test("Random requests, inside each other too, agree with the model", arguments: 1...TestExtent.choose(8, long: 40) as ClosedRange<UInt64>)
    func randomHistories(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let isExclusive = seed % 2 == 0
        var pair = Pair(limits: (0..<4).map { _ in isExclusive ? 1 : Int(random.next() % 3) + 1 })
        for _ in 0..<TestExtent.choose(150, long: 2_000) {
            if random.next() % 5 < 3, pair.model.requests.count < 12 {
                var required = [0, 1, 2, 3].shuffled(using: &random)
                required.removeLast(Int(random.next() % 4))
                let granted = pair.model.requests.filter(\.isGranted)
                let around = random.next() % 2 == 0 ? granted.randomElement(using: &random) : nil
                pair.request(
                    required, priority: Int(random.next() % 3),
                    inside: around.map { [$0.number] + $0.inside } ?? [])
            } else if let number = pair.numbers.randomElement(using: &random) {
                pair.end(number)
            }
            #expect(pair.deadlocked == pair.model.deadlocked(), "seed \(seed)")
            if isExclusive { #expect(pair.model.deadlocked().isEmpty) }
        }
        if isExclusive { #expect(pair.cycles > 0) }
        while let number = pair.numbers.first { pair.end(number) }
        #expect(pair.machine.requests.isEmpty)
        #expect(pair.machine.blockedHolderCount == 0)
        for resource in pair.machine.resources.values {
            #expect(resource.freeCount == resource.limit)
            #expect(resource.waiting.isEmpty && resource.holders.isEmpty)
        }
    }

    @Test(
        "Where none needs inside it what comes before what it holds, all that are granted can end, and none is left",
        arguments: 1...TestExtent.choose(8, long: 40) as ClosedRange<UInt64>)
    func noneIsLeft(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var pair = Pair(limits: (0..<6).map { _ in Int(random.next() % 2) + 1 })
        for _ in 0..<TestExtent.choose(150, long: 2_000) {
            if random.next() % 5 < 3, pair.model.requests.count < 15 {
                let around =
                    random.next() % 3 == 0 ? nil : pair.model.requests.filter(\.isGranted).randomElement(using: &random)
                let inside = around.map { [$0.number] + $0.inside } ?? []
                let held = pair.model.requests.filter { inside.contains($0.number) }.flatMap(\.resources)
                var required = Array((held.max().map { $0 + 1 } ?? 0)..<6).shuffled(using: &random)
                if required.isEmpty { continue }
                required.removeLast(Int(random.next() % UInt64(required.count)))
                pair.request(Array(required.prefix(3)), priority: Int(random.next() % 3), inside: inside)
            } else if let number = pair.numbers.randomElement(using: &random) {
                pair.end(number)
            }
            #expect(pair.model.deadlocked().isEmpty && pair.deadlocked.isEmpty, "seed \(seed)")
        }
        #expect(pair.cycles == 0)
    }
}
