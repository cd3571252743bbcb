import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Every state with every event. A cell has what becomes of the life: whether a finish is accepted, or the gates go
/// on (✓, no), the next state, the actions (with !), x being the outcome that is given. A dash says that nothing changes.
/// `×` is for what the callers never do, and traps.
@Suite("Lifecycle, state × event", .hangGuard) struct LifecycleTableTests {
    // started | becameExecuting | gatesPassed | gateClosed | gateOpened | mainReturned | finished(x) | ended | cancelled | marked
    static let leaf = """
        pending                            | starting announceExecution!   | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | cancelSuperclass!       | ×
        pending, outcome                   | finishing(success) deliver!   | ×                             | ×                             | ×                             | no          | ×                      | no                      | ×                   | cancelSuperclass!       | ×
        pending, marking                   | finishing(cancelled)          | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | repeatSuperclassCancel! | –
        pending, cancelled                 | finishing(cancelled) deliver! | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | –                       | ×
        pending, outcome, cancelled        | finishing(success) deliver!   | ×                             | ×                             | ×                             | no          | ×                      | no                      | ×                   | –                       | ×
        starting                           | –                             | passing passGates!            | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | cancelSuperclass!       | ×
        starting, outcome                  | –                             | finishing(success) deliver!   | ×                             | ×                             | no          | ×                      | no                      | ×                   | cancelSuperclass!       | ×
        starting, marking                  | –                             | finishing(cancelled)          | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | repeatSuperclassCancel! | –
        starting, cancelled                | –                             | finishing(cancelled) deliver! | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | –                       | ×
        passing                            | –                             | ×                             | main runMain!                 | waiting                       | no          | ×                      | ✓ finishing(x) deliver! | ×                   | cancelSuperclass!       | ×
        passing, marking                   | –                             | ×                             | finishing(cancelled)          | finishing(cancelled)          | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | –
        passing, cancelled                 | –                             | ×                             | finishing(cancelled) deliver! | finishing(cancelled) deliver! | no          | ×                      | ✓ finishing(x) deliver! | ×                   | –                       | ×
        waiting                            | –                             | ×                             | ×                             | ×                             | ✓ passing   | ×                      | ✓ finishing(x) deliver! | ×                   | cancelSuperclass!       | ×
        waiting, marking                   | –                             | ×                             | ×                             | ×                             | ✓ passing   | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | finishing(cancelled) deliver!
        main                               | –                             | ×                             | ×                             | ×                             | no          | working                | ✓ finishing(x) deliver! | ×                   | cancelSuperclass!       | ×
        main, marking                      | –                             | ×                             | ×                             | ×                             | no          | working                | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | –
        main, cancelled                    | –                             | ×                             | ×                             | ×                             | no          | working callDidCancel! | ✓ finishing(x) deliver! | ×                   | –                       | ×
        working                            | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x) deliver! | ×                   | cancelSuperclass!       | ×
        working, marking                   | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | callDidCancel!
        working, marking since main        | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | callDidCancel!
        working, cancelled                 | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x) deliver! | ×                   | –                       | ×
        finishing, never executed          | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing, never executed, marking | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | repeatSuperclassCancel! | deliver!
        finishing before main              | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing before main, marking     | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | repeatSuperclassCancel! | deliver!
        finishing before main, cancelled   | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing, waited                  | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing, waited, marking         | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | repeatSuperclassCancel! | deliver!
        finishing, waited, cancelled       | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing in main                  | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing                          | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing, marking                 | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | repeatSuperclassCancel! | callDidCancel! deliver!
        finishing, cancelled               | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finished in main                   | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        finished                           | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        finished, cancelled                | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        """

    // started | becameExecuting | gatesPassed | gateClosed | gateOpened | mainReturned | finished(x) | drained | ended | cancelled
    // | marked
    static let composite = """
        pending                           | starting announceExecution! | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelSuperclass!       | ×
        pending, outcome                  | draining(success) drain!    | ×                        | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelSuperclass!       | ×
        pending, marking                  | draining drain!             | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        pending, cancelled                | draining drain!             | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelChildren!         | ×
        pending, outcome, cancelled       | draining(success) drain!    | ×                        | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelChildren!         | ×
        starting                          | –                           | passing passGates!       | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelSuperclass!       | ×
        starting, outcome                 | –                           | draining(success) drain! | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelSuperclass!       | ×
        starting, marking                 | –                           | draining drain!          | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        starting, cancelled               | –                           | draining drain!          | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelChildren!         | ×
        passing                           | –                           | ×                        | main runMain!   | waiting         | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | cancelSuperclass!       | ×
        passing, marking                  | –                           | ×                        | draining drain! | draining drain! | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        passing, cancelled                | –                           | ×                        | draining drain! | draining drain! | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | cancelChildren!         | ×
        waiting                           | –                           | ×                        | ×               | ×               | ✓ passing   | ×                      | ✓ draining(x) drain!          | ×                           | ×                | cancelSuperclass!       | ×
        waiting, marking                  | –                           | ×                        | ×               | ×               | ✓ passing   | ×                      | ✓ draining(x) drain!          | ×                           | ×                | repeatSuperclassCancel! | draining drain!
        main                              | –                           | ×                        | ×               | ×               | no          | working                | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelSuperclass!       | ×
        main, marking                     | –                           | ×                        | ×               | ×               | no          | working                | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | cancelChildren!
        main, cancelled                   | –                           | ×                        | ×               | ×               | no          | working callDidCancel! | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelChildren!         | ×
        working                           | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelSuperclass!       | ×
        working, marking                  | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        working, marking since main       | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        working, cancelled                | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelChildren!         | ×
        draining, never executed          | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) deliver!  | ×                | cancelChildren!         | ×
        draining, never executed, marking | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second)           | ×                | repeatSuperclassCancel! | cancelChildren!
        draining, outcome, never executed | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) deliver! | ×                | cancelChildren!         | ×
        draining before main              | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) deliver! | ×                | cancelChildren!         | ×
        draining before main, marking     | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | cancelChildren!
        draining before main, cancelled   | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) deliver!  | ×                | cancelChildren!         | ×
        draining, waited                  | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) deliver! | ×                | cancelChildren!         | ×
        draining, waited, marking         | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | cancelChildren!
        draining, waited, cancelled       | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) deliver!  | ×                | cancelChildren!         | ×
        draining in main                  | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) deliver! | ×                | cancelChildren!         | ×
        draining                          | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) deliver! | ×                | cancelChildren!         | ×
        draining, marking                 | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        finishing                         | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | finished(second) | –                       | ×
        finishing, marking                | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | finished(second) | repeatSuperclassCancel! | callDidCancel! deliver!
        finished                          | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | ×                | –                       | ×
        """

    @Test(
        "Each event in each state of a leaf does what the table says",
        arguments: rows(leaf, events: columns.filter { $0 != [.drained] }, of: Situation.leaf)
    )
    func leaves(row: Row) { check(row) }

    @Test(
        "Each event in each state of a composite does what the table says",
        arguments: rows(composite, events: columns, of: Situation.composite)
    )
    func composites(row: Row) { check(row) }

    @Test("Every state of leaves and composites has a row in the table") func completeness() {
        #expect(Self.leaf.split(separator: "\n").count == Situation.leaf.count)
        #expect(Self.composite.split(separator: "\n").count == Situation.composite.count)
    }

    @Test("Every state reads as its name says", arguments: Situation.all) func situations(situation: Situation) {
        let lifecycle = situation.lifecycle
        let name = situation.name
        let executions = ["passing", "waiting", "main", "working", "draining", "finishing"]
        let executes = executions.contains { name.hasPrefix($0) }
        #expect(lifecycle.isExecuting == (executes && !name.contains("never executed")))
        #expect(lifecycle.isFinished == name.hasPrefix("finished"))
        #expect((lifecycle.outcome != nil) == (name.hasPrefix("finish") && !name.contains("marking")))
        #expect(lifecycle.isCancelled == situation.events.contains(.cancelled))
        #expect(lifecycle.isPending == name.hasPrefix("pending"))
        #expect(lifecycle.isWaiting == name.hasPrefix("waiting"))
        #expect(lifecycle.isPassingGates == (name == "passing"))
    }

    @Test("The reason of a cancellation takes the place of a `CancellationError`, and leaves any other outcome alone")
    func reasons() {
        for (error, outcome) in [(CancellationError(), "reason"), (TestError.first, "first")] as [(any Error, String)] {
            var lifecycle = Lifecycle.after([.started, .becameExecuting, .gatesPassed, .mainReturned], .immediately)
            _ = lifecycle.cancelled(reason: TestError.reason)
            _ = lifecycle.superclassCancelled()
            #expect(lifecycle.finished(with: .failure(error)).isAccepted)
            #expect(text(lifecycle.outcome?.error) == outcome)
        }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let situation: Situation
        let cells: [(events: [LifecycleEvent], expected: String)]
        var testDescription: String { situation.testDescription }
    }

    /// The events of each column.
    static let columns: [[LifecycleEvent]] = [
        [.started], [.becameExecuting], [.gatesPassed], [.gateClosed], [.gateOpened], [.mainReturned],
        [.succeeded, .failed], [.drained], [.ended], [.cancelled], [.marked],
    ]

    static func rows(_ table: String, events: [[LifecycleEvent]], of situations: [Situation]) -> [Row] {
        table.split(separator: "\n").map { line in
            let fields = line.split(separator: "|").map { $0.split(separator: " ").joined(separator: " ") }
            guard let situation = situations.first(where: { $0.name == fields[0] }), fields.count == events.count + 1
            else { fatalError("no such situation, or not one cell for each event: \(line)") }
            return Row(situation: situation, cells: Array(zip(events, fields.dropFirst())))
        }
    }

    private func check(_ row: Row) {
        for (events, expected) in row.cells where expected != "×" {
            for event in events {
                var lifecycle = row.situation.lifecycle
                let before = lifecycle.stateText
                let (actions, isAccepted) = lifecycle.apply(event)
                var parts = isAccepted.map { [$0 ? "✓" : "no"] } ?? []
                if lifecycle.stateText != before { parts.append(lifecycle.stateText) }
                parts += actions.map { "\($0)!" }
                let given = event == .failed ? "(first)" : "(success)"
                #expect(
                    (parts.isEmpty ? "–" : parts.joined(separator: " "))
                        == expected.replacingOccurrences(of: "(x)", with: given), "\(event)")
            }
        }
    }
}

#if os(macOS) || os(Linux)
/// The crosses of the table: what the callers never do.
@Suite("Lifecycle, impossible events", .hangGuard) struct LifecycleTrapTests {
    @Test(
        "An event that is impossible in the state of a life traps, and the trap names both",
        arguments: [
            "becameExecuting", "started becameExecuting becameExecuting",
            "started becameExecuting gatesPassed gatesPassed",
            "started gateClosed", "started becameExecuting gateClosed gatesPassed",
            "mainReturned", "started becameExecuting mainReturned",
            "started becameExecuting gatesPassed mainReturned mainReturned", "drained",
            "started becameExecuting gatesPassed drained drained", "started becameExecuting ended",
            "started becameExecuting succeeded ended ended", "marked",
        ]
    )
    func trap(events: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [events] in
            let events = events.split(separator: " ").compactMap { LifecycleEvent(rawValue: String($0)) }
            _ = Lifecycle.after(events, events.last == .drained ? .afterChildren : .immediately)
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("OperationKit: event ") && message.contains(" is impossible in state "))
        #endif
    }
}
#endif
