import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: limits", .hangGuard, .serialized) struct CompoundLimitTests {
    /// Children of one kind, or of several: some end on other threads, and the queue starts others.
    @Test(
        "No more children run at the same time than the limit allows, and none begins in the place of an older one",
        arguments: [[.block, .hopping]] + ChildKind.allCases.map { [$0] }, [1, 2, 3])
    func limit(_ kinds: [ChildKind], limit: Int) async throws {
        let seed = SplitMix64.freshSeed()
        var random = SplitMix64(seed: seed)
        for _ in 0..<TestExtent.choose(kinds.count == 1 ? 1 : 10, long: 400) {
            let running = Shared((now: 0, most: 0, open: Set(0..<40), problem: String?.none))
            let spins = random.next() % 3_000
            let children = (0..<40).map { number in
                kinds.randomElement(using: &random)!.make {
                    running.change {
                        $0.now += 1
                        $0.most = max($0.most, $0.now)
                        $0.open.remove(number)
                        // Those that are older, and those that run, need more places than there are.
                        let older = $0.open.filter { $0 < number }
                        if $0.now + older.count > limit { $0.problem = "\(number) before \(older.sorted())" }
                    }
                    var random = SplitMix64(seed: UInt64(number))
                    random.spinRandomly(upTo: spins + 1)
                    running.change { $0.now -= 1 }
                }
            }
            try await OperationQueue().run(CompoundOperation(operations: children, maxConcurrentOperationCount: limit))
            #expect((1...limit).contains(running.value.most))
            #expect(running.value.problem == nil, "seed \(seed)")
        }
    }

    @Test("The limit may change while the compound runs: 0 pauses it, a higher one starts further children")
    func changedLimit() async throws {
        let children = (0..<6).map { _ in ScriptedOperation.idle() }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: 0)
        func executing() -> Int { children.count { $0.isExecuting } }
        await compound.start(until: compound)
        #expect(executing() == 0)
        compound.maxConcurrentOperationCount = 2
        await eventually("not begun") { executing() == 2 }
        compound.maxConcurrentOperationCount = -1
        await eventually("not begun") { executing() == 6 }
        compound.maxConcurrentOperationCount = 1
        #expect(compound.maxConcurrentOperationCount == 1)
        let late = ScriptedOperation.idle()
        try compound.addOperation(late)
        for child in children.dropLast() { child.finish() }
        try await Self.letQueuesBegin()
        #expect(!late.isExecuting)
        children[5].finish()
        await eventually("not begun") { late.isAtWork }
        late.finish()
        try await compound.finished()
    }

    /// Lets another queue begin an operation: a child that was allowed to begin has begun before that.
    private static func letQueuesBegin() async throws { try await OperationQueue().run(BlockOperation {}) }

    @Test("A lowered limit holds for a child that becomes ready by itself") func loweredLimit() async throws {
        let running = ScriptedOperation.idle()
        let log = EventLog()
        let waiting = GatedReadyOperation { log.add("waiting") }
        let compound = CompoundOperation(operations: [running, waiting])
        OperationQueue().addOperation(compound)
        await eventually("not left to the queue") {
            running.isExecuting && compound.debugDescription.contains("not ready by itself")
        }
        compound.maxConcurrentOperationCount = 1
        waiting.becomeReady()
        try await Self.letQueuesBegin()
        #expect(log.events.isEmpty)
        running.finish()
        try await compound.finished()
        #expect(log.events == ["waiting"])
    }

    @Test("A child that is not ready by itself after its dependency keeps its place for a moment only")
    func unreadyAfterDependency() async throws {
        let (first, log) = (BlockOperation {}, EventLog())
        let waiting = GatedReadyOperation { log.add("waiting") }
        waiting.addDependency(first)
        let next = ScriptedOperation.named("next", in: log)
        let compound = CompoundOperation(operations: [first, waiting, next], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        try await next.finished()
        waiting.becomeReady()
        try await compound.finished()
        #expect(log.events == ["next", "waiting"])
    }

    @Test("A child that was not ready by itself after its dependency is released when it has ended")
    func releasedAfterDependency() async throws {
        let (tracker, running) = (LeakTracker(), ScriptedOperation.idle())
        let compound = CompoundOperation(operations: [running])
        OperationQueue().addOperation(compound)
        do {
            let (first, waiting) = (BlockOperation {}, tracker.track(GatedReadyOperation {}))
            waiting.addDependency(first)
            try compound.addOperations([first, waiting])
            await eventually("not left to the queue") { compound.debugDescription.contains("not ready by itself") }
            waiting.becomeReady()
        }
        await tracker.expectAllReleased()
        running.finish()
        try await compound.finished()
    }

    @Test("A child that becomes ready by itself after its dependency does not begin while its compound is suspended")
    func unreadyWhileSuspended() async throws {
        let (first, log) = (BlockOperation {}, EventLog())
        let waiting = GatedReadyOperation { log.add("waiting") }
        waiting.addDependency(first)
        let compound = CompoundOperation(operations: [first, waiting], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        // Not before the thread that hands it to the queue has noticed that it is not ready.
        await eventually("not left to the queue") {
            (compound.children as? ChildScheduler)?.machine.withLock { machine in
                !machine.unreadyChildren.isEmpty || machine.readiness.places.unreadyCount > 0
            } == true
        }
        compound.isSuspended = true
        waiting.becomeReady()
        try await Self.letQueuesBegin()
        #expect(log.events.isEmpty)
        compound.isSuspended = false
        try await compound.finished()
    }

    @Test("The quality of service may change while the compound runs, and counts for the children that start later")
    func changedQualityOfService() async throws {
        let log = EventLog()
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        compound.qualityOfService = .utility
        #expect(compound.qualityOfService == .utility)
        let note: @Sendable () -> Void = {
            switch OperationQueue.current?.qualityOfService {
            case .utility: log.add("utility")
            case .background: log.add("background")
            default: log.add("other")
            }
        }
        let first = BlockOperation { [unowned compound] in
            note()
            compound.qualityOfService = .background
        }
        try compound.addOperations([first, BlockOperation(block: note)])
        try await OperationQueue().run(compound)
        #expect(log.events == ["utility", "background"])
    }
}
