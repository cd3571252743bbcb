import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// The oracle has to see what is wrong, and nothing else.
    @Suite("Stress: the oracle itself", .hangGuard) struct StressOracleTests {
        /// A serial compound of one leaf and another one that comes after it and fails.
        private let program = StressProgram(
            root: StressNode(
                id: 0,
                work: .compound(
                    StressCompound(
                        limit: 1,
                        children: [
                            StressNode(id: 1, work: .leaf(StressLeaf(kind: .inline))),
                            StressNode(id: 2, work: .leaf(StressLeaf(kind: .inline, fails: true)), after: [1]),
                        ]))))

        private func report(
            isCancellation: Bool = false, name: String = "n0", child: String = "n2", index: Int = 1, siblings: Int = 2
        ) -> StressOutcome {
            let failure = StressReport.Failure(name: child, index: index, outcome: .failed(2), siblings: siblings)
            return .report(StressReport(isCancellation: isCancellation, name: name, failures: [failure]))
        }

        private func end(_ id: Int, _ outcome: StressOutcome, isCancelled: Bool = false) -> [StressEvent] {
            [.completed(id, outcome, isCancelled: isCancelled), .finished(id)]
        }

        private let start: [StressEvent] = [.built(1), .built(2), .built(0), .began(0)]
        private func run(_ id: Int) -> [StressEvent] { [.began(id), .ended(id)] }

        /// What a right run looks like.
        private var right: [StressEvent] {
            start + run(1) + end(1, .success) + run(2) + end(2, .failed(2)) + end(0, report())
        }

        private func violations(_ events: [StressEvent]) -> [String] {
            ProgramOracle.violations(of: program, events)
        }

        @Test("A right log is accepted") func rightLog() {
            #expect(violations(right) == [])
        }

        @Test("A child that did not run is seen") func leftOut() {
            let log = start + run(1) + end(1, .success) + end(2, .cancelled, isCancelled: true) + end(0, .success)
            #expect(violations(log).contains("n2 did not run"))
            #expect(violations(log).contains("n2 was cancelled without a cause") == false)
            #expect(violations(log).contains("n2 ended with cancelled instead of failed(2)"))
        }

        @Test("A child that ran twice is seen") func ranTwice() {
            let log = start + run(1) + run(1) + end(1, .success) + run(2) + end(2, .failed(2)) + end(0, report())
            #expect(violations(log).contains("n1 ran 2 times"))
        }

        @Test("A child that starts before its dependency has ended is seen") func early() {
            let log = start + run(2) + end(2, .failed(2)) + run(1) + end(1, .success) + end(0, report())
            #expect(violations(log) == ["n2 began before n1 had ended"])
        }

        @Test("A compound that ends with a wrong report is seen") func wrongReport() {
            let head = start + run(1) + end(1, .success) + run(2) + end(2, .failed(2))
            for wrong in [
                report(name: "n7"), report(child: "n1"), report(index: 0), report(siblings: 3),
                report(isCancellation: true), .success, .cancelled, .failed(2),
            ] {
                #expect(!violations(head + end(0, wrong)).isEmpty, "\(wrong)")
            }
        }

        @Test("A child that outlives its compound is seen") func outliving() {
            let log = start + run(1) + end(1, .success) + run(2) + end(0, report()) + end(2, .failed(2))
            #expect(violations(log) == ["n2 outlived n0"])
        }

        @Test("More children at the same time than the limit allows are seen") func tooMany() {
            var program = program
            program.root.work = .compound(
                StressCompound(
                    limit: 1, children: [1, 2].map { StressNode(id: $0, work: .leaf(StressLeaf(kind: .inline))) }))
            let both: [StressEvent] = [.began(1), .began(2), .ended(1), .ended(2)]
            let log = start + both + end(1, .success) + end(2, .success) + end(0, .success)
            #expect(ProgramOracle.violations(of: program, log) == ["more than 1 children of n0 ran at the same time"])
        }

        @Test("Completion blocks in the wrong order are seen") func blocks() {
            let log: [StressEvent] =
                start + run(1) + [.finished(1), .completed(1, .success, isCancelled: false)]
                + run(2) + end(2, .failed(2)) + end(0, report())
            #expect(violations(log) == ["the async completion block of n1 came after the completion block"])
        }

        @Test("Leaks and hangs are seen") func leaksAndHangs() {
            #expect(violations(right + [.leaked(["n1"])]) == ["leaked: n1"])
            #expect(violations(start + [.hung(["n1 waiting"])]) == ["it hangs: n1 waiting"])
        }

        @Test("A child that runs although it was cancelled before the start is seen") func ranAlthoughCancelled() {
            var program = program
            program.actions = [StressAction(trigger: .beforeStart, effect: .cancel(1))]
            let log = [.acted(0, isAccepted: true)] + right
            #expect(
                ProgramOracle.violations(of: program, log) == [
                    "n1 ran, although n1 had been told to end before the start"
                ])
        }

        @Test("A child that lost its finish ends with an error that says so, and as cancelled after its cancellation")
        func lost() {
            var program = program
            program.root.work = .compound(
                StressCompound(children: [StressNode(id: 1, work: .leaf(StressLeaf(kind: .losing)))]))
            func report(_ outcomes: [StressOutcome]) -> StressOutcome {
                let failures = outcomes.map { StressReport.Failure(name: "n1", index: 0, outcome: $0, siblings: 1) }
                let report = StressReport(isCancellation: false, name: "n0", failures: failures)
                return outcomes.isEmpty ? .success : .report(report)
            }
            func violations(_ outcome: StressOutcome, _ inside: [StressEvent] = [], isCancelled: Bool = false)
                -> [String]
            {
                let work = [.began(1)] + inside + [.ended(1)] + end(1, outcome, isCancelled: isCancelled)
                let end = end(0, report([outcome].filter(\.isFailure)))
                return ProgramOracle.violations(of: program, [.built(1), .built(0), .began(0)] + work + end)
            }
            #expect(violations(.lost(1)) == [])
            for wrong in [StressOutcome.success, .lost(2), .failed(1), .cancelled] {
                #expect(!violations(wrong).isEmpty, "\(wrong)")
            }
            program.actions = [StressAction(trigger: .inside(1), effect: .cancel(1))]
            let cancelled = [StressEvent.acted(0, isAccepted: true)]
            #expect(violations(.cancelled, cancelled, isCancelled: true) == [])
            #expect(
                violations(.lost(1), cancelled, isCancelled: true) == ["n1 was lost, although it had been cancelled"])
        }

        @Test("A child that a serial compound starts after its cancellation is seen") func ranAfterCancellation() {
            var program = program
            program.actions = [StressAction(trigger: .inside(1), effect: .cancel(0))]
            let head =
                start + [.began(1), .acted(0, isAccepted: true), .ended(1)] + end(1, .success, isCancelled: true)
            let log = head + run(2) + end(2, .failed(2), isCancelled: true)
            #expect(
                ProgramOracle.violations(of: program, log + end(0, report(isCancellation: true), isCancelled: true))
                    == ["n2 ran after n1 had cancelled n0"])
            let empty = StressOutcome.report(StressReport(isCancellation: true, name: "n0", failures: []))
            let right = head + end(2, .cancelled, isCancelled: true) + end(0, empty, isCancelled: true)
            #expect(ProgramOracle.violations(of: program, right) == [])
        }

        @Test("An addition that is rejected although a child still runs is seen") func rejectedAddition() {
            var program = program
            let node = StressNode(id: 3, work: .leaf(StressLeaf(kind: .inline)))
            program.actions = [StressAction(trigger: .inside(1), effect: .add(node, to: 0))]
            let log: [StressEvent] =
                start + [.began(1), .built(3), .acted(0, isAccepted: false), .ended(1)] + end(1, .success)
                + run(2) + end(2, .failed(2)) + end(0, report())
            #expect(
                ProgramOracle.violations(of: program, log) == [
                    "n3 was refused by n0, although n1 was still working inside it"
                ])
        }

        @Test("What the task that awaits the root is told has to be how that ended, afterward")
        func awaiting() {
            var program = program
            program.start = .task
            let told = StressEvent.awaited(report())
            #expect(ProgramOracle.violations(of: program, right + [told]) == [])
            for wrong in [right, right + [.awaited(.success)], [told] + right, right + [told, told]] {
                #expect(!ProgramOracle.violations(of: program, wrong).isEmpty)
            }
        }

        @Test("An error that is not the one of the operation that failed first is seen")
        func nestedDependency() {
            var second = StressNode(id: 2, work: .leaf(StressLeaf(kind: .inline)))
            second.requires = [1]
            var third = StressNode(id: 3, work: .leaf(StressLeaf(kind: .inline)))
            third.requires = [2]
            let first = StressNode(id: 1, work: .leaf(StressLeaf(kind: .inline, fails: true)))
            let program = StressProgram(
                root: StressNode(id: 0, work: .compound(StressCompound(children: [first, second, third]))))
            let root = StressOutcome.dependency("n1", .failed(1))
            func violations(_ outcome: StressOutcome, blocked: Int = 2) -> [String] {
                let failure = StressReport.Failure(
                    name: "n1", index: 0, outcome: .failed(1), siblings: 3, blocked: blocked)
                let log = [.built(3)] + start + run(1) + end(1, .failed(1)) + end(2, root) + end(3, outcome)
                let report = StressReport(isCancellation: false, name: "n0", failures: [failure])
                return ProgramOracle.violations(of: program, log + end(0, .report(report)))
            }
            #expect(violations(root) == [])
            for wrong in [0, 1, 3] { #expect(!violations(root, blocked: wrong).isEmpty) }
            for wrong in [.dependency("n2", root), .dependency("n2", .failed(1)), StressOutcome.success] {
                #expect(!violations(wrong).isEmpty, "\(wrong)")
            }
        }

        @Test("Progress that is complete too early, or not at success, and an addition that should be refused are seen")
        func progressAndRefusals() {
            func noting(_ fraction: Double, hasEnded: Bool) -> [StressEvent] {
                right + [.progressed(1, fraction: fraction, hasEnded: hasEnded)]
            }
            #expect(violations(noting(1, hasEnded: true) + noting(0.5, hasEnded: false).suffix(1)) == [])
            #expect(violations(noting(0.9, hasEnded: true)) == ["the progress of n1 was 0.9 at its success"])
            #expect(violations(noting(1, hasEnded: false)) == ["the progress of n1 was complete while it worked"])
            #expect(violations(noting(1.25, hasEnded: false)).contains("the progress of n1 was 1.25"))
            var program = program
            program.actions = [StressAction(trigger: .beforeStart, effect: .addAgain(1))]
            #expect(
                ProgramOracle.violations(of: program, [.acted(0, isAccepted: true)] + right)
                    == ["action 0 was not refused"])
        }

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
            var program = program
            // The limit is never raised again.
            program.actions = [StressAction(trigger: .beforeStart, effect: .squeeze(0, limit: 0))]
            var violations: [String] = []
            // On a busy machine it may take longer until it has begun.
            for hangTimeout in [0.2, 5, 100] where violations.first?.hasPrefix("it hangs: n0 executing") != true {
                violations = await onThread { [program] in
                    ProgramOracle.violations(of: program, ProgramRun.events(of: program, hangTimeout: hangTimeout))
                }
            }
            #expect(violations.count == 1 && violations[0].hasPrefix("it hangs: n0 executing"), "\(violations)")
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
        case .ended, .unitBegan, .unitEnded: [("loss", []), ("doubling", [self, self])]
        case .rest(let id, _, _, let isCancelled):
            [("falsification", [.rest(id, isFinished: false, isExecuting: true, isCancelled: isCancelled)])]
        case .awaited: [("loss", []), ("doubling", [self, self]), ("falsification", [.awaited(.other("wrong"))])]
        case .progressed(let id, _, let hasEnded):
            [("falsification", [.progressed(id, fraction: 1.25, hasEnded: hasEnded)])]
        case .shared(let leaves, _): [("falsification", [.shared(leaves, fraction: 1.25)])]
        case .emitted(let id, .finished):
            [("doubling", [self, self]), ("falsification", [.emitted(id, .finished(.other("wrong")))])]
        case .emitted(_, .started), .emitted(_, .running), .emitted(_, .cancelled): [("doubling", [self, self])]
        case .conditionBegan, .conditionEnded, .prerequisiteBegan, .prerequisiteEnded:
            [("loss", []), ("doubling", [self, self])]
        case .built, .acted, .emitted, .externalEnded, .advancing, .advanced, .hung, .reported, .leaked: []
        }
    }
}
