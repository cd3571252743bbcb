import Foundation
import OperationKit
import OperationKitTestSupport
import OperationKitTimelines
import Testing

@testable import OperationDemo

/// What the demo records of operations that the library does not observe, or not yet.
@Suite struct RecordingTests {
    private static func bench(limit: Int = 1) -> Bench {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = limit
        return Bench(queue: queue, recording: Recording(queue: "queue", limit: limit), speed: 100)
    }

    private static func entry(_ bench: Bench, _ name: String) throws -> OperationTimeline.Entry {
        try #require(bench.recording.timeline.entries.first { $0.name == name })
    }

    @Test("Operations have rows as soon as they are added, with children inside of their compound")
    func additions() async throws {
        let bench = Self.bench()
        bench.queue.isSuspended = true
        bench.enqueue(bench.async("async", 1), bench.compound("compound", [1, 1]), bench.sync("sync", 1))
        let queue = try Self.entry(bench, "queue")
        for name in ["async", "compound", "sync"] {
            let entry = try Self.entry(bench, name)
            #expect(entry.parent == queue.id && entry.added != nil && entry.started == nil)
        }
        for name in ["compound-1", "compound-2"] {
            #expect(try Self.entry(bench, name).parent == Self.entry(bench, "compound").id)
        }
        #expect(queue.finished == nil && queue.isComposite && queue.limit == 1)

        bench.queue.isSuspended = false
        await bench.recording.settled()
        let timeline = bench.recording.timeline
        #expect(timeline.entries.count == 6 && timeline.entries.allSatisfy { $0.outcome == .success })
        #expect(timeline.entries.allSatisfy { ($0.finished ?? .zero) <= timeline.duration })
        #expect(try Self.entry(bench, "compound-2").parent == Self.entry(bench, "compound").id)
    }

    @Test("On a serial queue, each correct operation begins in the place of the one before it")
    func places() async throws {
        let bench = Self.bench()
        bench.enqueue(bench.sync("first", 2), bench.async("second", 2), bench.sync("third", 2))
        await bench.recording.settled()
        let timeline = bench.recording.timeline
        let path = timeline.criticalPath.compactMap { timeline[$0.operation]?.name }.filter { $0 != "queue" }
        #expect(path == ["first", "second", "third"])
    }

    @Test("A recording is settled when the work of naive operations has ended, not before") func naiveWork()
        async throws
    {
        let bench = Self.bench()
        bench.enqueue(bench.naive("naive", 3))
        await bench.recording.finished()
        #expect(try Self.entry(bench, "naive").outcome == .success)
        await bench.recording.settled()
        let (end, workEnd) = (try Self.entry(bench, "naive").finished, try Self.entry(bench, "naive (work)").finished)
        #expect(try #require(workEnd) > #require(end))
    }

    @Test("Stock operations that are cancelled before their start have rows without work") func cancelled() async throws
    {
        let bench = Self.bench()
        bench.queue.isSuspended = true
        let operations: [Operation] = [bench.naive("naive", 1), bench.sync("sync", 1)]
        for operation in operations {
            bench.enqueue(operation)
            operation.cancel()
        }
        bench.queue.isSuspended = false
        await bench.recording.settled()
        for name in ["naive", "naive (work)", "sync"] {
            let entry = try Self.entry(bench, name)
            #expect(entry.started == nil && entry.outcome == .cancelled)
        }
        #expect(try Self.entry(bench, "sync").cancelled != nil)
    }

    @Test("Failures and cancellations of synchronous operations are recorded with their errors") func ends()
        async throws
    {
        let bench = Self.bench(limit: 2)
        let cancelled = bench.sync("cancelled", 6_000)
        bench.enqueue(bench.sync("failed", 0, failure: CocoaError(.fileNoSuchFile)), cancelled)
        // It is executing by now, or about to: that makes no difference.
        cancelled.cancel()
        await bench.recording.settled()
        #expect(try Self.entry(bench, "cancelled").outcome == .cancelled)
        guard case .failed = try Self.entry(bench, "failed").outcome else {
            Issue.record("It has not failed")
            return
        }
    }
}
