import OperationKitTestSupport

@testable import OperationKit

/// What happens to compounds that are not used as they should be. The article *Misuse* lists it all.
@Suite("Misuse: compounds", .hangGuard) struct CompoundMisuseTests {
    @Test(
        "A child that runs already is waited for, and cancelled with its compound",
        arguments: ["fails", "is cancelled", "is of another class"])
    func runsAlready(way: String) async {
        let foreign = ForeignOperation { _ in }
        let scripted = ScriptedOperation.stoppable("early")
        let child: Operation = way == "is of another class" ? foreign : scripted
        child.start()
        let compound = CompoundOperation(operations: [child])
        compound.start()
        #expect(!compound.isFinished)
        switch way {
        case "fails": scripted.finish(withError: TestError.first)
        case "is cancelled": compound.cancel()
        default: foreign.finish()
        }
        try? await compound.finished()
        #expect(child.isFinished && child.isCancelled == (way == "is cancelled"))
        #expect(summary(compound.error) == (way == "fails" ? ["0 early 0"] : []))
    }

    @Test("An asynchronous child that is on a queue too runs once") func onAQueueToo() async {
        let log = EventLog()
        let child = ScriptedOperation.logged(log)
        await onThread {
            let queue = OperationQueue()
            queue.isSuspended = true
            queue.addOperation(child)
            let compound = CompoundOperation(operations: [child])
            compound.start()
            compound.waitUntilFinished()
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
        }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test("A child that is not ready by itself and is on a queue too traps") func unreadyOnAQueueToo() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            final class Unready: AsyncOperation, @unchecked Sendable {
                override var isReady: Bool { false }
            }
            let child = Unready()
            let queue = OperationQueue()
            queue.addOperation(child)
            let compound = CompoundOperation(operations: [child])
            compound.start()
            try await compound.finished()
        }
        #if os(Linux) && DEBUG
        #expect(String(decoding: result.standardErrorContent, as: UTF8.self).contains("cannot be enqueued"))
        #endif
    }

    @Test("An asynchronous child that is started by hand too runs once") func startedByHandToo() async {
        let seed = SplitMix64.freshSeed()
        let wrong = Shared<[Int]>([])
        await race(
            rounds: 200, seed: seed,
            prepare: { _ in
                let log = EventLog()
                let child = ScriptedOperation.logged(log)
                return (child: child, compound: CompoundOperation(operations: [child]), log: log)
            }, [{ @Sendable in $0.child.start() }, { @Sendable in $0.compound.start() }],
            check: { subject, round in
                subject.compound.waitUntilFinished()
                if subject.log.events != ["main", "asyncCompletionBlock success"] { wrong.change { $0.append(round) } }
            })
        #expect(wrong.value.isEmpty, "seed \(seed)")
    }

    @Test(
        "A child of another class that is in two compounds, one run after the other, runs once",
        arguments: [ChildKind.block, .foreign]
    )
    func twoCompounds(_ kind: ChildKind) async throws {
        let log = EventLog()
        let child = kind.make { log.add("work") }
        let queue = OperationQueue.serial(name: "serial")
        for compound in [CompoundOperation(operations: [child]), CompoundOperation(operations: [child])] {
            try await queue.run(compound)
        }
        #expect(log.events == ["work"])
    }

    @Test("A cycle through nested compounds is not found, and ends when the compound is cancelled", arguments: [1, 2])
    func cycleThroughNested(count: Int) async {
        let (left, right) = (ScriptedOperation(), ScriptedOperation())
        let inner = CompoundOperation(operations: [left])
        let other: Operation = count == 1 ? right : CompoundOperation(operations: [right])
        left.addDependency(other)
        right.addDependency(inner)
        await endsAsCancelled(CompoundOperation(name: "outer", operations: [inner, other]))
        #expect(left.error is CancellationError && right.error is CancellationError)
    }

    private func endsAsCancelled(_ compound: CompoundOperation) async {
        compound.start()
        #expect(compound.isExecuting)
        compound.cancel()
        let error = await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
        guard case .cancelled = error else {
            Issue.record("ended with \(text(error))")
            return
        }
    }

    /// Never ready by itself, whatever happens to it.
    private final class Stubborn: AsyncOperation, @unchecked Sendable {
        private let mayRun = Shared(false)

        override var isReady: Bool { mayRun.value }

        func becomeReady() {
            willChangeValue(forKey: "isReady")
            mayRun.value = true
            didChangeValue(forKey: "isReady")
        }
    }

    @Test(
        "A child that is not ready by itself holds its compound until it is, also when that is cancelled",
        arguments: [false, true]
    )
    func notReady(isCancelled: Bool) async throws {
        let (child, other) = (Stubborn(), ScriptedOperation())
        let compound = CompoundOperation(operations: [child, other], maxConcurrentOperationCount: 1)
        compound.start()
        try await other.finished()
        if isCancelled { compound.cancel() }
        #expect(!compound.isFinished)
        child.becomeReady()
        try? await compound.finished()
        #expect(child.isFinished && compound.isFinished)
        #expect(child.isCancelled == isCancelled)
    }

    @Test("A child may add to, suspend, limit, start, cancel and finish its compound") func anything() async {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        let child = ScriptedOperation { child in
            expectNoError { try compound.addOperation(ScriptedOperation()) }
            compound.isSuspended = true
            compound.maxConcurrentOperationCount = 0
            compound.start()
            compound.cancel()
            compound.cancel(withError: TestError.second)
            #expect(compound.finish(withError: TestError.first))
            #expect(!compound.finish())
            child.finish()
        }
        expectNoError { try compound.addOperation(child) }
        await #expect(throws: TestError.first) { try await OperationQueue().run(compound) }
    }

    @Test("Negative progress weights of children count as 0") func negativeWeights() async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        let progress = compound.progress
        let seen = Shared<[Double]>([])
        try compound.addOperation(ScriptedOperation(), progressWeight: -5)
        for weight in [Int64.min, 2] {
            let child = ScriptedOperation {
                seen.change { $0.append(progress.fractionCompleted) }
                $0.finish()
            }
            try compound.addOperation(child, progressWeight: weight)
        }
        try await OperationQueue().run(compound)
        #expect(seen.value == [0, 0])
        #expect(progress.fractionCompleted == 1)
    }
}
