import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// Small shapes of every kind against a naive scheduler.
    @Suite("Stress: shapes against a reference", .hangGuard) struct StressShapeTests {
        static func smallShapes() -> [StressShape] {
            (1...12).flatMap { count in
                [StressShape.flat(count), .chain(count), .binaryTree(count), .starIn(count), .starOut(count)]
            } + [.flat(0), .mesh(layers: 5, width: 4, links: 2), .mesh(layers: 4, width: 5, links: 5)]
        }

        /// The seed of the random graphs, which a failure prints; in the long extent also before anything can fail.
        static func seed(_ test: String = #function) -> UInt64 {
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            TestExtent.report("\(test): STRESS_SEED=\(seed)")
            return seed
        }

        /// A child that depends on an operation of another library may be left to the queue, because Foundation has not
        /// released it yet when the end of that operation is noticed. Others overtake it then, as is documented.
        private func expectOrder(of shape: StressShape, _ children: ShapeChildren, _ hint: String) async throws {
            let record = try await shape.run(children, limit: 1)
            #expect(ReferenceScheduler.violations(of: shape, record, limit: 1) == [], "\(shape), \(hint)")
            if shape.dependencies.joined().contains(where: { children.isForeign(Int($0)) }) { return }
            #expect(record.order.map(Int.init) == ReferenceScheduler(shape: shape).order, "\(shape), \(hint)")
        }

        @Test(
            "Small shapes with a limit of 1 run in the only right order",
            arguments: [ShapeChildren.inline, .hopping, .ownKinds]
        )
        func serialShapes(children: ShapeChildren) async throws {
            let seed = Self.seed()
            var random = SplitMix64(seed: seed)
            for shape in Self.smallShapes() {
                try await expectOrder(of: shape, children, "seed \(seed)")
                try await expectOrder(of: shape.prioritized(using: &random), children, "seed \(seed)")
            }
        }

        @Test("Random graphs with a limit of 1 run in the only right order") func serialGraphs() async throws {
            let seed = Self.seed()
            for program in 0..<TestExtent.choose(300, long: 3_000) {
                var random = SplitMix64(seed: seed &+ UInt64(program))
                let count = 1 + Int(random.next() % 24)
                let shape = StressShape.random(count, edges: Int(random.next() % UInt64(3 * count)), using: &random)
                let children: ShapeChildren = [.inline, .inline, .hopping, .ownKinds][program % 4]
                let hint = "graph \(program) of seed \(seed)"
                try await expectOrder(of: shape.prioritized(using: &random), children, hint)
            }
        }

        @Test("Random graphs with children of other classes keep their dependencies, and their order where it is sure")
        func serialMixedGraphs() async throws {
            let seed = Self.seed()
            for program in 0..<TestExtent.choose(70, long: 700) {
                var random = SplitMix64(seed: seed &+ UInt64(program))
                let count = 1 + Int(random.next() % 24)
                let shape = StressShape.random(count, edges: Int(random.next() % UInt64(3 * count)), using: &random)
                let hint = "graph \(program) of seed \(seed)"
                try await expectOrder(of: shape.prioritized(using: &random), .mixed, hint)
            }
        }

        @Test("Random graphs keep their dependencies and the limit", arguments: [2, 8, -1])
        func concurrentGraphs(limit: Int) async throws {
            let seed = Self.seed()
            for program in 0..<TestExtent.choose(70, long: 700) {
                var random = SplitMix64(seed: seed &+ UInt64(program))
                let count = 1 + Int(random.next() % 40)
                let shape = StressShape.random(count, edges: Int(random.next() % UInt64(3 * count)), using: &random)
                    .prioritized(using: &random)
                let record = try await shape.run(ShapeChildren.allCases[program % 4], limit: limit)
                let violations = ReferenceScheduler.violations(of: shape, record, limit: limit)
                #expect(violations == [], "graph \(program) of seed \(seed)")
            }
        }

        @Test("Small shapes keep their dependencies and the limit", arguments: [2, 8])
        func concurrentShapes(limit: Int) async throws {
            for shape in Self.smallShapes() {
                for children in ShapeChildren.allCases {
                    let record = try await shape.run(children, limit: limit)
                    #expect(ReferenceScheduler.violations(of: shape, record, limit: limit) == [], "\(shape)")
                }
            }
        }
    }
}
