import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// How a compound is cancelled, and who decides its outcome.
@Suite("Compound: cancellation", .hangGuard) struct CompoundCancellationTests {
    private func isCancelled(_ error: (any Error)?, errors count: Int = 0, reason: TestError? = nil) -> Bool {
        guard case .cancelled(_, let errors, let given) = error as? CompoundOperationError else { return false }
        return errors.count == count && given as? TestError == reason
    }

    private func ended(_ compound: CompoundOperation) async -> (any Error)? {
        try? await compound.finished()
        return compound.error
    }

    @Test(arguments: ChildKind.allCases)
    func reachesEveryChildBeforeItReturns(_ kind: ChildKind) async {
        let isBegun = Gate()
        let log = EventLog()
        let running = ScriptedOperation(main: { _ in isBegun.open() })
        let children = (0..<10).map { _ in kind.make { log.add("ran") } }
        for child in children { child.completionBlock = { log.add("completion") } }
        let compound = CompoundOperation(operations: [running] + children, maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        await isBegun.opened()
        compound.cancel()
        #expect(running.isCancelled)
        #expect(children.allSatisfy { $0.isCancelled })
        #expect(!compound.isFinished)
        running.finish()
        #expect(isCancelled(await ended(compound)))
        #expect(children.allSatisfy { $0.isFinished })
        await eventually("completion blocks: \(log.events)") { log.count(of: "completion") == 10 }
        #expect(log.count(of: "ran") == 0)
    }

    @Test func reachesChildrenAtAnyDepth() async {
        let leaf = ScriptedOperation.idle()
        var compound = CompoundOperation(operations: [leaf])
        for _ in 0..<50 { compound = CompoundOperation(operations: [compound]) }
        let isBegun = Gate()
        leaf.completionBlock = {}
        OperationQueue().addOperation(compound)
        await eventually("not begun") { leaf.isExecuting }
        isBegun.open()
        compound.cancel()
        #expect(leaf.isCancelled)
        leaf.finish()
        #expect(isCancelled(await ended(compound)))
    }

    @Test("Once a compound is being cancelled, no child of a nested one begins because another child ends")
    func nothingBeginsInside() async {
        let began = Gate()
        let (running, waiting) = (
            ScriptedOperation("running", main: { _ in began.open() }, didCancel: { $0.finish() }),
            ScriptedOperation("waiting")
        )
        let first = CompoundOperation(operations: [running])
        waiting.addDependency(first)
        let second = CompoundOperation(operations: [waiting])
        // Cancelled between the two, it lets other threads go on for a while.
        let slow = ScriptedOperation(
            main: { _ in },
            didCancel: { operation in
                for _ in 0..<20_000 where !waiting.isExecuting && !waiting.isFinished { sched_yield() }
                operation.finish()
            })
        let compound = CompoundOperation(operations: [first, slow, second])
        compound.start()
        await began.opened()
        while !slow.isExecuting || !second.isExecuting { await Task.yield() }
        compound.cancel()
        try? await compound.finished()
        #expect(waiting.error is CancellationError)
    }

    @Test func carriesTheErrorsThatChildrenReported() async {
        let running = ScriptedOperation.idle()
        let failing = ThrowingBlockOperation { throw TestError.first }
        let compound = CompoundOperation(operations: [failing, running], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        await eventually("not begun") { running.isExecuting }
        compound.cancel(withError: TestError.reason)
        running.finish(withError: TestError.second)
        let error = await ended(compound)
        #expect(isCancelled(error, errors: 2, reason: .reason))
        #expect((error as? CompoundOperationError)?.leafErrors.map { $0 as? TestError } == [.first, .second])
    }

    @Test(arguments: [-1, 1], ["main", "asyncCompletionBlock", "completionBlock", "didCancel"])
    func mayBeCancelledFromAChildsOwnBlocks(limit: Int, place: String) async {
        let compound = CompoundOperation(maxConcurrentOperationCount: limit)
        let last = ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
        let child = ScriptedOperation(
            main: { [unowned compound] in
                if place == "main" || place == "didCancel" { compound.cancel() }
                if place != "didCancel" { $0.finish() }
            },
            didCancel: { [unowned compound] in
                compound.cancel()
                $0.finish(withError: CancellationError())
            })
        child.asyncCompletionBlock = { [unowned compound] _ in
            if place == "asyncCompletionBlock" { compound.cancel() }
        }
        child.completionBlock = { [weak compound] in
            if place == "completionBlock" { compound?.cancel() }
        }
        expectNoError { try compound.addOperations([child, last]) }
        OperationQueue().addOperation(compound)
        #expect(isCancelled(await ended(compound)))
        #expect(last.isFinished)
    }

    @Test func aCompoundThatIsCancelledBeforeItsStartRunsNothingAndEndsLast() async {
        let log = EventLog()
        let children = ChildKind.allCases.map { kind in kind.make { log.add("ran") } }
        let compound = CompoundOperation(operations: children)
        compound.asyncCompletionBlock = { _ in log.add(children.allSatisfy { $0.isFinished } ? "after" : "before") }
        compound.cancel()
        #expect(children.allSatisfy { $0.isCancelled && !$0.isFinished })
        OperationQueue().addOperation(compound)
        #expect(isCancelled(await ended(compound)))
        #expect(log.events == ["after"])
    }

    @Test func neverExecutesWhenItIsCancelledBeforeItsStart() async {
        final class Observed: CompoundOperation, @unchecked Sendable {
            override func prepare() throws { Issue.record("It is not prepared.") }
        }
        let wasExecuting = Shared(false)
        let compound = Observed()
        let child = ScriptedOperation()
        child.asyncCompletionBlock = { [unowned compound] _ in wasExecuting.value = compound.isExecuting }
        expectNoError { try compound.addOperation(child) }
        compound.cancel(withError: TestError.reason)
        compound.start()
        #expect(isCancelled(await ended(compound), reason: .reason))
        #expect(!wasExecuting.value)
    }

    @Test(arguments: [-1, 0, 1])
    func cancellingASuspendedCompoundEndsIt(limit: Int) async {
        let children = ChildKind.allCases.map { $0.make { Issue.record("It does not run.") } }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: limit)
        compound.isSuspended = true
        OperationQueue().addOperation(compound)
        await eventually("not begun") { compound.isExecuting }
        compound.cancel()
        #expect(isCancelled(await ended(compound)))
        #expect(compound.isSuspended)
        #expect(children.allSatisfy { $0.isFinished })
    }

    @Test func childrenThatWaitForSomethingOutsideEndTooAndAreReleased() async throws {
        let tracker = LeakTracker()
        do {
            let outside = tracker.track(BlockOperation {})
            let children = ChildKind.allCases.map { tracker.track($0.make { Issue.record("It does not run.") }) }
            for child in children { child.addDependency(outside) }
            let compound = tracker.track(CompoundOperation(operations: children, maxConcurrentOperationCount: 1))
            OperationQueue().addOperation(compound)
            await eventually("not begun") { compound.isExecuting }
            compound.cancel()
            #expect(isCancelled(await ended(compound)))
            #expect(children.allSatisfy { $0.isFinished })
        }
        await tracker.expectAllReleased()
    }

    @Test func anOperationOutsideMayFinishAfterTheCancelledChildrenThatWaitedForItAreGone() async throws {
        let outside = BlockOperation {}
        for _ in 0..<50 {
            let children = ChildKind.allCases.map { $0.make {} }
            for child in children { child.addDependency(outside) }
            let compound = CompoundOperation(operations: children)
            compound.cancel()
            try? await OperationQueue().run(compound)
        }
        try await OperationQueue().run(outside)
    }

    @Test(arguments: [nil, TestError.first])
    func finishingItFromOutsideCancelsTheChildrenAndEndsAfterThem(_ error: TestError?) async {
        let running = ScriptedOperation.idle()
        let waiting = BlockOperation { Issue.record("It does not run.") }
        let compound = CompoundOperation(operations: [running, waiting], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        await eventually("not begun") { running.isExecuting }
        #expect(compound.finish(withError: error))
        #expect(running.isCancelled && waiting.isCancelled)
        #expect(!compound.isFinished)
        #expect(!compound.finish(withError: TestError.second))
        running.finish(withError: TestError.second)
        #expect(await ended(compound) as? TestError == error)
        #expect(!compound.isCancelled)
    }

    @Test func finishingItBeforeItsStartIsRememberedAndWins() async {
        let child = BlockOperation { Issue.record("It does not run.") }
        let compound = CompoundOperation(operations: [child])
        #expect(compound.finish(withError: TestError.first))
        #expect(child.isCancelled && !compound.isFinished)
        compound.cancel()
        OperationQueue().addOperation(compound)
        #expect(await ended(compound) as? TestError == .first)
        #expect(child.isFinished)
    }

    @Test func anOutcomeGivenAfterACancellationWins() async {
        let running = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [running])
        OperationQueue().addOperation(compound)
        await eventually("not begun") { running.isExecuting }
        compound.cancel()
        #expect(compound.finish(withError: TestError.first))
        running.finish()
        #expect(await ended(compound) as? TestError == .first)
    }

    @Test func cancellingInPrepareCancelsWhatIsThereAndWhatComes() async {
        final class Cancelling: CompoundOperation, @unchecked Sendable {
            let children = [
                BlockOperation { Issue.record("It does not run.") },
                BlockOperation { Issue.record("It does not run.") },
            ]
            override func prepare() throws {
                try addOperation(children[0])
                cancel()
                #expect(children[0].isCancelled)
                try addOperation(children[1])
                #expect(children[1].isCancelled)
            }
        }
        let compound = Cancelling()
        OperationQueue().addOperation(compound)
        #expect(isCancelled(await ended(compound)))
    }

    @Test func cancellingAChildIsItsOwnAffair() async throws {
        let outside = BlockOperation {}
        let child = ScriptedOperation { _ in Issue.record("It does not run.") }
        child.addDependency(outside)
        let compound = CompoundOperation(operations: [child])
        OperationQueue().addOperation(compound)
        await eventually("not begun") { compound.isExecuting }
        child.cancel()
        try await compound.finished()
        #expect(!compound.isCancelled)
    }

    @Test(arguments: [-1, 1])
    func aChildThatIsCancelledByItselfDoesNotWaitForItsSiblings(limit: Int) async throws {
        let first = ScriptedOperation.idle()
        let second = ScriptedOperation { _ in Issue.record("It does not run.") }
        let third = ScriptedOperation()
        second.addDependency(first)
        third.addDependency(second)
        let compound = CompoundOperation(operations: [first, second, third], maxConcurrentOperationCount: limit)
        OperationQueue().addOperation(compound)
        await eventually("not begun") { first.isExecuting }
        if limit < 0 {
            second.cancel()
            await eventually("not ended") { third.isFinished }
            #expect(first.isExecuting)
        } else {
            second.cancel()
        }
        first.finish()
        try await compound.finished()
        #expect(second.error is CancellationError)
        #expect(third.error == nil)
    }

    @Test func aChildThatIsCancelledBeforeTheStartDoesNotWaitForItsSiblings() async throws {
        let first = ScriptedOperation.idle()
        let second = ScriptedOperation()
        second.addDependency(first)
        let compound = CompoundOperation(operations: [first, second])
        second.cancel()
        OperationQueue().addOperation(compound)
        await eventually("not ended") { second.isFinished }
        #expect(!first.isFinished)
        first.finish()
        try await compound.finished()
    }
}
