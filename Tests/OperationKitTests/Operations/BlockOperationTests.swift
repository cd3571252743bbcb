import OperationKitTestSupport

@Suite("Closures as operations", .hangGuard) struct BlockOperationTests {
    enum Kind: CaseIterable {
        case asynchronous, throwing, synchronous, finishing, task, retried, withInput

        func make(_ body: @escaping @Sendable () throws -> Int) -> AsyncOperation {
            switch self {
            case .asynchronous:
                AsyncBlockOperation(name: "block") { finish in
                    do { _ = try body() } catch { return finish(error) }
                    finish()
                }
            case .throwing: ThrowingBlockOperation(name: "block") { _ = try body() }
            case .synchronous: IOBlockOperation<Void, Int>(name: "block") { _ in try body() }
            case .finishing:
                IOBlockOperation<Void, Int>.finishing(name: "block") { _, finish in
                    elsewhere { do { finish(with: try body()) } catch { finish(error) } }
                }
            case .task: TaskOperation(name: "block") { try body() }
            case .retried: TaskOperation(name: "block", retry: RetryPolicy(maximumAttempts: 1)) { try body() }
            case .withInput:
                IOTaskOperation<Void, Int>(name: "block") { _ in
                    await Task.yield()
                    return try body()
                }
            }
        }
    }

    @Test("The closure, and no `main()` by hand, decides the outcome", arguments: Start.allCases, Kind.allCases)
    func outcome(start: Start, kind: Kind) async {
        for error in [nil, TestError.first, CancellationError()] as [(any Error)?] {
            let (recorder, calls) = (EventRecorder(), Shared(0))
            let operation = recorder.observe(
                kind.make {
                    calls.change { $0 += 1 }
                    if let error { throw error } else { return 42 }
                })
            let typed = operation as? IOOperation<Void, Int>
            operation.asyncCompletionBlock = { [weak typed] _ in
                #expect(typed == nil || typed?.output == (error == nil ? 42 : nil))
            }
            operation.callMain()
            #expect(calls.value == 0 && !operation.isFinished)
            await start(operation)
            operation.callMain()
            #expect(operation.name == "block" && operation.isFinished && !operation.isExecuting && calls.value == 1)
            #expect(text(operation.error) == text(error) && !operation.isCancelled)
            let end = error.map { "finished: \(text($0))" } ?? "finished"
            #expect(await recorder.end(of: "block") == ["started", "running", end].map { "block: \($0)" })
            guard let typed else { continue }
            let value = await Task { try await typed.value }.result
            #expect(typed.output == (error == nil ? 42 : nil) && text(value.failure) == text(error))
        }
    }

    @Test("The closure runs unless it was ended before, and is released", arguments: Start.allCases, Kind.allCases)
    func released(start: Start, kind: Kind) async {
        let ends: [@Sendable (AsyncOperation) -> Void] = [
            { _ in }, { $0.cancel(withError: TestError.reason) }, { $0.finish(withError: TestError.reason) },
        ]
        for (index, end) in ends.enumerated() {
            let (log, tracker, recorder) = (EventLog(), LeakTracker(), EventRecorder())
            func holding() -> AsyncOperation {
                let token = tracker.token("closure")
                return kind.make {
                    log.add("\(token.use())")
                    return 1
                }
            }
            // Another one is dropped without a start.
            let operation = [holding(), recorder.observe(holding())][1]
            await start(operation) { end(operation) }
            #expect(operation.isFinished && text(operation.error) == (index == 0 ? "success" : "reason"))
            #expect(log.events.isEmpty == (index > 0))
            await recorder.end(of: "block")
            if index == 1 { #expect(recorder.events(of: "block") == ["cancelled", "finished: reason"]) }
            await tracker.expectAllReleased()
        }
    }

    @Test(
        "A block whose operation is cancelled goes on, and decides the outcome",
        arguments: [Kind.asynchronous, .throwing, .synchronous, .finishing], [TestError?.none, .first])
    func cancelledWhileExecuting(kind: Kind, error: TestError?) async {
        let work = HeldWork()
        let operation = kind.make {
            work()
            if let error { throw error }
            return 1
        }
        let run = Task { try await OperationQueue().run(operation) }
        await work.begun.opened()
        operation.cancel()
        #expect(operation.isCancelled && operation.isExecuting)
        work.mayEnd.open()
        #expect(await text(run.result.failure) == text(error))
        #expect(operation.isFinished && text(operation.error) == text(error))
    }

    @Test("A block goes on when other code gives its operation an outcome, which stands, and sees a later cancellation")
    func cancelledAfterItsOutcome() async {
        let (begun, handlerWasCalled) = (Gate(), Gate())
        let operation = ThrowingBlockOperation { work in
            work.onCancel { handlerWasCalled.open() }
            begun.open()
            handlerWasCalled.pass()
            #expect(work.isCancelled)
            throw CancellationError()
        }
        let compound = CompoundOperation(operations: [operation])
        compound.start()
        await begun.opened()
        #expect(operation.finish(withError: TestError.first) && !operation.finish())
        #expect(operation.isExecuting && !operation.isFinished && !operation.isCancelled)
        compound.cancel(withError: TestError.reason)
        try? await compound.finished()
        #expect(operation.isCancelled && operation.error as? TestError == .first)
    }

    @Test(
        "The priority of the task follows the quality of service at the start",
        arguments: [
            (QualityOfService.userInteractive, TaskPriority.high), (.userInitiated, .userInitiated),
            (.default, .medium), (.utility, .utility), (.background, .background),
        ])
    func priority(quality: QualityOfService, priority: TaskPriority) async {
        let operation = TaskOperation { Task.currentPriority }
        operation.qualityOfService = quality
        // Read without awaiting: a caller that waits for a task lends it a higher priority.
        await onThread {
            operation.start()
            operation.waitUntilFinished()
        }
        #expect(operation.output == priority)
    }

    @Test("A block may finish later, on another thread, and only once") func finishesLater() async throws {
        let (tracker, stored) = (LeakTracker(), Shared<FinishHandle<Void>?>(nil))
        do {
            let operation = tracker.track(AsyncBlockOperation { stored.value = $0 })
            await onThread { operation.start() }
            #expect(operation.isExecuting && !operation.isFinished)
            await onThread { for error in [TestError.first, nil, .second] { stored.value?(error) } }
            await #expect(throws: TestError.first) { try await operation.finished() }
            stored.value = nil
        }
        await tracker.expectAllReleased()
    }

    @Test("Calling `main()` of a delay, a map or a run by hand does nothing") func mainByHand() async {
        let calls = Shared(0)
        let note: @Sendable () -> Void = { calls.change { $0 += 1 } }
        let delay = DelayOperation(for: .zero)
        delay.asyncCompletionBlock = { _ in note() }
        let map = MapOperation<Int, Void> { _ in note() }.with(input: [1])
        let run = Strategy.sequentialItems.makeAsync { _ in note() }.makeOperation(on: [1])
        for operation in [delay, map, run] {
            for moment in 0...1 {
                operation.main()
                map.main(input: [1])
                run.main(input: [1])
                #expect(calls.value == moment && operation.isFinished == (moment == 1), "\(operation)")
                if moment == 0 { await Start.onBusyQueue(operation) }
            }
            #expect(operation.error == nil)
            calls.value = 0
        }
    }
}

extension AsyncOperation {
    /// Calls `main()`, which is public because Foundation's is. A class that seals it does its work elsewhere.
    func callMain() {
        main()
        (self as? IOOperation<Void, Int>)?.main(input: ())
    }
}
