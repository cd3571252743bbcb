import OperationKitTestSupport

@testable import OperationKit

/// Every state with every event. A cell has what becomes of the life: whether a finish is accepted, or the gates go
/// on (✓, no), the next state, the actions (with !), x being the outcome that is given. A dash says that nothing changes.
/// `×` is for what the callers never do, and traps. The second column has the events, or a place, that lead to the state.
@Suite("Lifecycle, state × event", .hangGuard) struct LifecycleTableTests {
    // name | what has happened | started | becameExecuting | gatesPassed | gateClosed | gateOpened | mainReturned | finished(x) | ended | cancelled | marked
    static let leaf = """
        pending                            | –                                    | starting announceExecution!   | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | cancelSuperclass!       | ×
        pending, outcome                   | succeeded                            | finishing(success) complete!   | ×                             | ×                             | ×                             | no          | ×                      | no                      | ×                   | cancelSuperclass!       | ×
        pending, marking                   | cancelled                            | finishing(cancelled)          | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | repeatSuperclassCancel! | –
        pending, cancelled                 | cancelled marked                     | finishing(cancelled) complete! | ×                             | ×                             | ×                             | no          | ×                      | ✓ pending(x)            | ×                   | –                       | ×
        pending, outcome, cancelled        | succeeded cancelled marked           | finishing(success) complete!   | ×                             | ×                             | ×                             | no          | ×                      | no                      | ×                   | –                       | ×
        starting                           | started                              | –                             | passing passGates!            | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | cancelSuperclass!       | ×
        starting, outcome                  | started succeeded                    | –                             | finishing(success) complete!   | ×                             | ×                             | no          | ×                      | no                      | ×                   | cancelSuperclass!       | ×
        starting, marking                  | started cancelled                    | –                             | finishing(cancelled)          | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | repeatSuperclassCancel! | –
        starting, cancelled                | started cancelled marked             | –                             | finishing(cancelled) complete! | ×                             | ×                             | no          | ×                      | ✓ starting(x)           | ×                   | –                       | ×
        passing                            | passing                              | –                             | ×                             | main runMain!                 | waiting                       | no          | ×                      | ✓ finishing(x) complete! | ×                   | cancelSuperclass!       | ×
        passing, marking                   | passing cancelled                    | –                             | ×                             | finishing(cancelled)          | finishing(cancelled)          | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | –
        passing, cancelled                 | passing cancelled marked             | –                             | ×                             | finishing(cancelled) complete! | finishing(cancelled) complete! | no          | ×                      | ✓ finishing(x) complete! | ×                   | –                       | ×
        waiting                            | waiting                              | –                             | ×                             | ×                             | ×                             | ✓ passing   | ×                      | ✓ finishing(x) complete! | ×                   | cancelSuperclass!       | ×
        waiting, marking                   | waiting cancelled                    | –                             | ×                             | ×                             | ×                             | ✓ passing   | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | finishing(cancelled) complete!
        main                               | main                                 | –                             | ×                             | ×                             | ×                             | no          | working                | ✓ finishing(x) complete! | ×                   | cancelSuperclass!       | ×
        main, marking                      | main cancelled                       | –                             | ×                             | ×                             | ×                             | no          | working                | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | –
        main, cancelled                    | main cancelled marked                | –                             | ×                             | ×                             | ×                             | no          | working callDidCancel! | ✓ finishing(x) complete! | ×                   | –                       | ×
        working                            | working                              | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x) complete! | ×                   | cancelSuperclass!       | ×
        working, marking                   | working cancelled                    | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | callDidCancel!
        working, marking since main        | main cancelled mainReturned          | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x)          | ×                   | repeatSuperclassCancel! | callDidCancel!
        working, cancelled                 | working cancelled marked             | –                             | ×                             | ×                             | ×                             | no          | ×                      | ✓ finishing(x) complete! | ×                   | –                       | ×
        finishing, never executed          | cancelled marked started             | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing, never executed, marking | cancelled started                    | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | repeatSuperclassCancel! | complete!
        finishing before main              | passing succeeded                    | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing before main, marking     | passing cancelled gatesPassed        | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | repeatSuperclassCancel! | complete!
        finishing before main, cancelled   | passing cancelled marked gatesPassed | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing, waited                  | waiting succeeded                    | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing, waited, marking         | waiting cancelled succeeded          | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | repeatSuperclassCancel! | complete!
        finishing, waited, cancelled       | waiting cancelled marked             | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(cancelled) | –                       | ×
        finishing in main                  | main succeeded                       | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing                          | working succeeded                    | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finishing, marking                 | working cancelled succeeded          | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | repeatSuperclassCancel! | callDidCancel! complete!
        finishing, cancelled               | working cancelled marked succeeded   | –                             | ×                             | –                             | –                             | no          | –                      | no                      | finished(success)   | –                       | ×
        finished in main                   | main succeeded ended                 | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        finished                           | working succeeded ended              | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        finished, cancelled                | cancelled marked started ended       | –                             | ×                             | –                             | –                             | no          | –                      | no                      | ×                   | –                       | ×
        """

    // name | what has happened | started | becameExecuting | gatesPassed | gateClosed | gateOpened | mainReturned | finished(x) | drained | ended | cancelled
    // | marked
    static let composite = """
        pending                           | –                                    | starting announceExecution! | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelSuperclass!       | ×
        pending, outcome                  | succeeded                            | draining(success) drain!    | ×                        | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelSuperclass!       | ×
        pending, marking                  | cancelled                            | draining drain!             | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        pending, cancelled                | cancelled marked                     | draining drain!             | ×                        | ×               | ×               | no          | ×                      | ✓ pending(x) cancelChildren!  | ×                           | ×                | cancelChildren!         | ×
        pending, outcome, cancelled       | succeeded cancelled marked           | draining(success) drain!    | ×                        | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelChildren!         | ×
        starting                          | started                              | –                           | passing passGates!       | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelSuperclass!       | ×
        starting, outcome                 | started succeeded                    | –                           | draining(success) drain! | ×               | ×               | no          | ×                      | no                            | ×                           | ×                | cancelSuperclass!       | ×
        starting, marking                 | started cancelled                    | –                           | draining drain!          | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        starting, cancelled               | started cancelled marked             | –                           | draining drain!          | ×               | ×               | no          | ×                      | ✓ starting(x) cancelChildren! | ×                           | ×                | cancelChildren!         | ×
        passing                           | passing                              | –                           | ×                        | main runMain!   | waiting         | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | cancelSuperclass!       | ×
        passing, marking                  | passing cancelled                    | –                           | ×                        | draining drain! | draining drain! | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | repeatSuperclassCancel! | cancelChildren!
        passing, cancelled                | passing cancelled marked             | –                           | ×                        | draining drain! | draining drain! | no          | ×                      | ✓ draining(x) cancelChildren! | ×                           | ×                | cancelChildren!         | ×
        waiting                           | waiting                              | –                           | ×                        | ×               | ×               | ✓ passing   | ×                      | ✓ draining(x) drain!          | ×                           | ×                | cancelSuperclass!       | ×
        waiting, marking                  | waiting cancelled                    | –                           | ×                        | ×               | ×               | ✓ passing   | ×                      | ✓ draining(x) drain!          | ×                           | ×                | repeatSuperclassCancel! | draining drain!
        main                              | main                                 | –                           | ×                        | ×               | ×               | no          | working                | ✓ draining(x) cancelChildren! | finishing(second) complete!  | ×                | cancelSuperclass!       | ×
        main, marking                     | main cancelled                       | –                           | ×                        | ×               | ×               | no          | working                | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | cancelChildren!
        main, cancelled                   | main cancelled marked                | –                           | ×                        | ×               | ×               | no          | working callDidCancel! | ✓ draining(x) cancelChildren! | finishing(second) complete!  | ×                | cancelChildren!         | ×
        working                           | working                              | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second) complete!  | ×                | cancelSuperclass!       | ×
        working, marking                  | working cancelled                    | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        working, marking since main       | main cancelled mainReturned          | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second)           | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        working, cancelled                | working cancelled marked             | –                           | ×                        | ×               | ×               | no          | ×                      | ✓ draining(x) cancelChildren! | finishing(second) complete!  | ×                | cancelChildren!         | ×
        draining, never executed          | cancelled marked started             | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) complete!  | ×                | cancelChildren!         | ×
        draining, never executed, marking | cancelled started                    | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second)           | ×                | repeatSuperclassCancel! | cancelChildren!
        draining, outcome, never executed | succeeded started                    | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) complete! | ×                | cancelChildren!         | ×
        draining before main              | passing succeeded                    | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) complete! | ×                | cancelChildren!         | ×
        draining before main, marking     | passing cancelled succeeded          | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | cancelChildren!
        draining before main, cancelled   | passing cancelled marked gatesPassed | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) complete!  | ×                | cancelChildren!         | ×
        draining, waited                  | waiting succeeded                    | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) complete! | ×                | cancelChildren!         | ×
        draining, waited, marking         | waiting cancelled succeeded          | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | cancelChildren!
        draining, waited, cancelled       | waiting cancelled marked             | –                           | ×                        | drain!          | drain!          | no          | –                      | ✓ draining(x)                 | finishing(second) complete!  | ×                | cancelChildren!         | ×
        draining in main                  | main succeeded                       | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) complete! | ×                | cancelChildren!         | ×
        draining                          | working succeeded                    | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success) complete! | ×                | cancelChildren!         | ×
        draining, marking                 | working cancelled succeeded          | –                           | ×                        | drain!          | drain!          | no          | –                      | no                            | finishing(success)          | ×                | repeatSuperclassCancel! | callDidCancel! cancelChildren!
        finishing                         | working drained                      | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | finished(second) | –                       | ×
        finishing, marking                | working cancelled drained            | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | finished(second) | repeatSuperclassCancel! | callDidCancel! complete!
        finished                          | working drained ended                | –                           | ×                        | –               | –               | no          | –                      | no                            | ×                           | ×                | –                       | ×
        """

    @Test("Every state reads as its name says", arguments: allRows) func states(row: Row) {
        let (lifecycle, name) = (row.lifecycle, row.name)
        let executions = ["passing", "waiting", "main", "working", "draining", "finishing"]
        let executes = executions.contains { name.hasPrefix($0) }
        #expect(lifecycle.isExecuting == (executes && !name.contains("never executed")))
        #expect(lifecycle.isFinished == name.hasPrefix("finished"))
        #expect((lifecycle.outcome != nil) == (name.hasPrefix("finish") && !name.contains("marking")))
        #expect(lifecycle.isCancelled == row.events.contains(.cancelled))
        #expect(lifecycle.isPending == name.hasPrefix("pending"))
        #expect(lifecycle.isWaiting == name.hasPrefix("waiting"))
        #expect(lifecycle.isPassingGates == (name == "passing"))
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let name: String
        let ending: Lifecycle.Ending
        let events: [LifecycleEvent]
        let cells: [(events: [LifecycleEvent], expected: String)]

        var lifecycle: Lifecycle { .after(events, ending) }
        var testDescription: String { "\(ending == .immediately ? "leaf" : "composite"), \(name)" }
    }

    static let allRows =
        rows(leaf, events: columns.filter { $0 != [.drained] }, .immediately)
        + rows(composite, events: columns, .afterChildren)

    /// The events of each column.
    private static let columns: [[LifecycleEvent]] = [
        [.started], [.becameExecuting], [.gatesPassed], [.gateClosed], [.gateOpened], [.mainReturned],
        [.succeeded, .failed], [.drained], [.ended], [.cancelled], [.marked],
    ]

    /// The events that lead to a place of a life that executes.
    private static let places: [Substring: [LifecycleEvent]] = [
        "passing": [.started, .becameExecuting],
        "waiting": [.started, .becameExecuting, .gateClosed],
        "main": [.started, .becameExecuting, .gatesPassed],
        "working": [.started, .becameExecuting, .gatesPassed, .mainReturned],
    ]

    private static func rows(_ table: String, events: [[LifecycleEvent]], _ ending: Lifecycle.Ending) -> [Row] {
        table.split(separator: "\n").map { line in
            let fields = line.split(separator: "|").map { $0.split(separator: " ") }
            precondition(fields.count == events.count + 2, "not one cell for each event: \(line)")
            let happened = fields[1].filter { $0 != "–" }.flatMap {
                places[$0] ?? [LifecycleEvent(rawValue: String($0))!]
            }
            let cells = fields.dropFirst(2).map { $0.joined(separator: " ") }
            return Row(
                name: fields[0].joined(separator: " "), ending: ending, events: happened,
                cells: Array(zip(events, cells)))
        }
    }

    @Test("Each event in each state of a leaf or a composite does what the table says", arguments: allRows)
    func everyEvent(row: Row) {
        for (events, expected) in row.cells where expected != "×" {
            for event in events {
                var lifecycle = row.lifecycle
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
