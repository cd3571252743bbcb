import OperationKitTestSupport

extension Stress {
    /// Shapes of every kind: small ones against a naive scheduler, and large ones.
    @Suite("Stress: shapes", .hangGuard) struct StressShapeTests {
        static func smallShapes() -> [StressShape] {
            (1...TestExtent.choose(8, long: 12)).flatMap { count in
                [StressShape.flat(count), .chain(count), .binaryTree(count), .starIn(count), .starOut(count)]
            } + [.flat(0), .mesh(layers: 5, width: 4, links: 2), .mesh(layers: 4, width: 5, links: 5)]
        }

        /// The seed of the random graphs, which a failure prints; in the long extent also before anything can fail.
        private static func seed(_ test: String = #function) -> UInt64 {
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            TestExtent.report("\(test): STRESS_SEED=\(seed)")
            return seed
        }

        /// A random graph with random priorities.
        private static func graph(_ number: Int, _ seed: UInt64) -> StressShape {
            var random = SplitMix64(seed: seed &+ UInt64(number))
            let count = 1 + Int(random.next() % 32)
            return StressShape.random(count, edges: Int(random.next() % UInt64(3 * count)), using: &random)
                .prioritized(using: &random)
        }

        private func expectRun(_ shape: StressShape, _ children: ShapeChildren, limit: Int, _ hint: String) async throws
        {
            let record = try await shape.run(children, limit: limit)
            let violations = ReferenceScheduler.violations(of: shape, record, limit: limit)
            #expect(violations.isEmpty, "\(shape), limit \(limit), \(hint): \(violations.prefix(5))")
            // A child that depends on an operation of another library may be left to the queue, because Foundation has not
            // released it yet when the end of that operation is noticed. Others overtake it then, as is documented.
            if limit != 1 || shape.dependencies.joined().contains(where: { children.isForeign(Int($0)) }) { return }
            #expect(record.order.map(Int.init) == ReferenceScheduler(shape: shape).order, "\(shape), \(hint)")
        }

        @Test(
            "Small shapes keep their dependencies and the limit, and run in the only right order if that is 1",
            arguments: ShapeChildren.allCases, [1, 2, 8])
        func smallShapes(children: ShapeChildren, limit: Int) async throws {
            let seed = Self.seed()
            var random = SplitMix64(seed: seed)
            for shape in Self.smallShapes() {
                try await expectRun(shape, children, limit: limit, "")
                try await expectRun(shape.prioritized(using: &random), children, limit: limit, "seed \(seed)")
            }
        }

        @Test("Random graphs do, too", arguments: ShapeChildren.allCases, [1, 2, 8, -1])
        func randomGraphs(children: ShapeChildren, limit: Int) async throws {
            let seed = Self.seed()
            for number in 0..<TestExtent.choose(limit == 1 ? 30 : 8, long: limit == 1 ? 700 : 200) {
                let hint = "graph \(number) of seed \(seed)"
                try await expectRun(Self.graph(number, seed), children, limit: limit, hint)
            }
        }

        /// Sizes at which anything that is not linear shows.
        private static let large: [@Sendable () -> StressShape] = [
            { .flat(TestExtent.choose(2_000, long: 1_000_000)) },
            { .chain(TestExtent.choose(2_000, long: 1_000_000)) },
            { .binaryTree(TestExtent.choose(2_000, long: 1_000_000)) },
            { .mesh(layers: TestExtent.choose(20, long: 1_000), width: 100, links: 3) },
            // Ten million dependencies would measure Foundation's bookkeeping only.
            { .mesh(layers: TestExtent.choose(10, long: 1_000), width: 30, links: 30) },
            // Foundation compares a new dependency with all that are there, so this shape is quadratic before it runs.
            { .starIn(TestExtent.choose(1_000, long: 100_000)) },
            { .starOut(TestExtent.choose(2_000, long: 1_000_000)) },
            {
                var random = SplitMix64(seed: StressSettings.seed ?? 1)
                let children = TestExtent.choose(1_500, long: 200_000)
                return .random(children, edges: 5 * children, using: &random)
            },
        ]

        @Test("Each child of a large shape runs once, after all it depends on", arguments: large.indices)
        func largeShapes(index: Int) async throws {
            let shape = Self.large[index]()
            let began = ContinuousClock.now
            try await expectRun(shape, .inline, limit: 8, "")
            TestExtent.report("\(shape): \(ContinuousClock.now - began), \(residentMemory() ?? 0) MiB resident")
        }
    }
}
