import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Walks through everything that can happen to a few children, in every order, and checks at each step that they begin
/// when they should, that nobody is forgotten, and that the counts are right; and in the end that there is always a way
/// on.
@Suite("Child schedule, every order of events", .mayNotHang) struct ChildScheduleWalkTests {
    struct Scene: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let children: Int
        var dependencies: [(Int, Int)] = []
        let limit: Int
        let keepsOrder: Bool
        let budget: ScheduleWalk.Budget

        init(
            _ name: String, children: Int, _ dependencies: [(Int, Int)] = [], limit: Int, keepsOrder: Bool = false,
            _ budget: ScheduleWalk.Budget = .init()
        ) {
            self.keepsOrder = keepsOrder
            testDescription = "\(name), limit \(limit)"
            self.children = children
            self.dependencies = dependencies
            self.limit = limit
            self.budget = budget
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
                "an operation outside", children: 2, [(1, ScheduleWalk.outside)], limit: limit,
                .init(releases: 1, cancellations: 1)),
            Scene(
                "an operation outside that joins", children: 2, [(0, ScheduleWalk.outside), (1, ScheduleWalk.outside)],
                limit: limit, .init(cancellations: 1, adoptions: 1)),
            Scene(
                "steps in a row", children: 3, [(1, 0), (2, 1), (2, ScheduleWalk.outside)], limit: limit,
                keepsOrder: true, .init(releases: 1, cancellations: 1)),
            Scene(
                "an operation outside that is given up", children: 3, (0..<3).map { ($0, ScheduleWalk.outside) },
                limit: limit, .init(releases: 2)),
            Scene("a limit and a pause", children: 2, limit: limit, .init(limits: [1], suspensions: 1)),
        ]
    }

    @Test(arguments: scenes) func theGuaranteesHoldInEveryOrderOfEvents(scene: Scene) {
        let first = ScheduleWalk(
            children: scene.children, dependencies: scene.dependencies, limit: scene.limit,
            keepsOrder: scene.keepsOrder, budget: scene.budget)
        var numbers: [[Int]: Int] = [first.identity: 0]
        var walks = [first]
        var leadHere: [[Int]] = [[]]
        var steps = 0
        var position = 0
        while position < walks.count {
            for follower in walks[position].followers() {
                steps += 1
                if let violation = follower.violation {
                    Issue.record("\(violation), after \(follower.history)")
                    return
                }
                let identity = follower.identity
                if let number = numbers[identity] {
                    leadHere[number].append(position)
                } else {
                    numbers[identity] = walks.count
                    walks.append(follower)
                    leadHere.append([position])
                }
            }
            position += 1
        }
        let ends = walks.indices.filter { walks[$0].isOver }
        print("Child schedule, \(scene.testDescription): \(walks.count) states, \(steps) steps, \(ends.count) ends")
        #expect(!ends.isEmpty)
        // Backwards from the ends.
        var reached = Set(ends)
        var open = ends
        while let number = open.popLast() {
            for earlier in leadHere[number] where reached.insert(earlier).inserted { open.append(earlier) }
        }
        if let stuck = walks.indices.first(where: { !reached.contains($0) }) {
            Issue.record("no way on, after \(walks[stuck].history)")
        }
    }
}
