import OperationKitTestSupport

/// Freeing is safe. Chains are freed on a stack of the size that worker threads have.
@Suite("Freeing", .hangGuard) struct FreeingTests {
    enum Members: CaseIterable {
        case asynchronous, throwing, alternating, alternatingThrowing

        func make(_ index: Int) -> Operation {
            switch self {
            case .asynchronous: AsyncOperation()
            case .throwing: ThrowingBlockOperation {}
            case .alternating: index.isMultiple(of: 2) ? AsyncOperation() : BlockOperation {}
            case .alternatingThrowing: index.isMultiple(of: 2) ? ThrowingBlockOperation {} : AsyncOperation()
            }
        }
    }

    /// The last of a chain in which each operation depends on the one before, and weakly the first.
    private static func chain(
        of count: Int, _ members: Members, finished: Bool, _ tracker: LeakTracker
    ) -> Operation {
        var last = tracker.track(members.make(0), "first")
        if finished { last.start() }
        for index in 1..<count {
            let next = members.make(index)
            next.addDependency(last)
            if finished { next.start() }
            last = next
        }
        return tracker.track(last, "last")
    }

    @Test("Releasing a long chain of operations overflows no stack", arguments: Members.allCases, [false, true])
    func longChain(members: Members, finished: Bool) async {
        let tracker = LeakTracker()
        // A million once: that many of each kind at the same time would not fit into memory.
        let long = members == .asynchronous && !finished ? 1_000_000 : 200_000
        await onThread(stackSize: workerStackSize) {
            _ = Self.chain(of: TestExtent.choose(2_000, long: long), members, finished: finished, tracker)
        }
        await tracker.expectAllReleased()
    }

    @Test("A chain that is held in the middle is freed up to there") func heldInMiddle() async {
        let tracker = LeakTracker()
        let middle = await onThread { Self.chain(of: 1_000, .asynchronous, finished: true, tracker) }
        let log = EventLog()
        await onThread(stackSize: workerStackSize) {
            var last: Operation = middle
            for _ in 0..<1_000 {
                let next = AsyncOperation()
                next.addDependency(last)
                last = next
            }
            tracker.track(last, "far end")
            log.add("built")
        }
        await eventually("the far end is still alive: \(tracker.alive)") { !tracker.alive.contains("far end") }
        #expect(tracker.alive == ["first", "last"])
        #expect(middle.dependencies.count == 1)
    }

    @Test("A deep graph of operations that share their dependencies is freed") func sharedDependencies() async {
        let tracker = LeakTracker()
        await onThread(stackSize: workerStackSize) {
            var layer: [Operation] = [tracker.track(AsyncOperation(), "root")]
            for _ in 0..<2_000 {
                let next: [Operation] = (0..<3).map { _ in tracker.track(AsyncOperation(), "node") }
                for operation in next { for dependency in layer { operation.addDependency(dependency) } }
                layer = next
            }
        }
        await tracker.expectAllReleased()
    }

    @Test(
        "An operation that its own blocks capture is freed after its end, cancelled before its start or not",
        arguments: Start.allCases, [false, true])
    func afterEnd(start: Start, isCancelled: Bool) async {
        let tracker = LeakTracker()
        for operation in [ScriptedOperation(), ThrowingBlockOperation {}] as [AsyncOperation] {
            tracker.track(operation, "operation")
            operation.asyncCompletionBlock = { _ in _ = operation.isFinished }
            operation.completionBlock = { _ = operation.isFinished }
            await start(operation) { if isCancelled { operation.cancel() } }
        }
        await tracker.expectAllReleased()
    }

    @Test("The blocks of an operation that never starts are released with it") func neverStarted() async {
        let tracker = LeakTracker()
        do {
            let operation = tracker.track(ScriptedOperation(), "operation")
            let token = tracker.token("blocks")
            operation.asyncCompletionBlock = { _ in token.use() }
            operation.completionBlock = { token.use() }
        }
        await tracker.expectAllReleased()
    }
}
