import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// Every shape at a size at which anything that is not linear shows: each child runs once, after all it depends on.
    @Suite("Stress: shapes at scale", .hangGuard) struct StressScaleTests {
        private func expectRun(_ shape: StressShape, limits: [Int] = [8], seed: UInt64? = nil) async throws {
            for limit in limits {
                let began = Date()
                let record = try await shape.run(.inline, limit: limit)
                let violations = ReferenceScheduler.violations(of: shape, record, limit: limit)
                #expect(violations.isEmpty, "\(shape), limit \(limit), seed \(seed ?? 0): \(violations.prefix(5))")
                let seconds = Date().timeIntervalSince(began)
                TestExtent.report("\(shape), limit \(limit): \(seconds.short) s, \(residentMemory() ?? 0) MiB resident")
            }
        }

        @Test("Very many independent children run once each") func flat() async throws {
            try await expectRun(.flat(TestExtent.choose(4_000, long: 1_000_000)))
        }

        @Test("The children of a very long chain run in its order") func longChain() async throws {
            try await expectRun(.chain(TestExtent.choose(4_000, long: 1_000_000)))
        }

        @Test("The children of a large binary tree run after what they depend on") func binaryTree() async throws {
            try await expectRun(.binaryTree(TestExtent.choose(4_000, long: 1_000_000)))
        }

        @Test("The children of a large mesh run after the few that they depend on") func sparseMesh() async throws {
            try await expectRun(.mesh(layers: TestExtent.choose(40, long: 1_000), width: 100, links: 3))
        }

        @Test("The children of a large mesh run after the whole layer before them") func denseMesh() async throws {
            // Ten million dependencies would measure Foundation's bookkeeping only.
            try await expectRun(.mesh(layers: TestExtent.choose(20, long: 1_000), width: 30, links: 30))
        }

        @Test("The children of a large random graph run after what they depend on, serially or not")
        func randomGraph() async throws {
            let seed = StressShapeTests.seed()
            var random = SplitMix64(seed: seed)
            let children = TestExtent.choose(3_000, long: 200_000)
            try await expectRun(.random(children, edges: 5 * children, using: &random), limits: [1, 8], seed: seed)
        }

        @Test("One child that depends on very many others runs after them") func starIn() async throws {
            // Foundation compares a new dependency with all that are there, so this shape is quadratic before it runs.
            try await expectRun(.starIn(TestExtent.choose(2_000, long: 100_000)))
        }

        @Test("Very many children that depend on one run after it") func starOut() async throws {
            try await expectRun(.starOut(TestExtent.choose(4_000, long: 1_000_000)))
        }
    }
}
