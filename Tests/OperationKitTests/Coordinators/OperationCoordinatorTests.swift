import OperationKitTestSupport

@Suite("Operation coordinators", .serialized, .hangGuard) struct OperationCoordinatorTests {
    private struct Parallel: ParallelOperationCoordinator {
        var maxConcurrentOperationCount = 4
        var failurePolicy = FailurePolicy.continueAll
    }

    private struct Sequential: SequentialOperationCoordinator {
        var failurePolicy = FailurePolicy.continueAll
    }

    private struct Defaults: ParallelOperationCoordinator {}

    private static let coordinators: [any OperationCoordinator & Sendable] = [Parallel(), Sequential()]

    private static func perform(
        _ operations: [Operation], by coordinator: any OperationCoordinator, isAsync: Bool
    ) async -> [(any Error)?] {
        if isAsync { return await coordinator.performOperations(operations) }
        return await withCheckedContinuation { continuation in
            coordinator.performOperations(operations) { continuation.resume(returning: $0) }
        }
    }

    @Test("Operations of all classes have a slot each", arguments: [0, 1]) func slots(index: Int) async {
        let coordinator = Self.coordinators[index]
        for isAsync in [false, true] {
            let cancelled = BlockOperation {}
            cancelled.cancel()
            let collection = SequentialItems(1, 1, .continueAll) { _, completion in completion(TestError.second) }
            let failing: [Operation] = [
                ThrowingBlockOperation { throw TestError.first },
                ScriptedOperation { $0.finish(withError: TestError.second) }, cancelled,
                TaskOperation { throw CancellationError() },
                CompoundOperation(operations: [ThrowingBlockOperation { throw TestError.first }]),
                collection.makeOperation(on: [1]),
            ]
            let operations = failing + ChildKind.allCases.map { $0.make {} }
            let errors = await Self.perform(operations, by: coordinator, isAsync: isAsync)
            #expect(errors.prefix(4).map(text) == ["first", "second", "cancelled", "cancelled"])
            #expect(errors[4..<6].allSatisfy { $0 is CompoundOperationError })
            #expect(errors.dropFirst(6).allSatisfy { $0 == nil } && operations.allSatisfy { $0.isFinished })
        }
    }

    @Test("As many run at the same time as the coordinator says, or as there are processors") func limits() async {
        #expect(Defaults().failurePolicy == .continueAll)
        for (coordinator, limit) in [
            (Parallel(), 4), (Sequential(), 1), (Defaults(), ProcessInfo.processInfo.activeProcessorCount),
        ] as [(any OperationCoordinator, Int)] {
            let (tokens, full, log) = (TokenCount(), Gate(), EventLog())
            let operations = (0..<(10 + 2 * limit)).map { number in
                TaskOperation {
                    log.add("\(number)")
                    let token = tokens.token()
                    if tokens.alive == limit { full.open() }
                    await full.opened()
                    await Task.yield()
                    withExtendedLifetime(token) {}
                }
            }
            #expect(await coordinator.performOperations(operations).count == operations.count && tokens.most == limit)
            #expect(limit > 1 || log.events == operations.indices.map { "\($0)" }, "Sequential means in order, too")
        }
    }

    @Test("No operations, or an invalid limit, complete immediately") func nothingToRun() {
        let (log, operation) = (EventLog(), BlockOperation { Issue.record("It runs.") })
        for coordinator in Self.coordinators { coordinator.performOperations([]) { log.add("\($0.count)") } }
        #expect(log.events == ["0", "0"])
        for limit in [0, -1] {
            Parallel(maxConcurrentOperationCount: limit).performOperations([operation]) {
                let error = CoordinationError.invalidLimit(type: "Parallel", maxConcurrentOperationCount: limit)
                log.add("\($0.map { $0 as? CoordinationError } == [error])")
            }
        }
        #expect(!operation.isFinished && !operation.isCancelled && log.events.suffix(2) == ["true", "true"])
    }

    @Test("Mistakes are reported in their slots", arguments: [0, 1]) func mistakes(index: Int) async {
        let (log, name) = (EventLog(), ["Parallel", "Sequential"][index])
        let (twice, plain) = (ScriptedOperation.named("twice", in: log), BlockOperation {})
        let (started, finished) = (ScriptedOperation.idle("started"), ScriptedOperation("finished"))
        for operation in [started, finished] { operation.start() }
        let errors = await Self.coordinators[index].performOperations([twice, started, twice, finished, plain])
        #expect(
            errors.map { $0 as? CoordinationError } == [
                nil, .alreadyStarted(operation: "started", coordinator: name),
                .givenTwice(operation: "twice", coordinator: name),
                .alreadyStarted(operation: "finished", coordinator: name), nil,
            ])
        #expect(errors[0] == nil && errors[4] == nil)
        #expect(log.events == ["twice"] && !started.isFinished)
        started.finish()
    }

    @Test(
        "A child of a compound is left alone, and what is beside it is cancelled and finishes, in a cancelled task, too",
        arguments: [0, 1], ["completion", "await", "cancelled task"])
    func childOfACompound(index: Int, form: String) async throws {
        let (log, coordinator, isCancelled) = (EventLog(), Self.coordinators[index], form == "cancelled task")
        let child = ScriptedOperation("child")
        let owner = CompoundOperation(name: "owner", operations: [child])
        let others = ChildKind.allCases.map { kind in
            let operation = kind.make { log.add("work") }
            operation.completionBlock = { log.add("completionBlock") }
            return operation
        }
        let operations = [BlockOperation {}, child] + others + [child, AsyncOperation()]
        let errors =
            isCancelled
            ? try await inCancelledTask { await coordinator.performOperations(operations) }
            : await Self.perform(operations, by: coordinator, isAsync: form == "await")
        for (index, error) in errors.enumerated() where index != operations.count - 2 {
            #expect(isCancelled ? error?.isCancellation == true : error is CompoundAdditionError)
        }
        #expect(errors[operations.count - 2] is CoordinationError)
        #expect(!child.isFinished && !child.isCancelled)
        #expect(operations.allSatisfy { $0 === child || ($0.isFinished && $0.isCancelled) })
        await eventually("not all completion blocks were called") { log.events.count == others.count }
        #expect(log.count(of: "completionBlock") == others.count)
        owner.start()
        try? await owner.finished()
        #expect(child.isFinished && owner.error == nil)
    }

    @Test("Dependencies are honored; a failure cancels the rest if it should")
    func dependenciesAndFailurePolicy() async {
        let log = EventLog()
        let (first, second) = (BlockOperation { log.add("first") }, BlockOperation { log.add("second") })
        first.addDependency(second)
        #expect(await Sequential().performOperations([first, second]).allSatisfy { $0 == nil })
        #expect(log.events == ["second", "first"])
        let begun = Gate()
        let running = ScriptedOperation.stoppable { _ in begun.open() }
        let failing = TaskOperation {
            await begun.opened()
            throw TestError.second
        }
        let stopping = Parallel(maxConcurrentOperationCount: 2, failurePolicy: .cancelRemaining)
        let errors = await stopping.performOperations([running, failing, BlockOperation {}])
        #expect(errors.map(text) == ["cancelled", "second", "cancelled"])
    }

    @Test("Cancelling the task cancels the operations, and no further one starts", arguments: [0, 1])
    func cancelledTask(index: Int) async {
        let (begun, log) = (Gate(), EventLog())
        let running = ScriptedOperation(
            main: { _ in begun.open() }, didCancel: { $0.finish(withError: TestError.first) })
        let waiting = ChildKind.allCases.map { kind in
            let operation = kind.make { log.add("work") }
            if index == 0 { operation.addDependency(running) }
            return operation
        }
        let coordinator = Self.coordinators[index]
        let task = Task { await coordinator.performOperations([running] + waiting) }
        await begun.opened()
        task.cancel()
        let slots = await task.value
        #expect(text(slots[0]) == "first" && slots.dropFirst().allSatisfy { $0?.isCancellation == true })
        #expect(log.events.isEmpty && !waiting.contains { !$0.isFinished })
    }

    @Test("A long chain of operations is run and freed without nested calls") func longChain() async {
        let (tracker, count) = (LeakTracker(), TestExtent.choose(2_000, long: 30_000))
        for coordinator in Self.coordinators {
            let errors = await withCheckedContinuation { continuation in
                let operations = (0..<count).map {
                    tracker.track([BlockOperation(), AsyncOperation(), ThrowingBlockOperation {}][$0 % 3])
                }
                for (operation, next) in zip(operations, operations.dropFirst()) { next.addDependency(operation) }
                // Only the coordinator holds them.
                coordinator.performOperations(operations) { [token = tracker.token("completion")] errors in
                    token.use()
                    continuation.resume(returning: errors)
                }
            }
            #expect(errors.count == count && errors.allSatisfy { $0 == nil })
        }
        await tracker.expectAllReleased()
    }

    private typealias Run = @Sendable ([Operation], @escaping @Sendable ([(any Error)?]) -> Void) -> Void

    private struct Mock: ParallelOperationCoordinator {
        let run: Run

        func performOperations(_ operations: [Operation], completion: @escaping Completion) {
            run(operations, completion)
        }
    }

    private struct Base: ParallelOperationCoordinator {}

    @Test("`await` calls a coordinator's own run, and not the operations") func awaitCallsTheImplementation() async {
        let log = EventLog()
        let mock = Mock { operations, completion in
            log.add("\(operations.count)")
            completion(operations.map { _ in TestError.first })
            // Only the first call counts.
            completion([TestError.second])
            elsewhere { completion([TestError.second]) }
        }
        let operations = [BlockOperation { log.add("work") }, AsyncOperation()]
        #expect(await mock.performOperations(operations).map(text) == ["first", "first"])
        #expect(await (mock as any OperationCoordinator).performOperations(operations).map(text) == ["first", "first"])
        #expect(log.events == ["2", "2"] && !operations.contains { $0.isFinished })
    }

    @Test("A run ends, whatever an observer sets on the compound that it is") func observedCompound() async {
        // In a process of its own: global observers cost other tests, which count what they do.
        await #expect(processExitsWith: .success) {
            AsyncOperation.addGlobalObserver(EventRecorder { compound, _ in compound.asyncCompletionBlock = nil })
            #expect(await Sequential().performOperations([BlockOperation {}]).map(text) == ["success"])
        }
    }

    @Test("Its own run is called and waited for in a cancelled task") func ownRunInACancelledTask() async throws {
        let log = EventLog()
        let mock = Mock { _, completion in
            log.add("\(Task.isCancelled)")
            DispatchQueue.global().async { completion([nil]) }
        }
        let errors = try await inCancelledTask { await mock.performOperations([AsyncOperation()]) }
        #expect(errors.map(text) == ["success"])
        #expect(log.events == ["true"])
    }

    @Test("A cancelled task leaves the operations of a coordinator's own run alone", arguments: [false, true])
    func cancelledInFlight(isForwarded: Bool) async {
        let (begun, kept) = (Gate(), Shared<(@Sendable ([(any Error)?]) -> Void)?>(nil))
        let mock = Mock { operations, completion in
            if isForwarded { return Base().performOperations(operations, completion: completion) }
            kept.value = completion
            begun.open()
        }
        let running = ScriptedOperation(main: { _ in begun.open() })
        let task = Task { await mock.performOperations([running]) }
        await begun.opened()
        task.cancel()
        // Cancellations are delivered in order.
        let later = ScriptedOperation(main: { _ in }, didCancel: { $0.finish() })
        let other = Task { await Base().performOperations([later]) }
        await eventually("not begun") { later.isExecuting }
        other.cancel()
        _ = await other.value
        #expect(!running.isCancelled)
        if isForwarded { running.finish(withError: TestError.second) } else { kept.value?([TestError.second]) }
        #expect(await task.value.map(text) == ["second"])
    }
}
