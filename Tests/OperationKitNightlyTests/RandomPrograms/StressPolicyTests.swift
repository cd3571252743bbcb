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
