import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit
@testable import OperationKitTimelines

/// What timelines, graphs and events say in cases that are rare.
@Suite("Edges of timelines and events") struct TimelineEdgeTests {
    private typealias Entry = OperationTimeline.Entry

    @Test("Each kind of event has a sentence") func sentences() {
        let kinds: [OperationEvent.Kind] = [
            .added(to: OperationID(1), name: "sync"), .started, .waiting(for: "waiting for the network"), .running,
            .cancelled(reason: nil),
            .retrying(attempt: 2, error: TestError.first, delay: .seconds(3)), .finished(error: nil),
            .finished(error: TestError.second), .finished(error: CancellationError()),
        ]
        #expect(
            kinds.map(\.description) == [
                "was added to “sync”", "started", "is waiting for the network", "runs", "was cancelled",
                "retries in 3.0 seconds, because attempt 2 failed: first", "finished", "failed: second",
                "finished as cancelled",
            ])
    }

    @Test("Events and timelines have the sentence of an error that has one") func sentencesOfErrors() async throws {
        let error = OperationTimeoutError(operation: "load", timeout: .seconds(5))
        let sentence = "The operation “load” took longer than its timeout of 5.0 seconds."
        let kinds: [OperationEvent.Kind] = [
            .retrying(attempt: 2, error: error, delay: .seconds(3)), .finished(error: error),
        ]
        #expect(
            kinds.map(\.description) == [
                "retries in 3.0 seconds, because attempt 2 failed: \(sentence)", "failed: \(sentence)",
            ])
        let recorder = OperationTimelineRecorder()
        let policy = RetryPolicy(maximumAttempts: 2, backoff: .none)
        let retry = RetryOperation(policy, name: "load") { _ in TaskOperation<Int> { throw error } }
        retry.addObserver(recorder)
        await #expect(throws: OperationTimeoutError.self) { try await OperationQueue().run(retry) }
        // Another thread may be telling the recorder of the end.
        await eventually("the end is not recorded") { recorder.timeline[retry.observationID]?.outcome != nil }
        let entry = try #require(recorder.timeline[retry.observationID])
        #expect(entry.outcome == .failed(sentence) && entry.retries.map(\.error) == [sentence])
    }

    @Test("A summary names the reasons for which was waited longest, and counts the others") func manyReasons() {
        let waits = (1...20).map { number in
            OperationTimeline.Wait(
                reason: "reason \(number)", from: .zero, to: .milliseconds(number))
        }
        let entry = Entry(id: OperationID(1), name: "a", started: .zero, finished: .seconds(1), waits: waits)
        let lines = "\(OperationTimeline(entries: [entry]).summary)".split(separator: "\n")
        #expect(lines[0] == "1 operation")
        #expect(lines.contains { $0.hasPrefix("… and for ") && $0.hasSuffix(" other reasons") })
        #expect(lines.contains { $0.contains("reason 20") } && !lines.contains { $0.hasSuffix("reason 1") })
    }

    @Test("The graph of a timeline has the state of each operation, with a color of its own") func states() {
        let chart = OperationTimeline.sample.graph.mermaid
        for color in ["#ffebe9", "#fbefff", "#ddf4ff"] { #expect(chart.contains(color), "\(chart)") }
        let waiting = Entry(id: OperationID(1), name: "waiting", added: .zero)
        let cancelled = Entry(id: OperationID(2), name: "cancelled", added: .zero, cancelled: .zero)
        let graph = OperationTimeline(entries: [waiting, cancelled]).graph
        #expect(graph.mermaid.contains("waiting (waiting)") && graph.mermaid.contains("cancelled (cancelled)"))
    }

    @Test("A graph that would be too large leaves operations out, and says how many") func largeGraphs() {
        let external = ScriptedOperation("external")
        let children = (0..<5).map { ScriptedOperation("\($0)") }
        children[4].addDependency(external)
        let compound = CompoundOperation(name: "compound", operations: children)
        let graph = OperationGraph(of: compound, maximumCount: 6)
        #expect(graph.omittedCount == 1 && !graph.mermaid.contains("external"))
        let smaller = OperationGraph(of: compound, maximumCount: 3)
        #expect(smaller.omittedCount > 1 && smaller.dot.contains("compound"))
    }

    @Test("Names with characters that take no column, or that break lines, are drawn on one line") func names() {
        for name in ["a\tb", "a\r\nb", "a\r\nb\u{301}c", "\u{200B}", "e\u{301}", "👩‍👩‍👧‍👦 family", "\u{202E}abc"] {
            let entry = Entry(id: OperationID(1), name: name, running: .zero, finished: .seconds(1))
            let timeline = OperationTimeline(entries: [entry])
            let lines = timeline.text(columns: 40).split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count == timeline.text(columns: 40).components(separatedBy: "\n").count)
            #expect(lines[0].contains("█") && !lines[0].contains("\u{202E}") && !timeline.svg().contains("\t"))
        }
    }
}
