import Foundation
import OperationKit
import Testing

extension Stress {
    /// Random programs against the oracle: for a while, or only the one of `STRESS_SEED`.
    @Suite("Stress: random programs") struct StressProgramTests {
        @Test func programsDoWhatTheOracleSays() async {
            if let seed = StressSettings.seed { return await replay(seed) }
            let seed = SplitMix64.freshSeed()
            print("programs from STRESS_SEED=\(seed) on")
            let failure = await onThread { Soak(seconds: StressSettings.seconds).run(from: seed) }
            if let failure { Issue.record("\(failure.report)") }
        }

        /// Runs one program as often as it takes for a race to show.
        private func replay(_ seed: UInt64) async {
            let program = ProgramGenerator.program(seed: seed)
            print(program)
            let failure = await onThread { Soak.check(program, times: 500) }
            if let failure { Issue.record("\(failure.report)") }
        }

        @Test func aSeedMakesAlwaysTheSameProgram() {
            for seed in 0..<200 as Range<UInt64> {
                let program = ProgramGenerator.program(seed: seed)
                #expect(program == ProgramGenerator.program(seed: seed))
                #expect(program.description == ProgramGenerator.program(seed: seed).description)
                #expect(Set(program.nodes.map(\.id)).count == program.nodes.count)
            }
        }
    }
}
