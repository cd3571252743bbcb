import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// Resources, circuit breakers and attempts in small programs of their own, and what the oracle sees of promises about them
    /// that are not kept.
    @Suite("Stress: resources and attempts", .hangGuard) struct StressResourceTests {
        private static func leaf(
            _ id: Int, _ kind: StressLeaf.Kind = .inline, fails: Bool = false,
            requires resources: [StressResource] = [],
            within patience: Int? = nil, hasCircuit: Bool = false
        ) -> StressNode {
            var node = StressNode(id: id, work: .leaf(StressLeaf(kind: kind, fails: fails)))
            node.policies.resources = resources
            node.policies.patience = patience
            node.policies.hasCircuit = hasCircuit
            return node
        }

        private static func program(_ children: [StressNode], _ actions: [StressAction] = []) -> StressProgram {
            StressProgram(
                root: StressNode(id: 0, work: .compound(StressCompound(children: children))), actions: actions)
        }

        private var cancellations: [StressAction] {
            [StressAction(trigger: .outside(thread: 0, delay: 300), effect: .cancel(2))]
        }

        @Test("Operations take turns with what they require, together, in time or not, while some are cancelled")
        func resources() async {
            for resources in StressResource.allCases.map({ [$0] }) + [[.first, .second], StressResource.allCases] {
                let kinds: [StressLeaf.Kind] = [.inline, .hopping, .task, .stoppable, .later]
                let children = kinds.enumerated().map {
                    Self.leaf($0 + 1, $1, requires: resources, within: $0 == 2 ? 2 : nil)
                }
                await Stress.expectRight(Self.program(children))
                await Stress.expectRight(Self.program(children, cancellations))
            }
        }

        @Test("Operations inside holders get what they need, or give up") func crosswise() async {
            let composites = [(1, StressResource.first, StressResource.second), (3, .second, .first)].map {
                (id, outer, inner) -> StressNode in
                let inside = [Self.leaf(id + 1, .hopping, requires: [inner], within: 2)]
                var node = StressNode(id: id, work: .compound(StressCompound(children: inside)))
                node.policies.resources = [outer]
                return node
            }
            await Stress.expectRight(
                Self.program(composites + [Self.leaf(5, .hopping, requires: [.first, .second])]), times: 20)
        }

        @Test("A circuit breaker opens and closes while operations fail, and time passes") func circuit() async {
            let children = (1...8).map { Self.leaf($0, .hopping, fails: $0 < 5, hasCircuit: true) }
            let time = [1, 3].map {
                StressAction(trigger: .outside(thread: 0, delay: 3_000 * $0), effect: .advance(by: $0))
            }
            await Stress.expectRight(Self.program(children, time))
            await Stress.expectRight(Self.program(children, time + cancellations))
        }

        @Test("Attempts fail and succeed, in time or not, and take turns, while their operations are cancelled")
        func attempts() async {
            let forms: [(StressRetry.Form, areStuck: Bool)] = [
                (.retry, false), (.retry, true), (.repetition, false), (.hedging, false),
            ]
            for failures in 0...3 {
                for (form, areStuck) in forms {
                    let children = (1...3).map { id in
                        StressNode(
                            id: id,
                            work: .retry(
                                StressRetry(
                                    form: form, failures: failures, maximum: id, delay: id - 1, areStuck: areStuck,
                                    hops: id > 1,
                                    resource: id > 1 ? .first : nil)))
                    }
                    await Stress.expectRight(Self.program(children))
                    await Stress.expectRight(Self.program(children, cancellations))
                    let time = StressAction(trigger: .outside(thread: 0, delay: 300), effect: .advance(by: 2))
                    await Stress.expectRight(Self.program(children, [time]), times: 1)
                }
            }
        }
    }
}
