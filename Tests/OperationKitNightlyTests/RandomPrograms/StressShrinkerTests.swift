import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// The shrinker has to find the smallest program that fails.
    @Suite("Stress: the shrinker itself", .hangGuard) struct StressShrinkerTests {
        /// An artificial failure: a leaf that fails, comes after another leaf, and is cancelled at any time, in any
        /// way.
        private static func isFailure(_ program: StressProgram) -> Bool {
            let leaves = program.nodes.filter { $0.leaf != nil }
            return leaves.contains { leaf in
                leaf.leaf?.fails == true && leaves.contains { leaf.after.contains($0.id) }
                    && program.actions.contains { action in
                        switch action.effect {
                        case .cancel(leaf.id), .cancelWithReason(leaf.id): true
                        default: false
                        }
                    }
            }
        }

        /// A large program with the failure, if the one of this seed has such a leaf.
        private static func failingProgram(seed: UInt64) -> StressProgram? {
            var program = ProgramGenerator.program(seed: seed)
            let leaves = Set(program.nodes.filter { $0.leaf != nil }.map(\.id))
            let victim = program.nodes.first { $0.leaf?.fails == true && !leaves.isDisjoint(with: $0.after) }
            guard let victim, program.nodes.count > 12 else { return nil }
            let trigger = StressAction.Trigger.outside(thread: 0, delay: 300)
            program.actions.append(StressAction(trigger: trigger, effect: .cancelWithReason(victim.id)))
            return program
        }

        @Test("An artificial failure is reduced to the smallest program that has it") func artificialFailure() {
            let failing = (0..<20_000 as Range<UInt64>).lazy.compactMap { Self.failingProgram(seed: $0) }
                .prefix(TestExtent.choose(2, long: 25))
            var sizes: [Int] = []
            for program in failing {
                var shrinker = Shrinker { Self.isFailure($0) }
                let smallest = shrinker.shrink(program)
                sizes.append(program.nodes.count)
                let leaves = smallest.root.children
                guard leaves.count == 2, let last = leaves.first(where: { $0.leaf?.fails == true }) else {
                    Issue.record("\(program)\nbecame\n\(smallest)")
                    return
                }
                let first = leaves.first { $0.id != last.id }
                #expect(smallest.root.work == .compound(StressCompound(children: leaves)), "\(smallest)")
                #expect(
                    last
                        == StressNode(
                            id: last.id, work: .leaf(StressLeaf(kind: .inline, fails: true)), after: last.after))
                #expect(first == first.map { StressNode(id: $0.id, work: .leaf(StressLeaf(kind: .inline))) })
                #expect(
                    smallest.actions == [StressAction(trigger: .beforeStart, effect: .cancel(last.id))], "\(smallest)")
                #expect(smallest.start == .queue && smallest.keepsReferences)
            }
            #expect(sizes.count == TestExtent.choose(2, long: 25) && sizes.contains { $0 > 12 }, "\(sizes)")
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
            #expect(
                smallest.root.children.map(\.work) == [.leaf(StressLeaf(kind: .throwing, fails: true))], "\(smallest)")
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
