import OperationKitTestSupport

/// `OperationQueue.run` when the awaiting task is cancelled: it owns the operation, cancels it, and still waits for its
/// end.
@Suite("OperationQueue.run, cancelled", .hangGuard) struct RunCancellationTests {
    @Test(
        "`run` returns only after the work has ended, whose outcome stands",
        arguments: [ChildKind.hopping, .throwing, .block])
    func work(kind: ChildKind) async {
        let (work, log) = (HeldWork(), EventLog())
        let operation = kind.make {
            work()
            log.add("work ends")
        }
        let task = Task {
            defer { log.add("run returned, finished \(operation.isFinished)") }
            try await OperationQueue().run(operation)
        }
        await work.begun.opened()
        task.cancel()
        await eventually("the operation was not cancelled") { operation.isCancelled }
        log.add("cancelled, finished \(operation.isFinished)")
        work.mayEnd.open()
        let result = await task.result
        #expect(text(result.failure) == (operation is AsyncOperation ? "success" : "cancelled"))
        #expect(log.events == ["cancelled, finished false", "work ends", "run returned, finished true"])
    }

    /// The ways to run operations, and what each of them throws when it is cancelled.
    enum Run: CaseIterable {
        case one, typed, several

        func callAsFunction(_ operation: AsyncBlockOperation, log: EventLog, on queue: OperationQueue) async throws {
            switch self {
            case .one: try await queue.run(operation)
            case .typed:
                try await queue.run(
                    Step<Void, Int> { step, _ in
                        log.add("main")
                        step.finish(with: 1)
                    })
            case .several: try await queue.run([operation, ScriptedOperation.logged(log)])
            }
        }
    }

    @Test("A call that is cancelled on a suspended queue ends immediately, without the work", arguments: Run.allCases)
    func suspendedQueue(run: Run) async throws {
        let (log, queue) = (EventLog(), OperationQueue.suspended())
        let operation = AsyncBlockOperation { _ in log.add("main") }
        let task = Task { try await run(operation, log: log, on: queue) }
        await eventually("nothing is added") { queue.operationCount == (run == .several ? 2 : 1) }
        task.cancel()
        let error = await #expect(throws: (any Error).self) { try await task.value }
        #expect(error?.isCancellation == true)
        // The operations stay on the queue until it starts them.
        #expect(queue.operationCount > 0)
        queue.isSuspended = false
        try await queue.allOperationsFinished()
        #expect(!log.events.contains("main"))
    }

    @Test("A call on a suspended queue ends with the reason of a cancellation that came before that of its task")
    func suspendedQueueWithReason() async {
        let (queue, operation) = (OperationQueue.suspended(), ScriptedOperation())
        let task = Task { try await queue.run(operation) }
        await operation.becomesAwaited()
        operation.cancel(withError: TestError.first)
        task.cancel()
        await #expect(throws: TestError.first) { try await task.value }
        queue.isSuspended = false
    }

    @Test("A plain operation on a suspended queue is waited for until the queue is resumed")
    func plainOperationOnSuspendedQueue() async {
        let (log, queue) = (EventLog(), OperationQueue.suspended())
        let operation = BlockOperation { log.add("main") }
        let task = Task {
            defer { log.add("run returned, finished \(operation.isFinished)") }
            try await queue.run(operation)
        }
        await eventually("it is not added") { queue.operationCount == 1 }
        task.cancel()
        await eventually("the operation was not cancelled") { operation.isCancelled }
        queue.isSuspended = false
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(log.events == ["run returned, finished true"])
    }

    @Test("A stock operation may be released although what it depends on has not finished", arguments: [false, true])
    func stockDependent(runsBoth: Bool) async {
        // It may have begun when the task is cancelled.
        let fetch = ScriptedOperation(main: { _ in }) { $0.finish(withError: CancellationError()) }
        let leaks = LeakTracker()
        do {
            let show = leaks.track(BlockOperation {})
            show.addDependency(fetch)
            if !runsBoth { fetch.start() }
            let task = Task {
                if !runsBoth { return try await OperationQueue().run(show) }
                try await OperationQueue().run([show, fetch] as [Operation])
            }
            task.cancel()
            _ = await task.result
            #expect(show.isFinished && show.dependencies.isEmpty)
        }
        await leaks.expectAllReleased()
        fetch.finish()
    }

    @Test("Cancelling the task may meet the run anywhere, and a success means that the work has run")
    func races() async {
        let queue = OperationQueue()
        let tracker = LeakTracker()
        for round in 0..<TestExtent.choose(1_000, long: 4_000) {
            let hasRun = Shared(false)
            let kind = round.isMultiple(of: 2) ? ChildKind.throwing : .asynchronous
            let operation = tracker.track(kind.make { hasRun.value = true })
            let task = Task { try await queue.run(operation) }
            await Task.yield()
            task.cancel()
            switch await task.result {
            case .success: #expect(hasRun.value)
            case .failure(let error):
                #expect(!hasRun.value && error is CancellationError && operation.isCancelled)
            }
        }
        await tracker.expectAllReleased()
    }
}
