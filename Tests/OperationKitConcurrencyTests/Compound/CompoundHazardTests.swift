import OperationKitTestSupport

@testable import OperationKit

/// What Foundation on Linux does not survive by itself, with compounds.
@Suite("Compound: hazards", .hangGuard) struct CompoundHazardTests {
    /// A cancelled child ends before what it depends on, which holds it unretained and finishes just when the child is
    /// freed.
    @Test(
        "Cancelled children may be freed while the operation that they depend on finishes",
        arguments: [ChildKind.block, .throwing, .asynchronous, .foreign]
    )
    func freedChildren(_ kind: ChildKind) async {
        for _ in 0..<TestExtent.choose(5, long: 20) {
            let root = ScriptedOperation.idle()
            let compound = CompoundOperation(operations: [root])
            for _ in 0..<200 {
                let child = kind.make {}
                child.addDependency(root)
                expectNoError { try compound.addOperation(child) }
            }
            await compound.start(until: root)
            await concurrently([{ compound.cancel() }, { root.finish() }])
            try? await compound.finished()
        }
    }

    @Test("A chain of 100,000 block operations is freed without recursion") func longChain() async {
        let isFreed = await onThread(stackSize: workerStackSize) {
            var last = BlockOperation {}
            weak let first = last
            for _ in 1..<100_000 {
                let next = BlockOperation {}
                next.addDependency(last)
                last = next
            }
            var released: [Operation] = [last]
            last = BlockOperation {}
            DependencyRelease.release(&released)
            return first == nil
        }
        #expect(isFreed)
    }

    @Test(
        "A compound with a long chain of dependencies is freed on a secondary thread, run or not",
        arguments: [false, true]
    )
    func longChainInACompound(isRun: Bool) async {
        let tracker = LeakTracker()
        await onThread(stackSize: workerStackSize) {
            let children = (0..<TestExtent.choose(2_000, long: 50_000)).map { _ in ScriptedOperation() }
            for (child, next) in zip(children, children.dropFirst()) { next.addDependency(child) }
            tracker.track(children[0])
            let compound = CompoundOperation(operations: children)
            guard isRun else { return }
            compound.start()
            compound.waitUntilFinished()
        }
        await tracker.expectAllReleased()
    }

    @Test("A running compound that nothing else holds lives until it has finished") func lives() async {
        let tracker = LeakTracker()
        let finished = Gate()
        let child = ScriptedOperation.idle()
        do {
            let compound = tracker.track(CompoundOperation(operations: [child]))
            compound.asyncCompletionBlock = { _ in finished.open() }
            compound.start()
        }
        await eventually("not begun") { child.isAtWork }
        #expect(tracker.alive == ["CompoundOperation"])
        child.finish()
        await finished.opened()
        await tracker.expectAllReleased()
    }

    /// On Linux a queue may keep an older answer of `isReady` when the operation becomes ready while it is added.
    @Test("A child that becomes ready while it is handed to the private queue is started", arguments: [-1, 1, 2])
    func becomesReady(limit: Int) async throws {
        let (asked, isDue, isAsked, mayAnswer) = (Shared(0), Shared(false), Gate(), Gate())
        let child = AskedAsyncOperation(isReady: { _, _ in
            let isReady = isDue.value
            // The second time is inside of Foundation's addition.
            if asked.increment() == 2 {
                isAsked.open()
                mayAnswer.pass()
            }
            return isReady
        })
        let compound = CompoundOperation(operations: [child], maxConcurrentOperationCount: limit)
        compound.start()
        await isAsked.opened()
        isDue.value = true
        child.didChangeValue(forKey: "isReady")
        mayAnswer.open()
        try await compound.finished()
        #expect(child.error == nil)
    }

    @Test("A child that is started and ends while it is asked whether it is ready counts as finished")
    func endsInIsReady() async throws {
        let isDue = Shared(false)
        let child = AskedAsyncOperation(isReady: { child, _ in
            if isDue.value, !child.isExecuting, !child.isFinished { child.start() }
            return false
        })
        let after = ScriptedOperation()
        after.addDependency(child)
        let compound = CompoundOperation(operations: [child, after])
        isDue.value = true
        try await OperationQueue().run(compound)
        #expect(child.isFinished && child.error == nil && after.isFinished)
    }

    /// A finished operation keeps its dependencies, so a chain that is fed forever would be kept whole.
    @Test(
        "A chain of dependencies that is fed while it runs holds only a few operations",
        arguments: [ChildKind.block, .throwing, .asynchronous, .hopping]
    )
    func fedChain(_ kind: ChildKind) async throws {
        let tracker = LeakTracker()
        let mostAlive = Shared(0)
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        let last = Shared<Operation?>(nil)
        @Sendable func add(_ number: Int) {
            let child = tracker.track(
                kind.make { [unowned compound] in
                    mostAlive.change { $0 = max($0, tracker.alive.count) }
                    if number < 300 { add(number + 1) }
                    withExtendedLifetime(compound) {}
                })
            if let last = last.value { child.addDependency(last) }
            last.value = child
            expectNoError { try compound.addOperation(child) }
        }
        add(0)
        try await OperationQueue().run(compound)
        last.value = nil
        // A few more than run: other threads may be late to release theirs.
        #expect(mostAlive.value <= 30)
        await tracker.expectAllReleased()
    }

    #if os(Linux)
    /// Ends inside its `start()`, and announces nothing. A queue of Foundation's on Linux finds that out.
    private final class Unannounced: Operation, @unchecked Sendable {
        private let isReadyNow: Shared<Bool>
        private let hasEnded = Shared(false)

        init(_ isReadyNow: Shared<Bool>) { self.isReadyNow = isReadyNow }

        override var isAsynchronous: Bool { true }
        override var isReady: Bool { isReadyNow.value }
        override var isFinished: Bool { hasEnded.value }
        override func start() { hasEnded.value = true }
    }

    @Test(
        "A child of another class that ends in its `start()` without saying so ends its compound",
        arguments: [true, false])
    func unannounced(isReady: Bool) async throws {
        let isReadyNow = Shared(isReady)
        let compound = CompoundOperation(operations: [Unannounced(isReadyNow)])
        OperationQueue().addOperation(compound)
        isReadyNow.value = true
        try await compound.finished()
    }
    #endif
}
