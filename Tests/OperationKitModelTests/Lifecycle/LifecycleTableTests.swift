import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Every state with every event. A cell has what becomes of the life: whether a finish is accepted (✓, no), the next
/// state, the actions (with !), x being the outcome that is given. A dash says that nothing changes. `×` is for what
/// the callers never do, and traps.
@Suite("Lifecycle, state × event", .hangGuard) struct LifecycleTableTests {
    // started | becameExecuting | mainReturned | finished(x) | ended | cancelled | marked
    static let leaf = """
        pending                            | starting announceExecution!   | ×                           | ×                | ✓ pending(x)            | ×                   | cancelSuperclass! | ×
        pending, outcome                   | finishing(success) deliver!   | ×                           | ×                | no                      | ×                   | cancelSuperclass! | ×
        pending, marking                   | finishing(cancelled)          | ×                           | ×                | ✓ pending(x)            | ×                   | repeatSuperclassCancel!     | –
        pending, cancelled                 | finishing(cancelled) deliver! | ×                           | ×                | ✓ pending(x)            | ×                   | –              | ×
        pending, outcome, cancelled        | finishing(success) deliver!   | ×                           | ×                | no                      | ×                   | –              | ×
        starting                           | –                             | main runMain!               | ×                | ✓ starting(x)           | ×                   | cancelSuperclass! | ×
        starting, outcome                  | –                             | finishing(success) deliver! | ×                | no                      | ×                   | cancelSuperclass! | ×
        starting, marking                  | –                             | main runMain!               | ×                | ✓ starting(x)           | ×                   | repeatSuperclassCancel!     | –
        starting, cancelled                | –                             | main runMain!               | ×                | ✓ starting(x)           | ×                   | –              | ×
        main                               | –                             | ×                           | working          | ✓ finishing(x) deliver! | ×                   | cancelSuperclass! | ×
        main, marking                      | –                             | ×                           | working          | ✓ finishing(x)          | ×                   | repeatSuperclassCancel!     | –
        main, cancelled                    | –                             | ×                           | working callDidCancel! | ✓ finishing(x) deliver! | ×                   | –              | ×
        working                            | –                             | ×                           | ×                | ✓ finishing(x) deliver! | ×                   | cancelSuperclass! | ×
        working, marking                   | –                             | ×                           | ×                | ✓ finishing(x)          | ×                   | repeatSuperclassCancel!     | callDidCancel!
        working, marking since main        | –                             | ×                           | ×                | ✓ finishing(x)          | ×                   | repeatSuperclassCancel!     | callDidCancel!
        working, cancelled                 | –                             | ×                           | ×                | ✓ finishing(x) deliver! | ×                   | –              | ×
        finishing, never executed          | –                             | ×                           | –                | no                      | finished(cancelled) | –              | ×
        finishing, never executed, marking | –                             | ×                           | –                | no                      | finished(cancelled) | repeatSuperclassCancel!     | deliver!
        finishing in main                  | –                             | ×                           | –                | no                      | finished(success)   | –              | ×
        finishing                          | –                             | ×                           | –                | no                      | finished(success)   | –              | ×
        finishing, marking                 | –                             | ×                           | –                | no                      | finished(success)   | repeatSuperclassCancel!     | callDidCancel! deliver!
        finishing, cancelled               | –                             | ×                           | –                | no                      | finished(success)   | –              | ×
        finished in main                   | –                             | ×                           | –                | no                      | ×                   | –              | ×
        finished                           | –                             | ×                           | –                | no                      | ×                   | –              | ×
        finished, cancelled                | –                             | ×                           | –                | no                      | ×                   | –              | ×
        """

    // started | becameExecuting | mainReturned | finished(x) | drained | ended | cancelled | marked
    static let composite = """
        pending                           | starting announceExecution! | ×                        | ×                | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelSuperclass!  | ×
        pending, outcome                  | draining(success) drain!    | ×                        | ×                | no                            | ×                           | ×                | cancelSuperclass!  | ×
        pending, marking                  | draining drain!             | ×                        | ×                | ✓ pending(x) cancelChildren!  | ×                           | ×                | repeatSuperclassCancel!      | cancelChildren!
        pending, cancelled                | draining drain!             | ×                        | ×                | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelChildren! | ×
        pending, outcome, cancelled       | draining(success) drain!    | ×                        | ×                | no                            | ×                           | ×                | cancelChildren! | ×
        starting                          | –                           | main runMain!            | ×                | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelSuperclass!  | ×
        starting, outcome                 | –                           | draining(success) drain! | ×                | no                            | ×                           | ×                | cancelSuperclass!  | ×
        starting, marking                 | –                           | main runMain!            | ×                | ✓ starting(x) cancelChildren! | ×                           | ×                | repeatSuperclassCancel!      | cancelChildren!
        starting, cancelled               | –                           | main runMain!            | ×                | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelChildren! | ×
        main                              | –                           | ×                        | working          | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelSuperclass!  | ×
        main, marking                     | –                           | ×                        | working          | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel!      | cancelChildren!
        main, cancelled                   | –                           | ×                        | working callDidCancel! | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelChildren! | ×
        working                           | –                           | ×                        | ×                | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelSuperclass!  | ×
        working, marking                  | –                           | ×                        | ×                | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel!      | callDidCancel! cancelChildren!
        working, marking since main       | –                           | ×                        | ×                | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel!      | callDidCancel! cancelChildren!
        working, cancelled                | –                           | ×                        | ×                | ✓ draining(x) cancelChildren! | finishing(second) deliver!  | ×                | cancelChildren! | ×
        draining, never executed          | –                           | ×                        | –                | ✓ draining(x)                 | finishing(second) deliver!  | ×                | cancelChildren! | ×
        draining, never executed, marking | –                           | ×                        | –                | ✓ draining(x)                 | finishing(second)           | ×                | repeatSuperclassCancel!      | cancelChildren!
        draining, outcome, never executed | –                           | ×                        | –                | no                            | finishing(success) deliver! | ×                | cancelChildren! | ×
        draining in main                  | –                           | ×                        | –                | no                            | finishing(success) deliver! | ×                | cancelChildren! | ×
        draining                          | –                           | ×                        | –                | no                            | finishing(success) deliver! | ×                | cancelChildren! | ×
        draining, marking                 | –                           | ×                        | –                | no                            | finishing(success)          | ×                | repeatSuperclassCancel!      | callDidCancel! cancelChildren!
        finishing                         | –                           | ×                        | –                | no                            | ×                           | finished(second) | –               | ×
        finishing, marking                | –                           | ×                        | –                | no                            | ×                           | finished(second) | repeatSuperclassCancel!      | callDidCancel! deliver!
        finished                          | –                           | ×                        | –                | no                            | ×                           | ×                | –               | ×
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
        let executes = ["main", "working", "draining", "finishing"].contains { name.hasPrefix($0) }
        #expect(lifecycle.isExecuting == (executes && !name.contains("never executed")))
        #expect(lifecycle.isFinished == name.hasPrefix("finished"))
        #expect((lifecycle.outcome != nil) == (name.hasPrefix("finish") && !name.contains("marking")))
        #expect(lifecycle.isCancelled == situation.events.contains(.cancelled))
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let situation: Situation
        let cells: [(events: [LifecycleEvent], expected: String)]
        var testDescription: String { situation.testDescription }
    }

    /// The events of each column.
    static let columns: [[LifecycleEvent]] = [
        [.started], [.becameExecuting], [.mainReturned], [.succeeded, .failed], [.drained], [.ended], [.cancelled],
        [.marked],
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
