import OperationKitTestSupport

@testable import OperationKit

@Suite("Misuse: compounds", .hangGuard) struct CompoundMisuseTests {
    @Test("A child that is on a queue too, or a plain one in two compounds, runs once") func onAQueueToo() async {
        let log = EventLog()
        let child = ScriptedOperation.logged(log)
        let queue = OperationQueue.suspended()
        queue.addOperation(child)
        await Start.byHand(CompoundOperation(operations: [child]))
        queue.isSuspended = false
        await onThread { queue.waitUntilAllOperationsAreFinished() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        for kind in [ChildKind.block, .foreign] {
            let (log, queue) = (EventLog(), OperationQueue.serial(name: "serial"))
            let child = kind.make { log.add("work") }
            for _ in 0..<2 { try? await queue.run(CompoundOperation(operations: [child])) }
            #expect(log.events == ["work"])
        }
    }

    @Test("A child that is not ready by itself and is on a queue too traps") func unreadyOnAQueueToo() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (child, queue) = (AskedAsyncOperation(isReady: { _, _ in false }), OperationQueue())
            queue.addOperation(child)
            await Start.byHand(CompoundOperation(operations: [child]))
        }
        #if os(Linux) && DEBUG
        #expect(String(decoding: result.standardErrorContent, as: UTF8.self).contains("cannot be enqueued"))
        #endif
    }

    @Test("A cycle through nested compounds is not found, and ends when the compound is cancelled", arguments: [1, 2])
    func cycleThroughNested(count: Int) async {
        let (left, right) = (ScriptedOperation(), ScriptedOperation())
        let inner = CompoundOperation(operations: [left])
        let other: Operation = count == 1 ? right : CompoundOperation(operations: [right])
        left.addDependency(other)
        right.addDependency(inner)
        let outer = CompoundOperation(name: "outer", operations: [inner, other])
        outer.start()
        #expect(outer.isExecuting)
        outer.cancel()
        try? await outer.finished()
        #expect([outer, left, right].map { brief($0.error) } == ["outer cancelled []", "cancelled", "cancelled"])
    }

    @Test("A child that is not ready by itself holds its compound, also a cancelled one", arguments: [false, true])
    func notReady(isCancelled: Bool) async throws {
        let mayRun = Shared(false)
        let (child, other) = (AskedAsyncOperation(isReady: { _, _ in mayRun.value }), ScriptedOperation())
        let compound = CompoundOperation(operations: [child, other], maxConcurrentOperationCount: 1)
        compound.start()
        try await other.finished()
        #expect(compound.debugDescription.contains(": not ready by itself"))
        if isCancelled { compound.cancel() }
        #expect(!compound.isFinished)
        child.willChangeValue(forKey: "isReady")
        mayRun.value = true
        child.didChangeValue(forKey: "isReady")
        try? await compound.finished()
        #expect(child.isFinished && compound.isFinished && child.isCancelled == isCancelled)
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
}

@Suite("Compound: order", .hangGuard, .serialized) struct CompoundOrderTests {

    @Test(
        "A child that becomes ready while another one executes comes before those that were added later",
        arguments: [Operation.QueuePriority.veryLow, .low, .normal, .veryHigh])
    func readyMeanwhile(_ priority: Operation.QueuePriority) async throws {
        let log = EventLog()
        let gated = GatedReadyOperation { log.add("gated") }
        let opener = ThrowingBlockOperation {
            log.add("opener")
            gated.becomeReady()
        }
        let after = ScriptedOperation.named("after", in: log)
        for child in [gated, opener, after] { child.queuePriority = priority }
        let compound = CompoundOperation(operations: [gated, opener, after], maxConcurrentOperationCount: 1)
        try await OperationQueue().run(compound)
        #expect(log.events == ["opener", "gated", "after"])
    }

    @Test("Plain children that wait for the same start by priority and addition") func plainChildren() async throws {
        for _ in 0..<TestExtent.choose(60, long: 600) {
            let (log, mayEnd, queue) = (EventLog(), Gate(), OperationQueue())
            let download = BlockOperation { mayEnd.pass() }
            queue.addOperation(download)
            let steps = (0..<20).map { number in AskedOperation(isReady: { $1 }) { log.add("\(number)") } }
            for step in steps { step.addDependency(download) }
            steps[19].queuePriority = .high
            let compound = CompoundOperation(operations: steps, maxConcurrentOperationCount: 1)
            // When this returns, all of them are waited for.
            compound.start()
            let start = ContinuousClock.now
            mayEnd.open()
            try await compound.finished()
            // One that Foundation has not told of the end of the download for 20 ms comes last.
            if start.duration(to: .now) > .milliseconds(20) { continue }
            #expect(log.events == ["19"] + (0..<19).map { "\($0)" })
        }
    }

    @Test("A cycle is reported with each name on it once, before any child runs", arguments: ChildKind.allCases)
    func cycle(_ kind: ChildKind) async throws {
        let children = "abcdefg".map { name in kind.make("\(name)") { Issue.record("No child runs.") } }
        // d waits for c, b, a, and again for d; what waits for that, and what that waits for, is no part of it.
        for (child, dependency) in [(1, 0), (2, 1), (3, 2), (0, 3), (4, 3), (0, 5), (5, 6)] {
            children[child].addDependency(children[dependency])
        }
        let compound = CompoundOperation(name: "cycle", operations: children.reversed())
        try? await OperationQueue().run(compound)
        let path = try #require(cyclePath(of: compound.error))
        #expect(path.first == "cycle" && Set(path.dropFirst()) == ["a", "b", "c", "d"] && path.count == 5)
        let position = try #require(path.firstIndex(of: "d")) - 1
        #expect((0..<4).map { path[(position + $0) % 4 + 1] } == ["d", "c", "b", "a"])
        #expect(children.allSatisfy { $0.isFinished && $0.isCancelled })
        // Operations in a cycle hold each other.
        for child in children { for dependency in child.dependencies { child.removeDependency(dependency) } }
    }

    @Test("A compound with a cycle that is cancelled while that is looked for ends") func cancelledMeanwhile() async {
        let (asked, ended) = (ReadOperation(), BlockOperation())
        let cycle = (0..<2).map { _ in ScriptedOperation() }
        for index in 0..<2 { cycle[index].addDependency(cycle[1 - index]) }
        ended.start()
        asked.addDependency(ended)
        let compound = CompoundOperation(operations: [asked] + cycle)
        asked.willRead.value = { [unowned compound] in compound.cancel() }
        await Start.byHand(compound)
        asked.willRead.value = {}
        #expect(asked.isFinished && asked.isCancelled && compound.isFinished)
    }

    @Test("An addition that would close a cycle throws, and changes nothing", arguments: [false, true])
    func cycleByAddition(isRunning: Bool) async throws {
        let hold = ScriptedOperation.idle()
        let (a, b) = (ChildKind.block.make("a") {}, ChildKind.block.make("b") {})
        a.addDependency(b)
        let compound = CompoundOperation(name: "cycle", operations: [hold, a])
        if isRunning { await compound.start(until: hold) }
        b.addDependency(a)
        // It is refused again: what is known of those that wait for it is not lost.
        for _ in 0..<2 {
            let error = #expect(throws: CompoundOperationError.self) { try compound.addOperation(b) }
            #expect(try Set(#require(cyclePath(of: error))) == ["cycle", "a", "b"])
        }
        try compound.addOperation(BlockOperation {})
        compound.cancel()
        hold.finish()
        if !isRunning { compound.start() }
        try? await compound.finished()
        #expect(a.isFinished && !b.isCancelled && !b.isFinished)
        b.removeDependency(a)
    }

    @Test("A child that waits for its compound, or an outer one, is a cycle, found when it is added and at the start")
    func waitsForItsCompound() async throws {
        let child = ChildKind.block.make("child") { Issue.record("It does not run.") }
        let compound = CompoundOperation(name: "parent")
        let outer = CompoundOperation(name: "outer", operations: [compound])
        for (awaited, path) in [(compound, ["child", "parent"]), (outer, ["child", "outer"])] {
            child.addDependency(awaited)
            let error = #expect(throws: CompoundOperationError.self) { try compound.addOperation(child) }
            #expect(cyclePath(of: error) == ["parent"] + path)
            child.removeDependency(awaited)
        }
        try compound.addOperation(child)
        child.addDependency(compound)
        compound.start()
        await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
        child.removeDependency(compound)
    }

    @Test("A chain of dependencies that is added in reverse costs linear time") func reversedChain() async throws {
        // Quadratic cost takes minutes in the long extent, which the time limit of the suite does not allow.
        let children = (0..<TestExtent.choose(3_000, long: 20_000)).map { _ in ScriptedOperation() }
        for (child, next) in zip(children, children.dropFirst()) { next.addDependency(child) }
        let compound = CompoundOperation()
        for child in children.reversed() { try compound.addOperation(child) }
        try await OperationQueue().run(compound)
        #expect(children.allSatisfy { $0.isFinished && $0.error == nil })
    }

    @Test("A child that is added again before its start returned keeps its place") func addedAgainDuringItsStart() {
        var machine = ReadinessStateMachine(limit: 1)
        let operation = BlockOperation {}
        let slot = machine.table.insert(operation)
        machine.started()
        machine.registered(slot, priority: .normal)
        _ = machine.requestWorkerIfNeeded()
        _ = machine.places.workerStarted()
        _ = machine.startNext()
        machine.ended(slot)
        let isSame = machine.table.insert(operation) == slot
        machine.registered(slot, priority: .normal)
        machine.detached(slot)
        let next = machine.startNext()
        #expect(isSame && next == slot && machine.places.detachedCount == 0)
    }
}
