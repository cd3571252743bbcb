import OperationKitTestSupport

/// Children that use the queue on which they run, and what the compound's queue is left with.
@Suite("Compound: the private queue", .hangGuard) struct CompoundQueueTests {
    /// The composites that run children on a private queue, each with one child that calls `body` and others after it.
    private static let composites: [@Sendable (@escaping @Sendable () -> Void) -> AsyncOperation] = [
        { serial(BlockOperation(block: $0)) },
        { body in
            serial(
                AsyncBlockOperation { finish in
                    body()
                    elsewhere { finish() }
                })
        },
        { body in MacroOperation(IOBlockOperation<Void, Void> { body() }).then(IOBlockOperation { _ in }) },
        { body in Waterfall<Void, Void>().thenRun { IOBlockOperation<Void, Void> { body() } }.then { _ in 1 } },
    ]

    private static func serial(_ child: Operation) -> CompoundOperation {
        CompoundOperation(
            operations: [child] + (0..<8).map { _ in BlockOperation {} }, maxConcurrentOperationCount: 1)
    }

    @Test(
        "A child that cancels all operations of its current queue does not keep its composite from ending",
        arguments: composites.indices)
    func cancellingAllOperations(index: Int) async {
        for _ in 0..<TestExtent.choose(60, long: 200) {
            let operation = Self.composites[index]({ OperationQueue.current?.cancelAllOperations() })
            OperationQueue().addOperation(operation)
            try? await operation.finished()
            #expect(operation.isFinished)
        }
    }

    @Test("A child that the private queue keeps until it is ready is cancelled with that queue")
    func cancellingWhatIsNotReady() async {
        let (working, mayCancel) = (Gate(), Gate())
        let unready = ForeignOperation(isReady: false) { $0.finish() }
        let cancelling = BlockOperation {
            working.open()
            mayCancel.pass()
            OperationQueue.current?.cancelAllOperations()
        }
        let compound = CompoundOperation(operations: [unready, cancelling])
        OperationQueue().addOperation(compound)
        await working.opened()
        await eventually("not left to the queue") { compound.debugDescription.contains("not ready by itself") }
        mayCancel.open()
        try? await compound.finished()
        #expect(unready.isCancelled && unready.isFinished)
    }

    @Test("The private queue has the name of its composite, also if that was cancelled before its start")
    func name() async {
        for index in 0..<20 {
            for isCancelled in [false, true] {
                let name = Shared<String?>(nil)
                let child = ScriptedOperation()
                child.asyncCompletionBlock = { _ in name.value = OperationQueue.current?.name }
                let compound = CompoundOperation(name: "\(index) \(isCancelled)", operations: [child])
                if isCancelled { compound.cancel() }
                OperationQueue().addOperation(compound)
                try? await compound.finished()
                #expect(name.value == compound.name)
            }
        }
    }

    @Test("A compound that ends while it is paused leaves no queue behind", arguments: [true, false])
    func endingWhilePaused(isSuspended: Bool) async {
        let tracker = LeakTracker()
        for _ in 0..<200 {
            do {
                let compound = CompoundOperation(maxConcurrentOperationCount: 1)
                // Another compound never gets such a queue, so it is freed.
                compound.qualityOfService = .utility
                // The worker that is to begin the next child is on its way when the last one has ended.
                let child = ScriptedOperation { [unowned compound] child in
                    if let queue = OperationQueue.current { tracker.track(queue) }
                    if isSuspended { compound.isSuspended = true } else { compound.maxConcurrentOperationCount = 0 }
                    DispatchQueue.global().async { child.finish() }
                }
                expectNoError { try compound.addOperation(child) }
                compound.start()
                try? await compound.finished()
                #expect(compound.isFinished)
            }
        }
        await tracker.expectAllReleased()
    }
}

/// Children that Foundation begins, because its own `start()` traps where a queue does not.
@Suite("Compound: synchronous children", .hangGuard) struct CompoundSynchronousChildTests {

    /// A worker comes to the child if another one was before it, and the queue is handed it directly if not.
    @Test(
        "A synchronous child may be given a dependency at any moment of its beginning",
        arguments: 1...4, [(1, false), (-1, false), (1, true)])
    func aDependencyWhileItBegins(holds: Int, scene: (limit: Int, isAfterAnother: Bool)) async throws {
        let log = EventLog()
        let late = ScriptedOperation.named("late", in: log)
        // Holds the thread that asks whether it is ready.
        let (asked, isAsked, mayAnswer) = (Shared(0), Gate(), Gate())
        let child = AskedOperation(isReady: { _, isReady in
            if asked.increment() == holds, !isAsked.isOpen {
                isAsked.open()
                mayAnswer.pass()
            }
            return isReady
        }) { log.add("child") }
        // Ends the wait for a moment that does not come.
        child.completionBlock = { isAsked.open() }
        let compound = CompoundOperation(
            operations: (scene.isAfterAnother ? [ScriptedOperation()] : []) + [child, late],
            maxConcurrentOperationCount: scene.limit)
        OperationQueue().addOperation(compound)
        await isAsked.opened()
        child.addDependency(late)
        mayAnswer.open()
        try await compound.finished()
        #expect(Set(log.events) == ["child", "late"])
        #expect(child.isFinished && late.isFinished)
    }

    @Test(
        "Children that wait for each other end, although two threads end them at the same time",
        arguments: [true, false])
    func cycles(isStock: Bool) async {
        for _ in 0..<200 {
            let children = (0..<4).map { _ in isStock ? BlockOperation {} : ScriptedOperation() }
            for (index, child) in children.enumerated() { child.addDependency(children[index ^ 1]) }
            let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: 4)
            compound.start()
            await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
            #expect(children.allSatisfy { $0.isFinished })
        }
    }

    @Test("A synchronous child that has ended, or executes, when its turn comes counts", arguments: [true, false])
    func begunByHand(hasEnded: Bool) async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let child = BlockOperation {
            begun.open()
            if !hasEnded { mayEnd.pass() }
        }
        let hold = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [hold, child], maxConcurrentOperationCount: 1)
        await compound.start(until: hold)
        DispatchQueue.global().async { child.start() }
        await begun.opened()
        if hasEnded { await eventually("not ended") { child.isFinished } }
        hold.finish()
        mayEnd.open()
        try await compound.finished()
    }
}
