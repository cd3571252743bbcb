import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("The critical path", .hangGuard) struct CriticalPathTests {
    private typealias Entry = OperationTimeline.Entry
    private typealias Step = OperationTimeline.Step

    /// A composite around children, from 0 to the last end.
    private func composite(limit: Int? = nil, end: Int, _ children: Entry...) -> OperationTimeline {
        let composite = Entry(
            id: OperationID(1), name: "all", started: .zero, running: .zero, finished: .milliseconds(end),
            outcome: .success, isComposite: true, limit: limit)
        return OperationTimeline(entries: [composite] + children)
    }

    /// A step, with its times in milliseconds.
    private func step(_ id: UInt64, _ reason: Step.Reason, _ from: Int, _ to: Int, waited: Int = 0) -> Step {
        Step(
            operation: OperationID(id), reason: reason, from: .milliseconds(from), to: .milliseconds(to),
            waited: .milliseconds(waited))
    }

    private func id(_ number: UInt64) -> OperationID { OperationID(number) }

    @Test("An empty timeline has no critical path, and one operation is its own") func trivial() {
        #expect(OperationTimeline(entries: []).criticalPath == [])
        #expect(OperationTimeline.plain((0, 5)).criticalPath == [step(1, .beginning, 0, 5)])
        #expect(OperationTimeline.plain((3, 3)).criticalPath == [step(1, .beginning, 3, 3)])
        let waiting = OperationTimeline(entries: [Entry(id: id(1), name: "a")], duration: .milliseconds(5))
        #expect(waiting.criticalPath == [step(1, .queue, 0, 5)])
        let entries = OperationTimeline.plain((0, 3)).entries + [Entry(id: id(2), name: "not started")]
        for entries in [entries, entries.reversed()] {
            let timeline = OperationTimeline(entries: entries, duration: .milliseconds(5))
            #expect(timeline.criticalPath == [step(1, .beginning, 0, 3)])
        }
    }

    @Test("It goes from an operation to the dependency that ended last") func dependencies() {
        let timeline = composite(
            end: 10, .child(2, "a", (0, 3)), .child(3, "b", (0, 5)), .child(4, "c", (6, 10), after: [2, 3]))
        #expect(
            timeline.criticalPath == [
                step(3, .parent(id(1)), 0, 5), step(4, .dependency(id(3)), 5, 10, waited: 1),
            ])
        #expect(
            timeline.criticalPath.map(timeline.description) == [
                "“b”: 5 ms, when “all” started its children",
                "“c”: 5 ms, after “b”, which it depends on, then waited 1 ms",
            ])
    }

    @Test(
        "It goes to the sibling that made room in a composite at its limit, not to one that ended while there was room")
    func places() {
        let timeline = composite(
            limit: 2, end: 10, .child(2, "a", (0, 4)), .child(3, "b", (0, 6)), .child(4, "c", (4, 7)),
            .child(5, "d", (6, 10)))
        #expect(
            timeline.criticalPath == [
                step(3, .parent(id(1)), 0, 6), step(5, .place(in: id(1), from: id(3)), 6, 10),
            ])
        let other = composite(
            limit: 2, end: 10, .child(2, "a", (0, 2)), .child(3, "b", (3, 4)), .child(4, "c", (5, 10)))
        #expect(other.criticalPath == [step(4, .parent(id(1)), 0, 10, waited: 5)])
    }

    @Test("It goes through very many short siblings, each in the place of the one before it") func shortSiblings() {
        let children = (0..<2_000).map { Entry.child(UInt64($0) + 2, "\($0)", ($0, $0 + 1)) }
        let all = Entry(
            id: id(1), name: "all", started: .zero, running: .zero, finished: .milliseconds(2_000), outcome: .success,
            isComposite: true, limit: 1)
        let path = OperationTimeline(entries: [all] + children).criticalPath
        #expect(path.map(\.operation) == children.map(\.id))
        #expect(path.last?.reason == .place(in: id(1), from: id(2_000)))
    }

    @Test("It goes to the one that held the same resource during the wait") func resources() {
        let timeline = composite(
            end: 9, .child(2, "a", (0, 4)) { $0.resources = ["db"] }, .child(3, "b", (0, 6)) { $0.resources = ["net"] },
            .child(5, "d", (0, 3)) { $0.resources = ["disk"] }, .child(6, "e", (4, 8)) { $0.resources = ["db"] },
            .child(4, "c", (1, 9)) {
                $0.running = .milliseconds(5)
                $0.waits = [.init(reason: "waiting for “db”", from: .milliseconds(1), to: .milliseconds(5))]
                $0.resources = ["disk", "db"]
            })
        #expect(
            timeline.criticalPath == [
                step(2, .parent(id(1)), 0, 4), step(4, .resource("db", from: id(2)), 4, 9, waited: 1),
            ])
    }

    @Test("A wait that no other operation ended is one for a condition") func conditions() {
        let timeline = composite(
            end: 9, .child(2, "a", (0, 2)) { $0.resources = ["net"] },
            .child(3, "b", (2, 9), after: [2]) {
                $0.resources = ["net"]
                $0.running = .milliseconds(5)
                $0.waits = [.init(reason: "waiting for the network", from: .milliseconds(3), to: .milliseconds(5))]
            })
        #expect(
            timeline.criticalPath == [
                step(2, .parent(id(1)), 0, 2), step(3, .dependency(id(2)), 2, 3),
                step(3, .condition("waiting for the network"), 3, 9, waited: 2),
            ])
    }

    @Test("It goes through composites: to the child that ended last, and to the start of the composite") func nesting()
    {
        let timeline = OperationTimeline(entries: [
            .child(1, "before", (0, 2)) { ($0.parent, $0.added) = (nil, nil) },
            .child(2, "outer", (2, 10), after: [1]) { ($0.parent, $0.added, $0.isComposite) = (nil, nil, true) },
            .child(3, "inner", (2, 9)) { ($0.parent, $0.isComposite) = (OperationID(2), true) },
            .child(4, "late", (5, 8)) { ($0.parent, $0.added) = (OperationID(3), .milliseconds(4)) },
            .child(5, "early", (2, 6)) { $0.parent = OperationID(3) },
        ])
        #expect(
            timeline.criticalPath
                == [
                    step(1, .beginning, 0, 2), step(3, .parent(id(2)), 2, 4),
                    step(4, .added(to: id(3)), 4, 8, waited: 1),
                    step(3, .children(last: id(4)), 8, 9), step(2, .children(last: id(3)), 9, 10),
                ].filter { $0.from < $0.to })
        #expect(timeline.summary.bounds.count == 2)
    }

    @Test("What was started by hand before what is around it did not wait for that") func startedBefore() {
        let timeline = OperationTimeline(entries: [
            .child(1, "before", (0, 4)) { ($0.parent, $0.added) = (nil, nil) },
            .child(2, "outer", (4, 8), after: [1]) { ($0.parent, $0.added, $0.isComposite) = (nil, nil, true) },
            .child(3, "early", (1, 7)) { $0.parent = id(2) },
            .child(4, "tiny", (4, 5)) { $0.parent = id(2) },
        ])
        #expect(timeline.bound(without: id(4)) == .milliseconds(6))
        #expect(timeline.criticalPath == [step(3, .queue, 0, 7, waited: 1), step(2, .children(last: id(3)), 7, 8)])
    }

    @Test("A dependency that ended after the start was not waited for, nor one of a cancelled operation")
    func lateDependency() {
        let timeline = OperationTimeline(entries: [
            .child(1, "slow", (0, 100)) { $0.parent = nil },
            .child(2, "removed", (0, 50), after: [1]) { $0.parent = nil },
        ])
        #expect(timeline.bound(without: OperationID(3)) == .milliseconds(100))
        #expect(timeline.criticalPath.map(\.reason) == [.beginning])
        let cancelled = OperationTimeline(entries: [
            .child(1, "a", (0, 5)) { $0.parent = nil },
            .child(2, "b", (6, 7), after: [1]) { ($0.parent, $0.cancelled) = (nil, .milliseconds(3)) },
        ])
        #expect(cancelled.criticalPath.map(\.reason) == [.queue])
    }

    @Test("Steps say in words why an operation began") func explanations() {
        let reasons: [(Step.Reason, String)] = [
            (.beginning, "at the beginning"), (.dependency(id(1)), "after “1”, which it depends on"),
            (.parent(id(1)), "when “1” started its children"), (.added(to: id(1)), "when it was added to “1”"),
            (.place(in: id(1), from: id(2)), "in the place of “2”"),
            (.resource("db", from: id(2)), "with “db”, after “2”"),
            (.condition("waiting for c"), "waiting for c"), (.queue, "waiting for a place on a queue"),
            (.children(last: id(3)), "after its last child, “3”"),
        ]
        for (reason, text) in reasons {
            #expect(step(1, reason, 0, 1).explanation(naming: { "\($0)" }) == text)
        }
    }

    @Test("A summary counts outcomes, work, parallelism, and what operations waited for") func summary() {
        let summary = OperationTimeline.sample.summary
        #expect(
            "\(summary)" == """
                8 operations, 1 failed, 1 did not run, 1 cancelled, 1 not finished, 1 tried again
                3.1 s for 6.5 s of work: 2.1 at the same time on average, 3 at most
                waited 5.5 s for operations that they depended on, 4 times
                waited 2.7 s for a place in “Sync”, 2 times
                waited 500 ms for “db”
                waited 100 ms for a place on a queue
                waited 100 ms for the next attempt
                at least 2 s without the work of “other”
                2 other operations were not recorded
                """)
        #expect(summary.work == .milliseconds(6_500) && summary.wallTime == .milliseconds(3_100))
        #expect(OperationTimeline(entries: []).summary.description.hasPrefix("0 operations\n0 s for 0 s of work"))
    }

    @Test("A composite that failed counts unless something inside it did, and work of no time is none")
    func failures() {
        for (inner, count) in [(OperationTimeline.Outcome?.some(.success), 1), (.failed("b"), 1), (.skipped("c"), 0)] {
            let timeline = OperationTimeline(entries: [
                .child(1, "all", (0, 0)) { ($0.parent, $0.isComposite, $0.outcome) = (nil, true, .failed("a")) },
                .child(2, "part", nil) { $0.outcome = inner },
            ])
            #expect(timeline.summary.failedCount == count && timeline.summary.maximumParallelism == 0)
        }
        let summary = OperationTimeline.plain((3, 3)).summary
        #expect(summary.maximumParallelism == 0 && summary.description.hasPrefix("1 operation\n"))
    }

    @Test("A summary says what operations waited for, or what they did meanwhile") func waits() {
        let others = (1...8).map { "waiting for “\($0)”" }
        let reasons = others + ["sleeping for 30 ms", "evaluating its condition “wifi”", "waiting for “db”"]
        let entries = zip(reasons, 1...).map { reason, number in
            Entry(
                id: id(UInt64(number)), name: reason, started: .zero, running: .seconds(number), finished: .seconds(19),
                waits: [.init(reason: reason, from: .zero, to: .seconds(number))])
        }
        let lines = OperationTimeline(entries: entries).summary.description.split(separator: "\n")
        let waits = lines.filter { $0.hasPrefix("waited") }
        #expect(
            waits.count == 8
                && waits.prefix(3) == [
                    "waited 11 s for “db”", "waited 10 s while evaluating its condition “wifi”",
                    "waited 9 s while sleeping for 30 ms",
                ])
        #expect(lines.contains("… and for other reasons"))
        let late = composite(end: 9, .child(2, "late", (5, 9)) { $0.added = .milliseconds(4) })
        let queued = OperationTimeline(entries: [
            .child(1, "a", (0, 2)) { $0.parent = nil }, .child(2, "b", (3, 4), after: [1]) { $0.parent = nil },
        ])
        #expect([late, queued].map { $0.summary.waiting.map(\.duration) } == [[.milliseconds(1)], [.milliseconds(1)]])
    }
}
