import OperationKitTestSupport

/// Runs as operations: on queues, in compounds, cancelled at every point.
@Suite("Collection runs", .serialized, .hangGuard) struct CollectionRunTests {
    @Test(
        "Failures arrive together, with their indices, and inside those of a compound around the run",
        arguments: Strategy.allCases)
    func failures(strategy: Strategy) async throws {
        let run = strategy.make(batchSize: 2) { items, completion in
            completion(items[0] == 1 || items[0] == 4 ? TestError.numbered(items[0]) : nil)
        }.makeOperation(on: [0, 0, 1, 1, 4, 4])
        let compound = await outcome(of: CompoundOperation(name: "outer", operations: [run, BlockOperation {}]))
        let word = strategy.isBatch ? "batch" : "item"
        let indices = strategy.isBatch ? [1, 2] : [2, 3, 4, 5]
        let list = indices.map { "\($0) \(word) \($0)" }.joined(separator: ", ")
        #expect(brief(run.error) == "\(run.name ?? "") failed [\(list)]")
        let errors = (run.error as? CompoundOperationError)?.suboperationErrors ?? []
        #expect(compound?.leafErrors.map(text) == errors.map { text($0.error) })
        #expect(errors.map(\.siblingCount) == indices.map { _ in run.errors.count })
        #expect(run.errors.map { $0 == nil } == run.errors.indices.map { !indices.contains($0) })
    }

    /// What keeps further items from starting.
    enum Stop: CaseIterable, Sendable { case cancellation, outcome, failure, cancelledTask }

    @Test("Items in flight are waited for, and no further item starts", arguments: Strategy.allCases, Stop.allCases)
    func itemsInFlight(strategy: Strategy, stop: Stop) async throws {
        let (log, taken, full, isOver, width) = (WorkLog(), Shared(0), Gate(), Gate(), strategy.width(3))
        let operation = strategy.make(policy: stop == .failure ? .cancelRemaining : .continueAll) { items, completion in
            log.began(items)
            log.keep(completion)
            if log.keptCount == width { full.open() }
        }
        let run = operation.makeOperation(on: Array(0..<10))
        let task = Task {
            defer { isOver.open() }
            if stop != .cancelledTask { return try await OperationQueue().run(run) }
            let sequence = Reads { index in
                taken.value = index + 1
                return index
            }
            _ = try await operation.performOperation(onEach: sequence)
        }
        await full.opened()
        var kept = log.takeKept()
        switch stop {
        case .cancellation: run.cancel()
        case .outcome: #expect(run.finish(withError: TestError.reason) && !run.finish())
        case .failure: if width > 1 { kept.removeFirst()(TestError.second) }
        case .cancelledTask: task.cancel()
        }
        for completion in kept.dropLast() { completion(nil) }
        #expect(!run.isFinished && !isOver.isOpen)
        kept.last?(TestError.first)
        let error = await task.result.failure
        #expect(log.units.count == width)
        if stop == .cancelledTask {
            #expect(error is CancellationError && taken.value == width)
            return
        }
        #expect(Set(run.errors.prefix(width).map(text)).isSuperset(of: width == 1 ? ["first"] : ["success", "first"]))
        #expect(run.errors.dropFirst(width).allSatisfy { $0 is CancellationError })
        let failures = (run.error as? CompoundOperationError)?.suboperationErrors.map { text($0.error) }
        switch stop {
        case .outcome: #expect(text(run.error) == "reason")
        case .failure: #expect(failures?.sorted() == (width == 1 ? ["first"] : ["first", "second"]))
        case .cancellation, .cancelledTask: #expect(failures == ["first"] && brief(run.error).contains(" cancelled ["))
        }
    }

    @Test("A missing input is an error, and an empty one is not")
    func missingInput() async throws {
        let operation = SequentialItems(1, 1, .continueAll) { _, completion in completion(nil) }
        await #expect(throws: IOOperationError.missingInput(operation: "SequentialItems")) {
            try await OperationQueue().run(operation.makeOperation())
        }
        try await OperationQueue().run(operation.makeOperation(on: []))
        let run = operation.makeOperation()
        run.input = [1]
        try await OperationQueue().run(run)
        #expect(run.errors.count == 1)
    }

    // MARK: - Progress

    @Test("Progress counts the items or batches that have ended", arguments: Strategy.allCases)
    func progress(strategy: Strategy) async throws {
        let seen = Shared<[Int64]>([])
        let progress = Shared<Progress?>(nil)
        let run = strategy.make(limit: 1) { items, completion in
            seen.change { $0.append(progress.value?.completedUnitCount ?? -1) }
            completion(items[0] == 2 ? TestError.first : nil)
        }.makeOperation(on: Array(0..<5))
        progress.value = run.progress
        #expect(run.progress === run.progress && run.progress.isIndeterminate)
        run.asyncCompletionBlock = { _ in seen.change { $0.append(progress.value?.completedUnitCount ?? -1) } }
        try? await OperationQueue().run(run)
        #expect(seen.value == [0, 1, 2, 3, 4, 5])
        #expect(run.progress.totalUnitCount == 5 && run.progress.fractionCompleted == 1)
    }

    @Test("Progress is complete in the completion block, also if items end at the same time")
    func progressOfConcurrentEnds() async throws {
        for _ in 0..<50 {
            let run = ParallelItems(8, 1, .continueAll) { _, completion in
                DispatchQueue.global().async { completion(nil) }
            }.makeOperation(on: Array(0..<100))
            let progress = run.progress
            let fraction = Shared(0.0)
            run.asyncCompletionBlock = { _ in fraction.value = progress.fractionCompleted }
            try await OperationQueue().run(run)
            #expect(fraction.value == 1)
        }
    }

    // MARK: - Release

    @Test("A run in a compound may end and go while the compound is being cancelled", arguments: Strategy.allCases)
    func goneWhileCancelled(strategy: Strategy) async {
        let completion = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let (begun, blocked) = (Gate(), Gate())
        let compound: CompoundOperation
        do {
            let run = strategy.make { _, completed in
                completion.value = completed
                begun.open()
            }.makeOperation(on: [1])
            let sibling = AsyncBlockOperation { finish in
                finish.onCancel {
                    completion.value?(nil)
                    finish()
                }
                blocked.open()
            }
            compound = CompoundOperation(operations: [run, sibling])
        }
        OperationQueue().addOperation(compound)
        await begun.opened()
        await blocked.opened()
        compound.cancel()
        await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
        completion.value = nil
    }

    @Test(
        "Runs are released, cancelled ones too, and hold their objects until they have finished",
        arguments: Strategy.allCases)
    func release(strategy: Strategy) async {
        let tracker = LeakTracker()
        var runs: [CollectionRun<Int>] = []
        for isCancelled in [false, true] {
            let operation = strategy.make { _, completion in elsewhere { completion(nil) } }
            tracker.track(operation, "operation")
            let run = operation.makeOperation(on: Array(0..<20))
            if isCancelled { run.asyncCompletionBlock = { [unowned run] _ in run.cancel() } }
            try? await OperationQueue().run(run)
            runs.append(run)
        }
        await tracker.expectAllReleased()
        for run in runs {
            tracker.track(run, "run")
            tracker.track(run.progress, "progress")
        }
        runs = []
        await tracker.expectAllReleased()
    }
}
