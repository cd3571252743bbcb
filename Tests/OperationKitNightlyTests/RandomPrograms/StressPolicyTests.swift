import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// Each policy in small programs of its own, and what the oracle sees of policies that are not kept.
    @Suite("Stress: policies", .hangGuard) struct StressPolicyTests {
        private static func leaf(
            _ id: Int, _ kind: StressLeaf.Kind = .inline, _ conditions: [StressCondition] = [],
            timeout: StressTimeout? = nil
        ) -> StressNode {
            var node = StressNode(id: id, work: .leaf(StressLeaf(kind: kind)))
            node.policies = StressPolicies(conditions: conditions, timeout: timeout)
            return node
        }

        private static func program(_ children: [StressNode], _ actions: [StressAction] = []) -> StressProgram {
            let root = StressNode(id: 0, work: .compound(StressCompound(children: children)))
            return StressProgram(root: root, actions: actions)
        }

        @Test("Conditions of every kind of operation answer, fail, skip and wait, while it is cancelled or not")
        func conditions() async {
            let works: [StressWork] = [
                .leaf(StressLeaf(kind: .hopping)), .leaf(StressLeaf(kind: .task)), .leaf(StressLeaf(kind: .delay)),
                .compound(StressCompound(children: [Self.leaf(2), Self.leaf(3, .hopping)])),
                .macro([Self.leaf(2), Self.leaf(3, .hopping)]), .waterfall([Self.leaf(2, .hopping)]),
                .recovery(Self.leaf(2, .hopping), Self.leaf(3)),
                .gathering(StressCompound(children: [Self.leaf(2), Self.leaf(3)])),
                .collection(StressCollection(strategy: .parallelItems, units: [false, true])),
            ]
            for work in works {
                for answer in StressCondition.Answer.allCases {
                    for wait in [StressCondition.Wait.none, .yields, .gate] {
                        let condition = StressCondition(answer: answer, wait: wait)
                        var node = StressNode(id: 1, work: work)
                        node.policies.conditions = [StressCondition(wait: .yields), condition]
                        var dependent = Self.leaf(4)
                        dependent.requires = [1]
                        await Stress.expectRight(Self.program([node, dependent]), times: 1)
                        let cancellation = StressAction(trigger: .outside(thread: 0, delay: 300), effect: .cancel(1))
                        await Stress.expectRight(Self.program([node, dependent], [cancellation]), times: 1)
                    }
                }
            }
        }

        @Test("Conditions need operations, which fails or does not, while some are cancelled")
        func prerequisites() async {
            for fails in [false, true] {
                let children = (1...6).map { id in
                    let prerequisite = StressPrerequisite(fails: fails)
                    return Self.leaf(id, .inline, [StressCondition(wait: .yields, prerequisite: prerequisite)])
                }
                await Stress.expectRight(Self.program(children))
                let actions = [0, 2, 4].map {
                    StressAction(trigger: .outside(thread: $0 % 2, delay: 300), effect: .cancel($0))
                }
                await Stress.expectRight(Self.program(children, actions))
                await Stress.expectRight(Self.program(children, Array(actions.dropFirst())))
            }
        }

        @Test("Work that does not end by itself is ended by its timeout, and other work by time or not")
        func timeouts() async {
            let inside = [Self.leaf(4, .hopping), Self.leaf(5, .stuck, timeout: .seconds(6))]
            var compound = StressNode(id: 3, work: .compound(StressCompound(children: inside)))
            compound.policies.timeout = .seconds(2)
            let children = [
                Self.leaf(1, .stuck, timeout: .seconds(1)), Self.leaf(2, .stuck, timeout: .seconds(3)), compound,
                Self.leaf(6, .delay, timeout: .seconds(2)), Self.leaf(7, .delay), Self.leaf(8, timeout: .zero),
                Self.leaf(9, .stoppable, timeout: .never), Self.leaf(10, .later, timeout: .seconds(1)),
            ]
            await Stress.expectRight(Self.program(children))
            let time = [1, 2, 3].map {
                StressAction(trigger: .outside(thread: $0 % 2, delay: 300 * $0), effect: .advance(by: $0))
            }
            await Stress.expectRight(Self.program(children, time))
            await Stress.expectRight(
                Self.program(children, time + [StressAction(trigger: .inside(10), effect: .cancel(0))]))
            var delayed = Self.program(children, time + [StressAction(trigger: .inside(10), effect: .cancel(0))])
            delayed.start = .delayed
            await Stress.expectRight(delayed)
        }
    }
}

extension Stress.StressPolicyTests {
    private func violations(_ children: [StressNode], _ events: [StressEvent]) -> [String] {
        let made = children.map { StressEvent.built($0.id) } + [.built(0), .began(0)]
        return ProgramOracle.violations(of: Self.program(children), made + events)
    }

    private func end(_ id: Int, _ outcome: StressOutcome, isCancelled: Bool = false) -> [StressEvent] {
        [.completed(id, outcome, isCancelled: isCancelled), .finished(id)]
    }

    /// The end of the root after that of its only child.
    private func end(_ outcome: StressOutcome, isCancelled: Bool = false) -> [StressEvent] {
        let failure = StressReport.Failure(name: "n1", index: 0, outcome: outcome, siblings: 1)
        let report = StressOutcome.report(StressReport(isCancellation: false, name: "n0", failures: [failure]))
        return end(1, outcome, isCancelled: isCancelled) + end(0, outcome.isFailure ? report : .success)
    }

    private func evaluation(_ index: Int, of id: Int = 1) -> [StressEvent] {
        [.conditionBegan(id, index: index), .conditionEnded(id, index: index)]
    }

    private var work: [StressEvent] { [.began(1), .ended(1)] }

    @Test("Conditions that are evaluated twice, in the wrong order, or not at all are seen") func wrongEvaluations() {
        let node = Self.leaf(1, .inline, [StressCondition(), StressCondition()])
        let tail = work + end(.success)
        #expect(violations([node], evaluation(0) + evaluation(1) + tail) == [])
        for wrong in [
            [], evaluation(0), evaluation(1), evaluation(1) + evaluation(0),
            evaluation(0) + evaluation(0) + evaluation(1),
        ] {
            #expect(!violations([node], wrong + tail).isEmpty, "\(wrong)")
        }
        #expect(!violations([node], evaluation(0) + tail + evaluation(1)).isEmpty)
    }

    @Test("An operation that does not do what its conditions say is seen") func ignoredConditions() {
        let failing = Self.leaf(1, .inline, [StressCondition(answer: .failed)])
        #expect(violations([failing], evaluation(0) + end(.condition(1, 0))) == [])
        for wrong in [StressOutcome.success, .condition(1, 1), .condition(2, 0), .cancelled, .failed(1)] {
            #expect(!violations([failing], evaluation(0) + end(wrong)).isEmpty, "\(wrong)")
        }
        #expect(
            violations([failing], evaluation(0) + work + end(.condition(1, 0)))
                == ["n1 ran, although condition 0 of n1 was not satisfied"])
        let skipped = Self.leaf(1, .inline, [StressCondition(answer: .skipped)])
        #expect(violations([skipped], evaluation(0) + end(.cancelled, isCancelled: true)) == [])
        #expect(!violations([skipped], evaluation(0) + end(.condition(1, 0))).isEmpty)
        #expect(!violations([skipped], evaluation(0) + work + end(.success)).isEmpty)
        #expect(!violations([skipped], evaluation(0) + end(.success)).isEmpty)
    }

    @Test("A condition that is evaluated before a dependency has ended is seen") func earlyEvaluation() {
        var node = Self.leaf(1, .inline, [StressCondition()])
        node.after = [2]
        let other: [StressEvent] = [.began(2), .ended(2)] + end(2, .success)
        let children = [Self.leaf(2), node]
        #expect(violations(children, other + evaluation(0) + work + end(.success)) == [])
        #expect(
            violations(children, evaluation(0) + other + work + end(.success)) == ["n1 began before n2 had ended"])
    }

    @Test("Prerequisites that do not run, run twice, or at the same time are seen") func wrongPrerequisites() {
        let prerequisite = StressPrerequisite()
        let key = prerequisite.key(1, 0)
        let node = Self.leaf(1, .inline, [StressCondition(prerequisite: prerequisite)])
        let began = StressEvent.prerequisiteBegan(key)
        let ended = StressEvent.prerequisiteEnded(key, isCancelled: false)
        let tail = work + end(.success)
        #expect(violations([node], [began, ended] + evaluation(0) + tail) == [])
        for wrong in [[], [began], [began, began, ended, ended], [began, ended, began, ended]] {
            #expect(!violations([node], wrong + evaluation(0) + tail).isEmpty, "\(wrong)")
        }
        #expect(!violations([node], evaluation(0) + [began, ended] + tail).isEmpty)
    }

    @Test("A timeout or a delay that is over too early, and one that is not heeded, are seen") func wrongTimes() {
        let stuck = Self.leaf(1, .stuck, timeout: .seconds(3))
        func passing(_ seconds: Int) -> [StressEvent] { [.advancing(to: seconds), .advanced(to: seconds)] }
        let tail = work + end(.timeout(1), isCancelled: true)
        #expect(violations([stuck], [.began(1)] + passing(3) + [.ended(1)] + end(.timeout(1), isCancelled: true)) == [])
        let late = ProgramOracle.violations(
            of: Self.program([stuck]), [.built(1), .built(0)] + passing(3) + [.began(0)] + tail)
        #expect(late == ["n1 was too late after 0 s instead of 3 s"])
        #expect(violations([stuck], [.advancing(to: 2)] + tail) == ["n1 was too late after 2 s instead of 3 s"])
        #expect(!violations([stuck], [.advancing(to: 3)] + work + end(.success)).isEmpty)

        let delay = Self.leaf(1, .delay)
        #expect(violations([delay], [.advancing(to: 2)] + end(.success)) == [])
        #expect(violations([delay], [.advancing(to: 1)] + end(.success)) == ["n1 ended after 1 s instead of 2 s"])

        let zero = Self.leaf(1, .inline, timeout: .zero)
        #expect(violations([zero], end(.timeout(1))) == [])
        #expect(!violations([zero], work + end(.timeout(1), isCancelled: true)).isEmpty)
        #expect(!violations([zero], work + end(.success)).isEmpty)
        #expect(!violations([Self.leaf(1, .stoppable)], [.advancing(to: 9)] + tail).isEmpty)
    }
}
