import OperationKitTestSupport

extension Stress {
    /// Random programs against the oracle: for a while, or only the one of `STRESS_SEED`.
    @Suite("Stress: random programs") struct StressProgramTests {
        @Test("Random programs do what the oracle says") func programs() async {
            if let seed = StressSettings.seed { return await replay(seed) }
            let seed = SplitMix64.freshSeed()
            TestExtent.report("programs from STRESS_SEED=\(seed) on")
            let failure = await onThread { Soak.run(from: seed, seconds: StressSettings.seconds) }
            if let failure { Issue.record("\(failure.report)") }
        }

        /// Runs one program as often as it takes for a race to show.
        private func replay(_ seed: UInt64) async {
            let program = ProgramGenerator.program(seed: seed)
            print(program)
            let failure = await onThread { Soak.check(program, times: 500) }
            if let failure { Issue.record("\(failure.report)") }
        }

        @Test("What is added with one inside that requires the success of one that has ended may find that gone")
        func requiredAndGone() async {
            let failing = StressNode(id: 1, work: .leaf(StressLeaf(kind: .inline, fails: true)))
            let adding = StressNode(id: 2, work: .leaf(StressLeaf(kind: .inline)), after: [1])
            var requiring = StressNode(id: 4, work: .leaf(StressLeaf(kind: .inline)))
            requiring.requires = [1]
            let late = StressNode(id: 3, work: .compound(StressCompound(children: [requiring])))
            await Stress.expectRight(
                StressProgram(
                    root: StressNode(id: 0, work: .compound(StressCompound(limit: 1, children: [failing, adding]))),
                    actions: [StressAction(trigger: .inside(2), effect: .add(late, to: 0))]), times: 25)
        }

        @Test("What finishes in its own cancel() and is refused ends once, before the program does") func refusedEnds()
            async
        {
            func foreign(_ id: Int, after: [Int] = [], _ entry: StressEntry) -> StressNode {
                StressNode(id: id, work: .leaf(StressLeaf(kind: .foreign)), after: after, entry: entry)
            }
            // What depends on the compound that it is added to is refused. The oracle expects that only where the child that adds
            // may have ended.
            let inner = StressCompound(children: [foreign(10, .fresh), foreign(13, .cancelled)])
            let added =
                [StressEntry.fresh, .cancelled, .cancelledMeanwhile].enumerated().map {
                    foreign(1 + 3 * $0, after: [0], $1)
                } + [StressNode(id: 2, work: .compound(inner), after: [0])]
            let child = StressNode(id: 3, work: .leaf(StressLeaf(kind: .stoppable)))
            await Stress.expectRight(
                StressProgram(
                    root: StressNode(id: 0, work: .compound(StressCompound(children: [child]))),
                    actions: added.map { StressAction(trigger: .inside(3), effect: .add($0, to: 0)) }), times: 25)
        }

        @Test(
            "Observers of many kinds of programs get the events that the oracle expects",
            arguments: StressObservation.allCases)
        func programs(observation: StressObservation) async {
            for seed in 0..<TestExtent.choose(30, long: 3_000) as Range<UInt64> {
                var program = ProgramGenerator.program(seed: seed)
                program.observation = observation
                let failure = await onThread { [program] in Soak.check(program) }
                if let failure {
                    Issue.record("\(failure.report)")
                    return
                }
            }
        }

        @Test("A seed always makes the same program") func seed() {
            for seed in 0..<200 as Range<UInt64> {
                let program = ProgramGenerator.program(seed: seed)
                #expect(program == ProgramGenerator.program(seed: seed))
                #expect(program.description == ProgramGenerator.program(seed: seed).description)
                #expect(Set(program.nodes.map(\.id)).count == program.nodes.count)
            }
        }
    }
}
