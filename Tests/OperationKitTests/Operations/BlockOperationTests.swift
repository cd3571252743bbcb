import OperationKitTestSupport

/// The guarantees of the life cycle for the operations that are made of a block.
@Suite("Block operations", .hangGuard) struct BlockOperationTests {
    enum Kind: CaseIterable {
        case asynchronous, throwing

        func make(_ name: String? = nil, _ body: @escaping @Sendable () throws -> Void) -> AsyncOperation {
            switch self {
            case .asynchronous:
                AsyncBlockOperation(name: name) { finish in
                    do { try body() } catch { return finish(error) }
                    finish()
                }
            case .throwing: ThrowingBlockOperation(name: name) { try body() }
            }
        }
    }

    private static let outcomes = [TestError?.none, .first]

    @Test("The block decides the outcome", arguments: Start.allCases, Kind.allCases)
    func blockDecides(start: Start, kind: Kind) async {
        for error in Self.outcomes {
            let operation = kind.make("block") { if let error { throw error } }
            await start(operation)
            #expect(operation.name == "block")
            #expect(operation.isFinished && !operation.isExecuting && text(operation.error) == text(error))
        }
    }

    @Test(
        "An operation that is cancelled or finished before its start ends with that outcome, without its block",
        arguments: Start.allCases, Kind.allCases)
    func endedBeforeStart(start: Start, kind: Kind) async {
        for isCancelled in [true, false] {
            let operation = kind.make { Issue.record("The block runs.") }
            await start(operation) {
                if isCancelled {
                    operation.cancel(withError: TestError.reason)
                } else {
                    operation.finish(withError: TestError.reason)
                }
            }
            #expect(operation.isFinished && text(operation.error) == "reason")
        }
    }

    @Test("A block whose operation is cancelled goes on, and decides the outcome", arguments: Kind.allCases)
    func cancelledWhileExecuting(kind: Kind) async {
        for error in Self.outcomes {
            let (begun, cancelled) = (Gate(), Gate())
            let operation = kind.make {
                begun.open()
                cancelled.pass()
                if let error { throw error }
            }
            let run = Task { try await OperationQueue().run(operation) }
            await begun.opened()
            operation.cancel()
            #expect(operation.isCancelled && operation.isExecuting)
            cancelled.open()
            #expect(await text(run.result.failure) == text(error))
            #expect(operation.isFinished && text(operation.error) == text(error))
        }
    }

    @Test("An operation releases its block when it finishes", arguments: Start.allCases, Kind.allCases)
    func releasesBlock(start: Start, kind: Kind) async {
        for isCancelled in [false, true] {
            let tracker = LeakTracker()
            let operation = Self.holding(tracker, kind)
            await start(operation) { if isCancelled { operation.cancel() } }
            await tracker.expectAllReleased()
            #expect(operation.isFinished)
        }
    }

    private static func holding(_ tracker: LeakTracker, _ kind: Kind) -> AsyncOperation {
        let token = tracker.token("block")
        return kind.make { token.use() }
    }

    @Test("A block may finish its operation later, on another thread; of several calls, the first one decides")
    func finishesLater() async throws {
        let tracker = LeakTracker()
        do {
            let stored = Shared<FinishHandle<Void>?>(nil)
            let operation = tracker.track(AsyncBlockOperation { stored.value = $0 })
            await onThread { operation.start() }
            #expect(operation.isExecuting && !operation.isFinished)
            await onThread {
                stored.value?(TestError.first)
                stored.value?(nil)
                stored.value?(TestError.second)
            }
            await #expect(throws: TestError.first) { try await operation.finished() }
            stored.value = nil
        }
        await tracker.expectAllReleased()
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

    /// A dependent, or other code that sees the end, must not take a cancelled operation for a successful one.
    @Test("A `ThrowingBlockOperation` that reads as finished and has not run its block has an error")
    func finishedWithoutRunning() async {
        struct Subject: Sendable {
            let hasRun: Shared<Bool>
            let operation: ThrowingBlockOperation
        }
        let wrong = Shared(0)
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 3_000, seed: seed,
            prepare: { _ in
                let hasRun = Shared(false)
                return Subject(hasRun: hasRun, operation: ThrowingBlockOperation { hasRun.value = true })
            },
            [
                { @Sendable in $0.operation.start() },
                { @Sendable in $0.operation.cancel() },
                { @Sendable subject in
                    while !subject.operation.isFinished { sched_yield() }
                    if !subject.hasRun.value, subject.operation.error == nil { wrong.change { $0 += 1 } }
                },
            ],
            check: { _, _ in })
        #expect(wrong.value == 0, "seed \(seed)")
    }
}
