import OperationKitTestSupport

extension Stress {
    /// Shapes of every kind: small ones against a naive scheduler, and large ones.
    @Suite("Stress: shapes", .hangGuard) struct StressShapeTests {
        private func expectRun(_ shape: StressShape, _ kinds: [ChildKind], limit: Int, _ hint: String) async throws {
            let record = try await shape.run(kinds, limit: limit)
            let violations = shape.violations(record, limit: limit)
            #expect(violations.isEmpty, "\(shape), limit \(limit), \(hint): \(violations.prefix(5))")
            // A child that depends on an operation of another library may be left to the queue, because Foundation has not
            // released it yet when the end of that operation is noticed. Others overtake it then, as is documented.
            let mayOvertake = shape.dependencies.joined().contains { kinds[Int($0) % kinds.count] == .foreign }
            if limit == 1, !mayOvertake { #expect(record.order.map(Int.init) == shape.order, "\(shape), \(hint)") }
        }

        private static let kinds: [[ChildKind]] = [
            [.asynchronous], [.hopping], ChildKind.allCases.filter { $0 != .foreign }, ChildKind.allCases,
        ]

        @Test(
            "Random graphs keep their dependencies and the limit, and run in the only right order if that is 1",
            arguments: kinds, [1, 2, 8, -1])
        func randomGraphs(kinds: [ChildKind], limit: Int) async throws {
            // A failure prints it; in the long extent it is printed before anything can fail.
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            TestExtent.report("random graphs: STRESS_SEED=\(seed)")
            for number in 0..<TestExtent.choose(limit == 1 ? 30 : 8, long: limit == 1 ? 700 : 200) {
                var random = SplitMix64(seed: seed &+ UInt64(number))
                let count = Int(random.next() % 33)
                let shape = StressShape.random(count, edges: Int(random.next() % UInt64(3 * count + 1)), using: &random)
                    .prioritized(using: &random)
                try await expectRun(shape, kinds, limit: limit, "graph \(number) of seed \(seed)")
            }
        }

        /// Sizes at which anything that is not linear shows.
        private static let large: [@Sendable () -> StressShape] = [
            { .flat(TestExtent.choose(1_000, long: 1_000_000)) },
            { .chain(TestExtent.choose(1_000, long: 1_000_000)) },
            { .binaryTree(TestExtent.choose(1_000, long: 1_000_000)) },
            { .mesh(layers: TestExtent.choose(10, long: 1_000), width: 100, links: 3) },
            // Ten million dependencies would measure Foundation's bookkeeping only.
            { .mesh(layers: TestExtent.choose(10, long: 1_000), width: 30, links: 30) },
            // Foundation compares a new dependency with all that are there, so this shape is quadratic before it runs.
            { .starIn(TestExtent.choose(1_000, long: 100_000)) },
            { .starOut(TestExtent.choose(1_000, long: 1_000_000)) },
            {
                var random = SplitMix64(seed: StressSettings.seed ?? 1)
                let children = TestExtent.choose(800, long: 200_000)
                return .random(children, edges: 5 * children, using: &random)
            },
        ]

        @Test("Each child of a large shape runs once, after all it depends on", arguments: large.indices)
        func largeShapes(index: Int) async throws {
            let shape = Self.large[index]()
            let began = ContinuousClock.now
            try await expectRun(shape, [.asynchronous], limit: 8, "")
            TestExtent.report("\(shape): \(ContinuousClock.now - began), \(residentMemory() ?? 0) MiB resident")
        }
    }
}
