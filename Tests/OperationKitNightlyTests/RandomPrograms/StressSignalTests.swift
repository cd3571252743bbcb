import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

extension Stress {
    /// The oracle has to see what is wrong with the events that observers get.
    @Suite("Stress: what the oracle sees of observers", .hangGuard) struct StressSignalTests {
        /// A serial compound of one leaf and another one that is cancelled before the start.
        private let program = StressProgram(
            root: StressNode(
                id: 0,
                work: .compound(
                    StressCompound(
                        limit: 1,
                        children: [
                            StressNode(id: 1, work: .leaf(StressLeaf(kind: .inline))),
                            StressNode(id: 2, work: .leaf(StressLeaf(kind: .inline)), entry: .cancelled),
                        ]))),
            observation: .each)

        private func signal(_ id: Int, _ signals: StressSignal...) -> [StressEvent] {
            signals.map { .emitted(id, $0) }
        }

        private func end(_ id: Int, _ outcome: StressOutcome, isCancelled: Bool = false) -> [StressEvent] {
            [.completed(id, outcome, isCancelled: isCancelled), .finished(id), .emitted(id, .finished(outcome))]
        }

        /// What a right run looks like.
        private var right: [StressEvent] {
            let children = [.built(1), .built(2), .emitted(2, .cancelled), .built(0)] + signal(1, .added)
            let first = signal(1, .started, .running) + [.began(1), .ended(1)] + end(1, .success)
            return children + signal(2, .added) + signal(0, .started, .running) + [.began(0)] + first
                + end(2, .cancelled, isCancelled: true) + end(0, .success)
        }

        private func violations(
            _ observation: StressObservation = .each, _ change: (inout [StressEvent]) -> Void
        ) -> [String] {
            var (program, events) = (program, right)
            program.observation = observation
            change(&events)
            return ProgramOracle.violations(of: program, events)
        }

        /// The violations when an event comes at another place: after the last event that is there.
        private func violations(moving signal: StressEvent, after other: StressEvent) -> [String] {
            violations { events in
                events.removeAll { $0 == signal }
                events.insert(signal, at: (events.lastIndex(of: other) ?? -1) + 1)
            }
        }

        @Test("Right events are accepted") func rightEvents() {
            #expect(violations { _ in } == [])
        }

        @Test("Of the events that observers miss, all but additions and waiting are noticed") func missing() {
            for event in right {
                guard case .emitted(_, let signal) = event else { continue }
                let violations = violations { $0.removeAll { $0 == event } }
                // The compound is known to work only by what is inside it.
                #expect(violations.isEmpty == (signal == .added), "\(event)")
            }
        }

        @Test("Events that come twice are seen, and those of an operation that has no observer") func tooMany() {
            for event in right {
                guard case .emitted = event else { continue }
                #expect(!violations { $0.append(event) }.isEmpty, "\(event) again")
            }
            for observed in [StressSignal.started, .running, .cancelled] {
                #expect(!violations { $0.insert(.emitted(2, observed), at: 4) }.isEmpty, "\(observed)")
            }
            #expect(!violations(.none) { _ in }.isEmpty)
        }

        @Test("Events in the wrong order are seen") func order() {
            let end = StressEvent.emitted(1, .finished(.success))
            #expect(!violations(moving: .emitted(1, .started), after: .emitted(1, .running)).isEmpty)
            #expect(!violations(moving: .emitted(1, .running), after: .began(1)).isEmpty)
            #expect(!violations(moving: .emitted(1, .started), after: end).isEmpty)
            #expect(!violations(moving: end, after: .ended(1)).isEmpty)
            for signal in [StressSignal.waiting, .retrying] {
                for other in [StressSignal.added, .running] {
                    let violations = violations { events in
                        let place = events.firstIndex(of: .emitted(1, other)) ?? 0
                        events.insert(.emitted(1, signal), at: place + 1)
                    }
                    let isRight = signal == .retrying && other == .running
                    #expect(violations.isEmpty == isRight, "\(signal) after \(other)")
                }
            }
        }

        @Test("The end of a child after that of its compound is seen") func lateEnd() {
            let end = StressEvent.emitted(1, .finished(.success))
            #expect(
                violations(moving: end, after: .emitted(0, .finished(.success)))
                    == ["the end of n1 came after that of n0"])
            let attempt = violations { $0.append(.emitted(0, .ofAttempt)) }
            #expect(attempt == ["an attempt of n0 had an event after its end"])
        }

        @Test("A wrong outcome and a wrong cancellation are seen") func wrongEvents() {
            let wrong = violations { events in
                events = events.map { $0 == .emitted(1, .finished(.success)) ? .emitted(1, .finished(.failed(1))) : $0 }
            }
            #expect(wrong == ["n1 completed with success, and its last event is \(StressSignal.finished(.failed(1)))"])
            let cancelled = violations { $0.insert(.emitted(1, .cancelled), at: 5) }
            #expect(cancelled == ["n1 has the event of a cancellation"])
        }

        @Test("An observer of the root may miss what was before its addition, and nothing else") func observedRoot() {
            let early = [StressEvent.emitted(1, .added), .emitted(2, .added), .emitted(2, .cancelled)]
            #expect(violations(.root) { $0.removeAll { early.contains($0) } } == [])
            for event in right where !early.contains(event) {
                guard case .emitted = event else { continue }
                #expect(!violations(.root) { $0.removeAll { $0 == event } }.isEmpty, "\(event)")
            }
        }

        @Test(
            "Observers of many kinds of programs get the events that the oracle expects",
            arguments: StressObservation.allCases)
        func programs(observation: StressObservation) async {
            for seed in 0..<TestExtent.choose(60, long: 3_000) as Range<UInt64> {
                var program = ProgramGenerator.program(seed: seed)
                program.observation = observation
                let failure = await onThread { [program] in Soak.check(program) }
                if let failure {
                    Issue.record("\(failure.report)")
                    return
                }
            }
        }
    }
}
