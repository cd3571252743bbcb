import OperationKitTestSupport

@Suite("Queues", .hangGuard) struct QueueTests {
    @Test("`allOperationsFinished` waits for operations of every class") func everyClass() async throws {
        let (log, first, last) = (EventLog(), ScriptedOperation.idle(), ScriptedOperation.idle())
        let queue = OperationQueue.suspended()
        let others = [ThrowingBlockOperation { throw TestError.first }] + ChildKind.allCases.map { $0.make {} }
        for operation in [first] + others + [last] { queue.addOperation(operation) }
        let waiting = Task {
            try await queue.allOperationsFinished()
            log.add("all finished \(last.isFinished && others.allSatisfy(\.isFinished))")
        }
        await first.becomesAwaited()
        queue.isSuspended = false
        await eventually("they do not end") { last.isExecuting && others.allSatisfy(\.isFinished) }
        first.finish()
        await eventually("it does not wait for the last one") { last.isAwaited || !log.events.isEmpty }
        last.finish()
        try await waiting.value
        #expect(log.events == ["all finished true"])
    }

    @Test("`allOperationsFinished` does not wait for operations that are added later") func addedLater() async throws {
        let queue = OperationQueue()
        let (early, late) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        queue.addOperation(early)
        let waiting = Task { try await queue.allOperationsFinished() }
        await early.becomesAwaited()
        queue.addOperation(late)
        early.finish()
        try await waiting.value
        #expect(early.isFinished && !late.isFinished)
        late.finish()
        try await late.finished()
    }

    @Test("Cancelling the wait leaves the operations alone", arguments: [ChildKind.throwing, .block])
    func cancelledWait(kind: ChildKind) async throws {
        let tracker = LeakTracker()
        do {
            let (work, queue) = (HeldWork(), OperationQueue())
            let operation = tracker.track(kind.make { work() }, "operation")
            queue.addOperation(operation)
            await work.begun.opened()
            let waiting = Task { try await queue.allOperationsFinished() }
            await (operation as? AsyncOperation)?.becomesAwaited()
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            #expect(operation.isExecuting && !operation.isCancelled && !operation.isFinished)
            work.mayEnd.open()
            try await queue.allOperationsFinished()
        }
        await tracker.expectAllReleased()
    }

    @Test("A serial queue has its name and runs one at a time") func serialQueue() async throws {
        let (queue, tokens) = (OperationQueue.serial(name: "mine"), TokenCount())
        #expect(queue.name == "mine" && queue.maxConcurrentOperationCount == 1)
        let tasks = (0..<20).map { number in TaskOperation { await tokens.hold(number) } }
        try await queue.run(tasks)
        #expect(tasks.map(\.output) == Array(0..<20) && tokens.most == 1)
    }

    @Test("`addDependencies` adds them all, in order") func addDependencies() async {
        let (first, second) = ([ScriptedOperation(), ScriptedOperation()], BlockOperation {})
        let operation = ScriptedOperation()
        operation.addDependencies(first)
        operation.addDependencies(CollectionOfOne<Operation>(second))
        operation.addDependencies([])
        #expect(operation.dependencies.elementsEqual(first + [second], by: ===) && !operation.isReady)
        for dependency in operation.dependencies { dependency.start() }
        #expect(operation.isReady)
    }

    #if os(macOS) || os(Linux)
    @Test("What depends on itself traps", arguments: 0..<3) func operationDependsOnItself(way: Int) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [way] in
            let operation = ScriptedOperation("narcissus")
            switch way {
            case 0: operation.addDependency(operation)
            case 1: operation.addDependencies([AsyncOperation(), operation])
            default: operation.bind(to: operation) { _, _ in }
            }
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("“narcissus” cannot depend on itself"))
        #endif
    }
    #endif
}
