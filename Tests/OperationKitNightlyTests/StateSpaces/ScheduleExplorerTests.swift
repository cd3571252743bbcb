import OperationKitTestSupport

@testable import OperationKit

/// Walks through what can happen to a few children, and checks at each step that they start when they should, that none
/// is forgotten, and that the counts are right; and in the end that there is always a way on. The long extent of a test run
/// visits every order of events, the short one some of the states of each scene, and looks for the way on if these are all.
@Suite("Ready readiness, orders of events", .serialized, .takesTurns, .hangGuard) struct ScheduleExplorerTests {
    struct Scene: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let make: @Sendable () -> ScheduleExplorer

        init(
            _ name: String, children: Int, _ dependencies: [(Int, Int)] = [], limit: Int, keepsOrder: Bool = false,
            _ budget: ScheduleExplorer.Budget = .init()
        ) {
            testDescription = "\(name), limit \(limit)"
            make = {
                ScheduleExplorer(
                    children: children, dependencies: dependencies, limit: limit, keepsOrder: keepsOrder,
                    budget: budget)
            }
        }
    }

    static let scenes = [-1, 0, 1, 2].flatMap { limit in
        [
            Scene("three children", children: 3, limit: limit),
            Scene("a chain", children: 3, [(1, 0), (2, 1)], limit: limit, .init(releases: 1, cancellations: 1)),
            Scene("a fork", children: 3, [(1, 0), (2, 0)], limit: limit, .init(cancellations: 1)),
            Scene("limits", children: 2, limit: limit, .init(limits: [-1, 0, 1, 2].filter { $0 != limit })),
            Scene("a pause", children: 2, [(1, 0)], limit: limit, .init(suspensions: 1, cancellations: 1)),
            Scene("additions", children: 1, limit: limit, .init(additions: 2, takenBack: 1)),
            Scene("additions, and the end", children: 1, limit: limit, .init(additions: 1, cancellations: 1)),
            Scene(
                "an external dependency", children: 2, [(1, ScheduleExplorer.external)], limit: limit,
                .init(releases: 1, cancellations: 1)),
            Scene(
                "an external dependency that joins", children: 2,
                [(0, ScheduleExplorer.external), (1, ScheduleExplorer.external)],
                limit: limit, .init(cancellations: 1, adoptions: 1)),
            Scene(
                "steps in a row", children: 3, [(1, 0), (2, 1), (2, ScheduleExplorer.external)], limit: limit,
                keepsOrder: true, .init(releases: 1, cancellations: 1)),
            Scene(
                "an external dependency that is given up", children: 3, (0..<3).map { ($0, ScheduleExplorer.external) },
                limit: limit, .init(releases: 2)),
            Scene(
                "progress that is reported", children: 3, [(2, 0)], limit: limit,
                .init(cancellations: 1, reports: 2)),
            Scene("a limit and a pause", children: 2, limit: limit, .init(limits: [1], suspensions: 1)),
        ]
    }

    @Test("The guarantees of the state machine hold in each state that is visited", arguments: scenes)
    func everyOrder(scene: Scene) async {
        let seed = SplitMix64.freshSeed()
        let failure = await onThread { Self.failure(in: scene, seed: seed) }
        if let failure { Issue.record("\(failure), seed \(seed)") }
    }

    /// Visits the states of a scene.
    private static func failure(in scene: Scene, seed: UInt64) -> String? {
        let most = TestExtent.choose(60, long: Int.max)
        var random = SplitMix64(seed: seed)
        var explorers = [scene.make()]
        var numbers = [explorers[0].identity: 0]
        var leadHere: [[Int]] = [[]]
        var (steps, count) = (0, 0)
        var open = [0]
        while !open.isEmpty, count < most {
            count += 1
            // Now deeper, now anywhere, so that a sample has beginnings and ends.
            let next = count % 2 == 0 ? open.count - 1 : Int(random.next() % UInt64(open.count))
            open.swapAt(next, open.count - 1)
            let position = open.removeLast()
            for follower in explorers[position].followers() {
                steps += 1
                if let violation = follower.violation { return "\(violation), after \(follower.history)" }
                let number = numbers[follower.identity] ?? explorers.count
                if number == explorers.count {
                    numbers[follower.identity] = number
                    open.append(number)
                    explorers.append(follower)
                    leadHere.append([])
                }
                leadHere[number].append(position)
            }
        }
        let ends = explorers.indices.filter { explorers[$0].isOver }
        TestExtent.report(
            "Ready readiness, \(scene.testDescription): \(explorers.count) states, \(steps) steps, \(ends.count) ends")
        if !open.isEmpty { return nil }
        if ends.isEmpty { return "no end" }
        // Backwards from the ends.
        var reached = Set(ends)
        open = ends
        while let number = open.popLast() {
            for earlier in leadHere[number] where reached.insert(earlier).inserted { open.append(earlier) }
        }
        return explorers.indices.first { !reached.contains($0) }.map { "no way on, after \(explorers[$0].history)" }
    }
}

// What has to be true.
extension ScheduleExplorer {
    /// The child that has to be next.
    var next: Int? {
        guard hasStarted else { return nil }
        if !isCancelled {
            if isCancelling || readiness.places.isSuspended { return nil }
            let taken = children.count(where: \.stage.isStarted) + queuedHere
            if readiness.places.limit >= 0, taken >= readiness.places.limit { return nil }
        }
        let ready = children.indices.filter {
            let child = children[$0]
            guard child.stage == .waiting else { return false }
            let waitsForSibling = child.waitsFor.contains { $0 != Self.external }
            return isCancelled || child.waitsFor.isEmpty
                || (child.ignoresDependencies && !(keepsOrder && waitsForSibling))
        }
        return ready.contains(2) ? 2 : ready.first
    }

    /// What is wrong, if anything is.
    var problem: String? {
        let (table, places) = (readiness.table, readiness.places)
        let expected = [
            children.count { !$0.stage.isOver }, count(.queued), children.count(where: \.stage.isStarted),
            children.count(where: \.stage.isWorker), count(.alone),
        ]
        let counters = [table.remaining, places.queued, places.started, places.active, places.detachedCount]
        if counters != expected { return "counted \(counters), there are \(expected)" }
        // Where all places are taken, one of those who have them looks for the next child when it comes back.
        if let next, onTheWay == 0, hasPlace { return "child \(next) is forgotten" }
        if onTheWay > 1 { return "two workers are awaited" }
        for child in children where child.stage == .added || child.stage == .waiting {
            let external = child.waitsFor.contains(Self.external) ? 1 : 0
            if Int(table.records[child.slot].openExternal) != external { return "openExternal is wrong" }
        }
        let dependents = externalSlot.map { table.records[$0].dependents.count { table.records[$0].phase != .gone } }
        if let dependents, dependents != waitingForExternal {
            return "\(dependents) wait for the external dependency"
        }
        let gone = table.records.filter { $0.phase == .gone }
        if table.records.count < 2 * gone.count { return "ended children pile up" }
        if gone.contains(where: { $0.open == 0 }) { return "a slot is not used again" }
        let slots = children.filter { !$0.stage.isOver }.map(\.slot)
        return Set(slots).count == slots.count ? nil : "a slot is used twice"
    }

    /// How many of those that the queue was handed take a place.
    var queuedHere: Int { children.count { $0.stage == .queued && $0.isReadyOnQueue } }

    func count(_ stages: Stage...) -> Int { children.count { stages.contains($0.stage) } }

    /// All that the future depends on. What the queue of those who are ready looks like inside follows from it.
    var identity: [Int] {
        let places = readiness.places
        var numbers = [
            onTheWay, readiness.table.early, hasEnded ? 1 : 0, hasStarted ? 1 : 0, isCancelling ? 1 : 0,
            isCancelled ? 1 : 0, places.limit, places.isKeptByQueue ? 1 : 0, places.isWorkerEarly ? 1 : 0,
            places.isSuspended ? 1 : 0, budget.hashValue, children.count, externalSlot ?? -1,
        ]
        for child in children {
            numbers += [child.slot, child.stage.rawValue, child.ignoresDependencies ? 1 : 0]
            numbers += [child.isEnding ? 1 : 0, child.isHandedOver ? 1 : 0, child.isReadyOnQueue ? 1 : 0]
            numbers.append(child.waitsFor.reduce(0) { $0 | 1 << ($1 + 1) })
        }
        for record in readiness.table.records {
            numbers += [record.phase.hashValue, record.ordinal, Int(record.open)]
            numbers += [Int(record.openExternal), record.ignoresDependencies ? 1 : 0, record.dependents.count]
            numbers += record.dependents
        }
        return numbers
    }
}
