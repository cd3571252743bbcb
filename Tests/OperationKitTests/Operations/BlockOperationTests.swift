import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The guarantees of the life cycle for the operations that are made of a block.
@Suite("AsyncBlockOperation", .hangGuard) struct AsyncBlockOperationTests {
    @Test(
        "The block of an `AsyncBlockOperation` decides its outcome",
        arguments: Start.allCases, [TestError?.none, .first])
    func blockDecides(start: Start, error: TestError?) async {
        let operation = AsyncBlockOperation(name: "block") { $0(error) }
        await start(operation)
        #expect(operation.name == "block")
        #expect(operation.isFinished)
        #expect(text(operation.error) == text(error))
    }

    @Test("A block may finish its operation later, on another thread") func finishesLater() async throws {
        let stored = Shared<FinishHandle<Void>?>(nil)
        let begun = Gate()
        let operation = AsyncBlockOperation { finish in
            stored.value = finish
            begun.open()
        }
        let queue = OperationQueue()
        queue.addOperation(operation)
        await begun.opened()
        #expect(operation.isExecuting && !operation.isFinished)
        await onThread { stored.value?(TestError.first) }
        await #expect(throws: TestError.first) { try await operation.finished() }
    }

    @Test("Of several calls of a block's `finish` the first one decides") func firstFinishDecides() async {
        let log = EventLog()
        let operation = AsyncBlockOperation { finish in
            finish(TestError.first)
            finish(nil)
            finish(TestError.second)
        }
        operation.asyncCompletionBlock = { log.add(text($0)) }
        await onThread { operation.start() }
        #expect(log.events == ["first"])
        #expect(text(operation.error) == "first")
    }

    @Test(
        "An `AsyncBlockOperation` that is cancelled before its start ends with the reason, without its block",
        arguments: Start.allCases)
    func cancelledBeforeStart(start: Start) async {
        let log = EventLog()
        let operation = AsyncBlockOperation { finish in
            log.add("block")
            finish(nil)
        }
        await start(operation) { operation.cancel(withError: TestError.reason) }
        #expect(log.events.isEmpty)
        #expect(text(operation.error) == "reason")
    }

    @Test(
        "An `AsyncBlockOperation` that is finished before its start ends with that outcome, without its block",
        arguments: Start.allCases)
    func finishedBeforeStart(start: Start) async {
        let log = EventLog()
        let operation = AsyncBlockOperation { finish in
            log.add("block")
            finish(nil)
        }
        await start(operation) { operation.finish(withError: TestError.first) }
        #expect(log.events.isEmpty)
        #expect(text(operation.error) == "first")
    }

    @Test("An `AsyncBlockOperation` that is cancelled while executing goes on, and ends with what its block gives")
    func cancelledWhileExecuting() async {
        let stored = Shared<FinishHandle<Void>?>(nil)
        let operation = AsyncBlockOperation { stored.value = $0 }
        await onThread {
            operation.start()
            operation.cancel()
        }
        #expect(operation.isCancelled && operation.isExecuting)
        stored.value?(nil)
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test("An `AsyncBlockOperation` releases its block when it finishes", arguments: Start.allCases, [false, true])
    func releasesBlock(start: Start, isCancelled: Bool) async {
        let tracker = LeakTracker()
        let operation = Self.holding(tracker)
        await start(operation) { if isCancelled { operation.cancel() } }
        await tracker.expectAllReleased()
        #expect(operation.isFinished)
    }

    private static func holding(_ tracker: LeakTracker) -> AsyncBlockOperation {
        let token = tracker.token("block")
        return AsyncBlockOperation { finish in
            token.use()
            finish(nil)
        }
    }

    @Test("An operation whose `finish` was stored, called and let go is released") func storedFinish() async {
        let tracker = LeakTracker()
        let stored = Shared<FinishHandle<Void>?>(nil)
        do {
            let operation = tracker.track(AsyncBlockOperation { stored.value = $0 })
            await onThread { operation.start() }
            stored.value?(nil)
            stored.value = nil
        }
        await tracker.expectAllReleased()
    }
}

@Suite("ThrowingBlockOperation", .hangGuard) struct ThrowingBlockOperationTests {
    @Test(
        "What the block of a `ThrowingBlockOperation` throws is its error",
        arguments: Start.allCases, [TestError?.none, .first])
    func throwsError(start: Start, error: TestError?) async {
        let operation = ThrowingBlockOperation(name: "block") { if let error { throw error } }
        await start(operation)
        #expect(operation.name == "block")
        #expect(operation.isFinished && !operation.isExecuting)
        #expect(text(operation.error) == text(error))
    }

    @Test(
        "A `ThrowingBlockOperation` that is cancelled before its start ends as cancelled, without its block",
        arguments: Start.allCases)
    func cancelledBeforeStart(start: Start) async {
        let log = EventLog()
        let operation = ThrowingBlockOperation { log.add("block") }
        await start(operation) { operation.cancel() }
        #expect(log.events.isEmpty)
        #expect(operation.isFinished && operation.error is CancellationError)
    }

    @Test("A `ThrowingBlockOperation` that is cancelled while executing goes on, and ends with what its block throws")
    func cancelledWhileExecuting() async {
        let (begun, cancelled) = (Gate(), Gate())
        let operation = ThrowingBlockOperation {
            begun.open()
            cancelled.pass()
            throw TestError.first
        }
        async let ended: Void = Start.byHand(operation)
        await begun.opened()
        operation.cancel()
        #expect(operation.isCancelled && operation.isExecuting)
        cancelled.open()
        await ended
        #expect(text(operation.error) == "first")
    }

    @Test(
        "A `ThrowingBlockOperation` that is given an outcome while its block runs ends with that when the block returns"
    )
    func finishedWhileExecuting() async {
        let (begun, finished) = (Gate(), Gate())
        let operation = ThrowingBlockOperation {
            begun.open()
            finished.pass()
            throw TestError.second
        }
        async let ended: Void = Start.byHand(operation)
        await begun.opened()
        #expect(operation.finish(withError: TestError.first) && !operation.finish())
        #expect(operation.isExecuting && !operation.isFinished)
        finished.open()
        await ended
        #expect(operation.isFinished && text(operation.error) == "first")
    }

    @Test("A `ThrowingBlockOperation` that is started repeatedly runs its block once") func startsOnce() async {
        let log = EventLog()
        let operation = ThrowingBlockOperation { log.add("block") }
        await onThread {
            operation.start()
            operation.start()
            operation.cancel()
            operation.start()
        }
        #expect(log.events == ["block"])
        #expect(operation.error == nil)
    }

    @Test("A `ThrowingBlockOperation` releases its block when it finishes", arguments: Start.allCases, [false, true])
    func releasesBlock(start: Start, isCancelled: Bool) async {
        let tracker = LeakTracker()
        let operation = Self.holding(tracker)
        await start(operation) { if isCancelled { operation.cancel() } }
        await tracker.expectAllReleased()
        #expect(operation.isFinished)
    }

    private static func holding(_ tracker: LeakTracker) -> ThrowingBlockOperation {
        let token = tracker.token("block")
        return ThrowingBlockOperation { token.use() }
    }

    @Test("Dependents of a `ThrowingBlockOperation` can read its error", arguments: Start.allCases)
    func dependentsReadError(start: Start) async {
        let log = EventLog()
        let operation = ThrowingBlockOperation { throw TestError.first }
        let dependent = BlockOperation { log.add(text(operation.error)) }
        dependent.addDependency(operation)
        let queue = OperationQueue()
        queue.addOperation(dependent)
        await start(operation)
        await onThread { dependent.waitUntilFinished() }
        #expect(log.events == ["first"])
    }

    @Test("A `ThrowingBlockOperation` that reads as finished and has not run its block has an error")
    func finishedWithoutRunning() async {
        // A dependent, or other code that sees the end, must not take a cancelled operation for a successful one.
        struct Subject: Sendable {
            let hasRun = Shared(false)
            let operation: ThrowingBlockOperation
            init() {
                operation = ThrowingBlockOperation { [hasRun] in hasRun.value = true }
            }
        }
        let wrong = EventLog()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: TestExtent.choose(3_000, long: 20_000), seed: seed, prepare: { _ in Subject() },
            [
                { @Sendable in $0.operation.start() },
                { @Sendable in $0.operation.cancel() },
                { @Sendable in
                    while !$0.operation.isFinished { sched_yield() }
                    if !$0.hasRun.value, $0.operation.error == nil { wrong.add("finished without an error") }
                },
            ],
            check: { _, _ in })
        #expect(wrong.events.isEmpty, "seed \(seed)")
    }
}
