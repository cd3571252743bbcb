import OperationKitTestSupport

extension Stress {
    /// What proves that the machinery can fail: wrong logs are seen, and a fault is reduced to the operation that has it.
    @Suite("Stress: the oracle and the shrinker", .hangGuard) struct StressOracleTests {
        /// Real logs, in each of which one event is lost, doubled or falsified.
        @Test("Every loss, doubling or falsification of an event in a real log is seen") func corruptions() async {
            let seed = SplitMix64.freshSeed()
            await onThread {
                for number in 0..<TestExtent.choose(1, long: 150) as Range<UInt64> {
                    let program = ProgramGenerator.program(seed: seed &+ number)
                    let facts = ProgramFacts(program)
                    let events = ProgramRun.events(of: program)
                    for (position, event) in events.enumerated() {
                        for (corruption, corrupted) in event.corruptions {
                            var log = events
                            log.replaceSubrange(position...position, with: corrupted)
                            if !ProgramOracle.violations(of: facts, log).isEmpty { continue }
                            Issue.record(
                                "\(corruption) of \(event) was not seen, STRESS_SEED=\(program.seed)\n\(program)")
                            return
                        }
                    }
                }
            }
        }

        @Test("A program that hangs is seen") func hang() async {
            // The limit is never raised again.
            let root = StressNode(
                id: 0,
                work: .compound(
                    StressCompound(limit: 0, children: [StressNode(id: 1, work: .leaf(StressLeaf(kind: .inline)))])))
            var violations: [String] = []
            // On a busy machine it may take longer until it has begun.
            for hangTimeout in [0.2, 5, 100] where violations.first?.hasPrefix("it hangs: n0 executing") != true {
                violations = await onThread {
                    let program = StressProgram(root: root)
                    return ProgramOracle.violations(
                        of: program, ProgramRun.events(of: program, hangTimeout: hangTimeout))
                }
            }
            #expect(violations.count == 1 && violations[0].hasPrefix("it hangs: n0 executing"), "\(violations)")
        }

        /// The whole way from a run to a small program, with a fault that is put into the log: the completion blocks of
        /// `ThrowingBlockOperation`s that throw are lost.
        @Test("A fault that shows in runs is reduced to the operation that has it") func faultInRuns() async {
            let program = (0..<1_000 as Range<UInt64>).lazy.map { ProgramGenerator.program(seed: $0) }
                .first { $0.nodes.count > 12 && !Self.guilty($0).isEmpty }
            guard let program else {
                Issue.record("No program has what is looked for.")
                return
            }
            let smallest = await onThread {
                var shrinker = Shrinker { candidate in
                    let lost = Self.guilty(candidate)
                    let events = ProgramRun.events(of: candidate).filter { event in
                        if case .finished(let id) = event { !lost.contains(id) } else { true }
                    }
                    return !ProgramOracle.violations(of: candidate, events).isEmpty
                }
                return shrinker.shrink(program)
            }
            #expect(smallest.actions.isEmpty, "\(smallest)")
            let leaves = smallest.nodes.compactMap(\.leaf)
            #expect(leaves.count == 1 && leaves[0].kind == .throwing && leaves[0].fails, "\(smallest)")
        }

        /// The `ThrowingBlockOperation`s that throw.
        private static func guilty(_ program: StressProgram) -> Set<Int> {
            let steps = Set(program.nodes.filter(\.isChain).flatMap(\.children).map(\.id))
            let throwing = program.nodes.filter { $0.leaf?.kind == .throwing && $0.leaf?.fails == true }
            return Set(throwing.map(\.id)).subtracting(steps)
        }

        @Test("What is removed from a program is not mentioned anywhere in it") func removedNodes() {
            for seed in 0..<300 as Range<UInt64> {
                let program = ProgramGenerator.program(seed: seed)
                for node in program.nodes where node.id != program.root.id {
                    let smaller = program.removing(nodes: [node.id])
                    let ids = Set(smaller.nodes.map(\.id))
                    #expect(!ids.contains(node.id) && ids.count == smaller.nodes.count)
                    #expect(smaller.nodes.allSatisfy { ids.isSuperset(of: $0.awaited) })
                    #expect(smaller.actions.allSatisfy { ids.contains($0.effect.target) })
                }
            }
        }
    }
}

extension StressEvent {
    /// What may be written down in its place, and is wrong in every program.
    fileprivate var corruptions: [(name: String, events: [StressEvent])] {
        switch self {
        case .finished: [("loss", []), ("doubling", [self, self])]
        case .completed(let id, _, let isCancelled):
            [
                ("loss", []), ("doubling", [self, self]),
                ("falsification", [.completed(id, .other("wrong"), isCancelled: isCancelled)]),
            ]
        case .began: [("doubling", [self, self])]
        case .ended: [("loss", []), ("doubling", [self, self])]
        case .rest(let id, _, _, let isCancelled):
            [("falsification", [.rest(id, isFinished: false, isExecuting: true, isCancelled: isCancelled)])]
        case .awaited: [("loss", []), ("doubling", [self, self]), ("falsification", [.awaited(.other("wrong"))])]
        case .emitted(let id, .finished):
            [("doubling", [self, self]), ("falsification", [.emitted(id, .finished(.other("wrong")))])]
        case .emitted(_, .started), .emitted(_, .running), .emitted(_, .cancelled): [("doubling", [self, self])]
        case .built, .acted, .emitted, .externalEnded, .hung, .reported, .leaked: []
        }
    }
}
