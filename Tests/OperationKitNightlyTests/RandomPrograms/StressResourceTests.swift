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

extension Stress.StressResourceTests {
    private func violations(_ children: [StressNode], _ events: [StressEvent]) -> [String] {
        let made = children.map { StressEvent.built($0.id) } + [.built(0), .began(0)]
        return ProgramOracle.violations(of: Self.program(children), made + events)
    }

    private func end(_ id: Int, _ outcome: StressOutcome = .success) -> [StressEvent] {
        [.completed(id, outcome, isCancelled: false), .finished(id)]
    }

    /// The end of the root, in which these have failed.
    private func end(failed: [Int: StressOutcome] = [:], of count: Int) -> [StressEvent] {
        let failures = failed.sorted { $0.key < $1.key }.map {
            StressReport.Failure(name: "n\($0.key)", index: $0.key - 1, outcome: $0.value, siblings: count)
        }
        let report = StressOutcome.report(StressReport(isCancellation: false, name: "n0", failures: failures))
        return end(0, failures.isEmpty ? .success : report)
    }

    private func work(_ id: Int) -> [StressEvent] { [.began(id), .ended(id)] }

    @Test("Operations that have a resource at the same time are seen, and a permit that comes back too early")
    func sharedResources() {
        for resource in StressResource.allCases {
            let children = (1...3).map { Self.leaf($0, requires: [resource]) }
            let alone = (1...3).flatMap { id in
                // After the time of the rate limit, so many are allowed.
                [.advancing(to: id * 3), .advanced(to: id * 3)] + work(id) + end(id)
            }
            #expect(violations(children, alone + end(of: 3)) == [])
            let both: [StressEvent] = (1...3).map { .began($0) } + (1...3).flatMap { [.ended($0)] + end($0) }
            #expect(violations(children, both + end(of: 3)).count == 1, "\(resource)")
        }
    }

    @Test("A resource that is refused too early, or without a cause, is seen") func wrongRefusals() {
        let patient = Self.leaf(1, requires: [.first])
        let impatient = Self.leaf(1, requires: [.first], within: 2)
        let refused = end(1, .impatient(1)) + end(failed: [1: .impatient(1)], of: 1)
        #expect(violations([impatient], [.advancing(to: 2)] + refused) == [])
        #expect(violations([impatient], [.advancing(to: 1)] + refused) == ["n1 gave up after 1 s instead of 2 s"])
        #expect(!violations([impatient], [.advancing(to: 2)] + work(1) + refused).isEmpty)
        #expect(!violations([patient], [.advancing(to: 2)] + refused).isEmpty)
        let held = end(1, .heldAround(1)) + end(failed: [1: .heldAround(1)], of: 1)
        #expect(!violations([patient], held).isEmpty)
    }

    @Test("A circuit breaker that is open without a failure, or lets operations through, is seen") func wrongCircuit() {
        let children = (1...4).map { Self.leaf($0, fails: $0 == 1, hasCircuit: true) }
        let failure = work(1) + end(1, .failed(1)) + work(2) + end(2)
        let open = end(3, .circuitOpen(3, 3))
        let failed: [Int: StressOutcome] = [1: .failed(1), 3: .circuitOpen(3, 3)]
        let last = work(4) + end(4) + end(failed: failed, of: 4)
        #expect(violations(children, failure + open + last) == [])
        #expect(!violations(children, open + failure + last).isEmpty)
        #expect(!violations(children, failure + [.began(3), .ended(3)] + open + last).isEmpty)
        // One that is made later.
        let late = [StressEvent.built(4)] + last
        let head = Array((1...3).map { StressEvent.built($0) }) + [.built(0), .began(0)] + failure + open
        func lateViolations(_ time: [StressEvent]) -> [String] {
            ProgramOracle.violations(of: Self.program(children), head + time + late)
        }
        #expect(lateViolations([]) == ["n4 ran after n3 had found the circuit open"])
        #expect(lateViolations([.advancing(to: 3)]) == [])
    }

    @Test("Attempts that are too many, too few, too early or at the same time are seen") func wrongAttempts() {
        let node = StressNode(id: 1, work: .retry(StressRetry(failures: 1, maximum: 3, delay: 2)))
        func attempt(_ number: Int) -> [StressEvent] {
            [.unitBegan(1, unit: number), .unitEnded(1, unit: number)]
        }
        let time: [StressEvent] = [.advancing(to: 2), .advanced(to: 2)]
        let tail = end(1) + end(of: 1)
        #expect(violations([node], attempt(1) + time + attempt(2) + tail) == [])
        #expect(
            violations([node], attempt(1) + attempt(2) + tail) == ["attempt 2 of n1 came after 0 s instead of 2 s"])
        for wrong in [
            [], attempt(1), attempt(1) + time + attempt(2) + time + attempt(3), attempt(2) + time + attempt(1),
            [.unitBegan(1, unit: 1)] + time + attempt(2) + [.unitEnded(1, unit: 1)],
        ] {
            #expect(!violations([node], wrong + tail).isEmpty, "\(wrong)")
        }
        #expect(!violations([node], attempt(1) + end(1, .unit(1)) + end(failed: [1: .unit(1)], of: 1)).isEmpty)
    }
    @Test("Runs that begin too early, and hedged attempts that nothing made begin, are seen") func wrongForms() {
        func began(_ form: StressRetry.Form, _ log: [StressEvent]) -> [String] {
            let node = StressNode(
                id: 1, work: .retry(StressRetry(form: form, failures: form == .hedging ? 0 : 1, maximum: 3, delay: 2)))
            return violations([node], log + end(1) + end(of: 1))
        }
        let time: [StressEvent] = [.advancing(to: 2), .advanced(to: 2)]
        let first: [StressEvent] = [.unitBegan(1, unit: 1), .unitEnded(1, unit: 1)]
        let second: [StressEvent] = [.unitBegan(1, unit: 2), .unitEnded(1, unit: 2)]
        #expect(began(.repetition, first + time + second) == [])
        #expect(began(.repetition, first + second) == ["attempt 2 of n1 came after 0 s instead of 2 s"])
        #expect(began(.hedging, first) == [])
        #expect(began(.hedging, [.unitBegan(1, unit: 1)] + time + second + [.unitEnded(1, unit: 1)]) == [])
        #expect(
            began(.hedging, [.unitBegan(1, unit: 1)] + second + [.unitEnded(1, unit: 1)])
                == ["attempt 2 of n1 came after 0 s instead of 2 s"])
        #expect(!began(.hedging, []).isEmpty)
    }
}
