import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// Every shape at a size at which anything that is not linear shows: each child runs once, after all it depends on.
    @Suite("Stress: shapes at scale", .mayNotHang) struct StressScaleTests {
        /// A size, and the full one.
        private func size(_ size: Int, full: Int) -> Int {
            StressSettings.isFullScale ? full : size
        }

        private func expectRun(_ shape: StressShape, limits: [Int] = [8]) async throws {
            for limit in limits {
                let began = Date()
                let record = try await shape.run(.inline, limit: limit)
                let violations = ReferenceScheduler.violations(of: shape, record, limit: limit)
                #expect(violations.isEmpty, "\(shape), limit \(limit): \(violations.prefix(5))")
                let seconds = Date().timeIntervalSince(began)
                print("\(shape), limit \(limit): \(seconds.short) s, \(residentMemory() ?? 0) MiB resident")
            }
        }

        @Test func flat() async throws {
            try await expectRun(.flat(size(100_000, full: 1_000_000)))
        }

        @Test func oneChain() async throws {
            try await expectRun(.chain(size(100_000, full: 1_000_000)))
        }

        @Test func aBinaryTree() async throws {
            try await expectRun(.binaryTree(size(100_000, full: 1_000_000)))
        }

        @Test func aMeshInWhichEachChildDependsOnAFew() async throws {
            try await expectRun(.mesh(layers: size(500, full: 1_000), width: 100, links: 3))
        }

        @Test func aMeshInWhichEachChildDependsOnTheWholeLayerBefore() async throws {
            // Ten million dependencies would measure Foundation's bookkeeping only.
            try await expectRun(.mesh(layers: size(100, full: 1_000), width: 30, links: 30))
        }

        @Test func aRandomGraph() async throws {
            let seed = StressShapeTests.seed()
            var random = SplitMix64(seed: seed)
            let children = size(40_000, full: 200_000)
            try await expectRun(.random(children, edges: 5 * children, using: &random), limits: [1, 8])
        }

        @Test func oneChildThatDependsOnAllOthers() async throws {
            // Foundation compares a new dependency with all that are there, so this shape is quadratic before it runs.
            try await expectRun(.starIn(size(20_000, full: 100_000)))
        }

        @Test func allOthersDependOnOneChild() async throws {
            try await expectRun(.starOut(size(100_000, full: 1_000_000)))
        }
    }
}
