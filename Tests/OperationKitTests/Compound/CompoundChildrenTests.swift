import Dispatch
import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Which operations can be children, and when the compound ends.
@Suite("Compound: children", .hangGuard, .serialized) struct CompoundChildrenTests {
    // MARK: - Kinds of children

    @Test(arguments: ChildKind.allCases, [-1, 1, 2])
    func runsChildrenOfEveryKind(_ kind: ChildKind, limit: Int) async throws {
        let log = EventLog()
        let compound = CompoundOperation(
            operations: (0..<20).map { index in kind.make { log.add("\(index)") } }, maxConcurrentOperationCount: limit)
        try await OperationQueue().run(compound)
        #expect(Set(log.events).count == 20)
        #expect(log.events.count == 20)
    }

    @Test func runsMixedChildrenTogether() async throws {
        let log = EventLog()
        let children = (0..<60).map { index in
            ChildKind.allCases[index % ChildKind.allCases.count].make { log.add("\(index)") }
        }
        try await OperationQueue().run(CompoundOperation(operations: children))
        #expect(Set(log.events).count == 60)
        #expect(children.allSatisfy { $0.isFinished })
    }

    @Test(arguments: [-1, 1, 2])
    func runsSynchronousChildrenOnOnePrivateQueue(limit: Int) async throws {
        let queues = Shared<Set<ObjectIdentifier>>([])
        let outer = OperationQueue()
        let children = (0..<50).map { index in
            (index % 2 == 0 ? ChildKind.block : .throwing).make {
                let id = OperationQueue.current.map { ObjectIdentifier($0) } ?? ObjectIdentifier(NSNull())
                _ = queues.change { $0.insert(id) }
            }
        }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: limit)
        try await outer.run(compound)
        #expect(queues.value.count == 1)
        #expect(!queues.value.contains(ObjectIdentifier(outer)))
    }

    @Test(arguments: ChildKind.allCases)
    func leavesTheCompletionBlocksOfChildrenAlone(_ kind: ChildKind) async throws {
        let log = EventLog()
        let called = Gate()
        let child = kind.make { log.add("work") }
        child.completionBlock = {
            log.add("completionBlock")
            called.open()
        }
        (child as? AsyncOperation)?.asyncCompletionBlock = { _ in log.add("asyncCompletionBlock") }
        let compound = CompoundOperation(operations: [child])
        try await OperationQueue().run(compound)
        await called.opened()
        #expect(log.count(of: "work") == 1)
        #expect(log.count(of: "completionBlock") == 1)
        #expect(log.count(of: "asyncCompletionBlock") == (child is AsyncOperation ? 1 : 0))
    }

    @Test func survivesACompletionBlockThatIsReplacedWhileItRuns() async throws {
        let called = Gate()
        let child = ScriptedOperation { operation in
            operation.completionBlock = { called.open() }
            operation.asyncCompletionBlock = nil
            operation.finish()
        }
        child.completionBlock = { Issue.record("This block was replaced.") }
        child.asyncCompletionBlock = { _ in Issue.record("This block was removed.") }
        try await OperationQueue().run(CompoundOperation(operations: [child]))
        await called.opened()
    }

    // MARK: - The end after the children

    @Test(arguments: ChildKind.allCases, [false, true])
    func finishesAfterEveryChildAlsoWhenCancelled(_ kind: ChildKind, isCancelled: Bool) async {
        let isBegun = Gate()
        let mayEnd = Gate()
        let child = kind.make {
            isBegun.open()
            mayEnd.pass()
        }
        let compound = CompoundOperation(operations: [child, BlockOperation {}])
        let isFinishedChild = Shared(false)
        compound.asyncCompletionBlock = { _ in isFinishedChild.value = child.isFinished }
        OperationQueue().addOperation(compound)
        await isBegun.opened()
        if isCancelled { compound.cancel() }
        #expect(!compound.isFinished)
        mayEnd.open()
        try? await compound.finished()
        #expect(isFinishedChild.value)
        #expect((compound.error != nil) == isCancelled)
    }

    @Test func doesNotEndWhileAChildsMainIsOnTheStack() async throws {
        let isFinished = Gate()
        let mayReturn = Gate()
        let child = ScriptedOperation {
            $0.finish()
            isFinished.open()
            mayReturn.pass()
        }
        let compound = CompoundOperation(operations: [child], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        await isFinished.opened()
        #expect(child.isFinished)
        #expect(!compound.isFinished)
        mayReturn.open()
        try await compound.finished()
    }

    // MARK: - Adding children

    @Test func takesChildrenFromPrepare() async throws {
        final class Prepared: CompoundOperation, @unchecked Sendable {
            let log = EventLog()
            override func prepare() throws {
                log.add("prepare")
                for _ in 0..<3 { try addOperation(BlockOperation { self.log.add("child") }) }
            }
        }
        let compound = Prepared()
        try await OperationQueue().run(compound)
        #expect(compound.log.events == ["prepare", "child", "child", "child"])
    }

    @Test func endsWithWhatPrepareThrowsAndRunsNoChild() async {
        final class Failing: CompoundOperation, @unchecked Sendable {
            let child = BlockOperation { Issue.record("No child runs.") }
            override func prepare() throws {
                try addOperation(child)
                throw TestError.first
            }
        }
        let compound = Failing()
        await #expect(throws: TestError.first) { try await OperationQueue().run(compound) }
        #expect(compound.child.isFinished && compound.child.isCancelled)
    }

    @Test(arguments: ChildKind.allCases, [-1, 1])
    func takesChildrenFromAChildWhileItRuns(_ kind: ChildKind, limit: Int) async throws {
        let log = EventLog()
        let compound = CompoundOperation(maxConcurrentOperationCount: limit)
        try compound.addOperation(
            kind.make { [unowned compound] in
                expectNoError { try compound.addOperation(kind.make { log.add("second") }) }
                log.add("first")
            })
        try await OperationQueue().run(compound)
        #expect(Set(log.events) == ["first", "second"])
    }

    @Test func takesChildrenFromTheBlockOfTheLastChild() async throws {
        let log = EventLog()
        let compound = CompoundOperation()
        let child = ScriptedOperation()
        child.asyncCompletionBlock = { [unowned compound] _ in
            expectNoError { try compound.addOperation(BlockOperation { log.add("late") }) }
        }
        try compound.addOperation(child)
        try await OperationQueue().run(compound)
        #expect(log.events == ["late"])
    }

    @Test func cancelsAChildThatIsAddedToACancelledCompound() async throws {
        let running = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [running])
        OperationQueue().addOperation(compound)
        await eventually("not begun") { running.isExecuting }
        compound.cancel()
        let late = BlockOperation { Issue.record("It does not run.") }
        try compound.addOperation(late)
        #expect(late.isCancelled)
        running.finish()
        try? await compound.finished()
        #expect(late.isFinished)
    }

    @Test func refusesChildrenOnceItHasFinishedAndLeavesThemAlone() async throws {
        let compound = CompoundOperation(name: "done")
        let fromBlock = Shared<(any Error)?>(nil)
        compound.asyncCompletionBlock = { [unowned compound] _ in
            do { try compound.addOperation(BlockOperation {}) } catch { fromBlock.value = error }
        }
        try await OperationQueue().run(compound)
        let late = ThrowingBlockOperation(name: "late") {}
        #expect(throws: CompoundAdditionError.compoundFinished(operation: "late", compound: "done")) {
            try compound.addOperation(late)
        }
        #expect(fromBlock.value is CompoundAdditionError)
        #expect(!late.isCancelled && !late.isFinished)
        try await OperationQueue().run(CompoundOperation(operations: [late]))
    }

    @Test(arguments: ChildKind.allCases)
    func refusesAChildThatIsThere(_ kind: ChildKind) throws {
        let child = kind.make("twin") {}
        let compound = CompoundOperation(name: "family", operations: [child])
        let expected = CompoundAdditionError.alreadyAdded(operation: "twin", compound: "family")
        #expect(throws: expected) { try compound.addOperation(child) }
        let other = kind.make("other") {}
        #expect(throws: CompoundAdditionError.alreadyAdded(operation: "other", compound: "family")) {
            try compound.addOperations([other, other])
        }
        try compound.addOperation(other)
    }

    @Test(arguments: [ChildKind.throwing, .asynchronous])
    func refusesAChildThatWasThereAndHasEnded(_ kind: ChildKind) async throws {
        let hold = ScriptedOperation.idle()
        let child = kind.make {}
        let compound = CompoundOperation(operations: [hold, child])
        OperationQueue().addOperation(compound)
        await eventually("not ended") { child.isFinished }
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(child) }
        await eventually("not begun") { hold.isExecuting }
        hold.finish()
        try await compound.finished()
    }

    @Test(arguments: [ChildKind.asynchronous, .throwing, .compound])
    func refusesAChildOfAnotherCompound(_ kind: ChildKind) throws {
        let child = kind.make("shared") {}
        let first = CompoundOperation(name: "first", operations: [child])
        let second = CompoundOperation(name: "second")
        #expect(throws: CompoundAdditionError.alreadyAdded(operation: "shared", compound: "second")) {
            try second.addOperation(child)
        }
        withExtendedLifetime(first) {}
    }

    @Test func endsWithAnErrorWhenItIsCreatedWithAChildTwice() async {
        let child = ThrowingBlockOperation(name: "twin") { Issue.record("No child runs.") }
        let compound = CompoundOperation(name: "family", operations: [BlockOperation {}, child, child])
        await #expect(throws: CompoundAdditionError.alreadyAdded(operation: "twin", compound: "family")) {
            try await OperationQueue().run(compound)
        }
        #expect(child.isFinished)
    }

    // MARK: - Empty compounds and finished children

    @Test func finishesAtOnceWithoutChildren() {
        let compound = CompoundOperation()
        compound.start()
        #expect(compound.isFinished)
        #expect(compound.error == nil)
    }

    @Test(arguments: [false, true])
    func countsAFinishedChildAsFinished(isSuspended: Bool) {
        let child = ThrowingBlockOperation { throw TestError.first }
        child.start()
        let compound = CompoundOperation(operations: [child])
        compound.isSuspended = isSuspended
        compound.start()
        #expect(compound.isFinished)
        #expect((compound.error as? CompoundOperationError)?.leafErrors.first as? TestError == .first)
    }

    @Test func runsDependentsOfAFinishedChild() async throws {
        let first = BlockOperation {}
        let second = BlockOperation {}
        second.addDependency(first)
        first.start()
        try await OperationQueue().run(CompoundOperation(operations: [second, first]))
        #expect(second.isFinished)
    }

    // MARK: - Releasing children

    @Test func releasesChildrenAsTheyFinish() async throws {
        let tracker = LeakTracker()
        let mostAlive = Shared(0)
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        @Sendable func child(_ number: Int) -> Operation {
            let child = ScriptedOperation { [unowned compound] operation in
                let alive = tracker.alive.count
                mostAlive.change { $0 = max($0, alive) }
                if number < 500 {
                    expectNoError { try compound.addOperation(child(number + 1)) }
                }
                operation.finish()
            }
            return tracker.track(child)
        }
        try compound.addOperation(child(0))
        try await OperationQueue().run(compound)
        #expect(mostAlive.value <= 4)
        await tracker.expectAllReleased()
    }

    @Test(arguments: ChildKind.allCases)
    func everythingIsReleasedInTheEnd(_ kind: ChildKind) async throws {
        let tracker = LeakTracker()
        do {
            let token = tracker.token("work")
            let children = (0..<10).map { _ in tracker.track(kind.make { token.use() }) }
            for (child, next) in zip(children, children.dropFirst()) { next.addDependency(child) }
            let compound = tracker.track(CompoundOperation(operations: children))
            try await OperationQueue().run(compound)
        }
        await tracker.expectAllReleased()
    }

    @Test(arguments: [false, true])
    func aCompoundThatIsNeverStartedIsReleased(isSuspended: Bool) async throws {
        let tracker = LeakTracker()
        do {
            let compound = tracker.track(CompoundOperation(operations: [tracker.track(ScriptedOperation())]))
            compound.isSuspended = isSuspended
            try compound.addOperation(tracker.track(BlockOperation {}))
        }
        await tracker.expectAllReleased()
    }
}
