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

    @Test("Operations of all classes have a slot each", arguments: [0, 1])
    func slots(index: Int) async {
        let coordinator = Self.coordinators[index]
        for isAsync in [false, true] {
            let cancelled = BlockOperation {}
            cancelled.cancel()
            let collection = SequentialItems(1, 1, .continueAll) { _, completion in completion(TestError.second) }
            let operations: [Operation] =
                ChildKind.allCases.map { $0.make {} } + [
                    ThrowingBlockOperation { throw TestError.first },
                    ScriptedOperation(main: { $0.finish(withError: TestError.second) }),
                    cancelled,
                    CompoundOperation(operations: [ThrowingBlockOperation { throw TestError.first }]),
                    collection.makeOperation(on: [1]),
                    TaskOperation { throw CancellationError() },
                ]
            let errors = await Self.perform(operations, by: coordinator, isAsync: isAsync)
            #expect(errors.prefix(ChildKind.allCases.count).allSatisfy { $0 == nil })
            let failures = errors.dropFirst(ChildKind.allCases.count).map { $0 }
            #expect(failures.prefix(3).map(text) == ["first", "second", "cancelled"])
            #expect(failures[3] is CompoundOperationError && failures[4] is CompoundOperationError)
            #expect(text(failures[5]) == "cancelled")
            #expect(operations.allSatisfy { $0.isFinished })
        }
    }

    @Test("Sequential means one after the other, in order")
    func sequential() async {
        let log = WorkLog()
        let operations = (0..<50).map { number in
            ChildKind.allCases[number % ChildKind.allCases.count].make {
                log.began([number])
                log.ended()
            }
        }
        _ = await Sequential().performOperations(operations)
        #expect(log.units == (0..<50).map { [$0] } && log.mostInFlight == 1)
    }

    @Test("The limit of a parallel coordinator is reached and never exceeded")
    func limit() async {
        let (tokens, full) = (TokenCount(), Gate())
        let operations = (0..<20).map { _ in
            TaskOperation {
                let token = tokens.token()
                if tokens.alive == 4 { full.open() }
                await full.opened()
                await Task.yield()
                withExtendedLifetime(token) {}
            }
        }
        #expect(await Parallel().performOperations(operations).count == 20 && tokens.most == 4)
    }

    @Test("By default as many run as there are processors, and a failure cancels nothing")
    func defaults() async {
        #expect(Defaults().maxConcurrentOperationCount == ProcessInfo.processInfo.activeProcessorCount)
        #expect(Defaults().failurePolicy == .continueAll)
        #expect(Sequential().maxConcurrentOperationCount == 1)
    }

    @Test("No operations, or an invalid limit, complete immediately")
    func nothingToRun() {
        let log = EventLog()
        for coordinator in Self.coordinators { coordinator.performOperations([]) { log.add("\($0.count)") } }
        for limit in [0, -1] {
            let operation = BlockOperation { log.add("work") }
            Parallel(maxConcurrentOperationCount: limit).performOperations([operation]) {
                log.add($0.map(text).joined())
            }
            #expect(!operation.isFinished && !operation.isCancelled)
        }
        let errors = [0, -1].map {
            text(CoordinationError.invalidLimit(type: "Parallel", maxConcurrentOperationCount: $0))
        }
        #expect(log.events == ["0", "0"] + errors)
    }

    @Test("Mistakes are reported in their slots", arguments: [0, 1])
    func mistakes(index: Int) async {
        let log = EventLog()
        let name = ["Parallel", "Sequential"][index]
        let twice = BlockOperation { log.add("twice") }
        twice.name = "twice"
        let started = ScriptedOperation.idle("started")
        started.start()
        let finished = ScriptedOperation("finished")
        finished.start()
        let operations = [twice, started, twice, finished, BlockOperation {}]
        let errors = await Self.coordinators[index].performOperations(operations)
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

    @Test("Operations that cannot run have the reason in their slots")
    func cannotRun() async {
        let (first, second) = (ScriptedOperation("first"), ScriptedOperation("second"))
        first.addDependency(second)
        second.addDependency(first)
        let errors = await Sequential().performOperations([first, second])
        #expect(errors.count == 2 && errors.allSatisfy { brief($0).contains(" cycle [") })
    }

    @Test("What is beside an operation of a compound is cancelled and finishes", arguments: [0, 1], [false, true])
    func anOperationOfACompoundIsLeftAloneAndTheOthersEnd(index: Int, isAsync: Bool) async {
        let log = EventLog()
        let child = ScriptedOperation("child")
        let owner = CompoundOperation(name: "owner", operations: [child])
        let others = ChildKind.allCases.map { kind in
            let operation = kind.make { log.add("work") }
            operation.completionBlock = { log.add("completionBlock") }
            return operation
        }
        let operations = [BlockOperation {}, child] + others + [child, AsyncOperation()]
        let errors = await Self.perform(operations, by: Self.coordinators[index], isAsync: isAsync)
        let again = operations.count - 2
        #expect(errors.indices.allSatisfy { $0 == again || errors[$0] is CompoundAdditionError })
        #expect(errors[again] is CoordinationError)
        #expect(!child.isFinished && !child.isCancelled)
        #expect(operations.allSatisfy { $0 === child || ($0.isFinished && $0.isCancelled) })
        await eventually("not all completion blocks were called") { log.events.count == others.count }
        #expect(log.count(of: "completionBlock") == others.count)
        owner.start()
        try? await owner.finished()
        #expect(child.isFinished && owner.error == nil)
    }

    @Test("Dependencies are honored, and the first failure cancels the rest if the policy says so")
    func dependenciesAndFailurePolicy() async {
        let log = EventLog()
        let (first, second) = (BlockOperation { log.add("first") }, BlockOperation { log.add("second") })
        first.addDependency(second)
        #expect(await Sequential().performOperations([first, second]).allSatisfy { $0 == nil })
        #expect(log.events == ["second", "first"])
        let failing = ThrowingBlockOperation { throw TestError.first }
        let errors = await Sequential(failurePolicy: .cancelRemaining)
            .performOperations([ScriptedOperation(), failing, ScriptedOperation(), BlockOperation {}])
        #expect(errors.map(text) == ["success", "first", "cancelled", "cancelled"])
        // Those in flight are cancelled.
        let begun = Gate()
        let running = ScriptedOperation.stoppable { _ in begun.open() }
        let late = TaskOperation {
            await begun.opened()
            throw TestError.second
        }
        let stopping = Parallel(failurePolicy: .cancelRemaining)
        #expect(await stopping.performOperations([running, late]).map(text) == ["cancelled", "second"])
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

    @Test("In a cancelled task no operation starts, and a compound's child is left alone", arguments: [0, 1])
    func cancelledTaskLeavesTheChildOfACompoundAlone(index: Int) async throws {
        let log = EventLog()
        let child = ScriptedOperation("child")
        let owner = CompoundOperation(name: "owner", operations: [child])
        let others = ChildKind.allCases.map { $0.make { log.add("work") } }
        let coordinator = Self.coordinators[index]
        let errors = try await inCancelledTask { await coordinator.performOperations([child] + others) }
        #expect(errors.allSatisfy { $0?.isCancellation == true } && !child.isCancelled)
        #expect(log.events.isEmpty && !others.contains { !$0.isFinished || !$0.isCancelled })
        withExtendedLifetime(owner) {}
    }

    @Test("Many operations, or a long chain of them, neither grow the stack nor recurse", arguments: [0, 1])
    func manyOperations(index: Int) async {
        for isChain in [false, true] {
            let count = TestExtent.choose(3_000, long: isChain ? 30_000 : 1_000_000)
            await withCheckedContinuation { continuation in
                // Only the coordinator holds them.
                Self.coordinators[index].performOperations(Self.operations(count, isChain: isChain)) { errors in
                    #expect(errors.count == count && errors.allSatisfy { $0 == nil })
                    continuation.resume()
                }
            }
        }
    }

    private static func operations(_ count: Int, isChain: Bool) -> [Operation] {
        var operations: [Operation] = []
        for number in 0..<count {
            let operation = [BlockOperation(), AsyncOperation(), ThrowingBlockOperation {}][number % 3]
            if isChain, let last = operations.last { operation.addDependency(last) }
            operations.append(operation)
        }
        return operations
    }

    @Test("Everything is released", arguments: [0, 1])
    func release(index: Int) async {
        let tracker = LeakTracker()
        do {
            let token = tracker.token("completion")
            let operations = ChildKind.allCases.map { tracker.track($0.make {}) }
            await withCheckedContinuation { continuation in
                Self.coordinators[index].performOperations(operations) { _ in
                    token.use()
                    continuation.resume()
                }
            }
        }
        await tracker.expectAllReleased()
    }
}

@Suite("Operation coordinators with a run of their own", .hangGuard) struct OwnCoordinatorTests {
    private typealias Run =
        @Sendable (
            _ operations: [Operation], _ completion: @escaping @Sendable ([(any Error)?]) -> Void
        ) -> Void

    private struct Mock: ParallelOperationCoordinator {
        let run: Run

        func performOperations(_ operations: [Operation], completion: @escaping Completion) {
            run(operations, completion)
        }
    }

    private final class MockObject: SequentialOperationCoordinator {
        private let run: Run

        init(_ run: @escaping Run) {
            self.run = run
        }

        func performOperations(_ operations: [Operation], completion: @escaping Completion) {
            run(operations, completion)
        }
    }

    private struct Base: ParallelOperationCoordinator {}

    @Test("`await` calls a coordinator's own implementation, and not the operations")
    func awaitCallsTheImplementation() async {
        let log = EventLog()
        let run: Run = { operations, completion in
            log.add("\(operations.count)")
            completion(operations.map { _ in TestError.first })
        }
        let operations = [BlockOperation { log.add("work") }, AsyncOperation()]
        for coordinator in [Mock(run: run), MockObject(run)] as [any OperationCoordinator] {
            #expect(await coordinator.performOperations(operations).map(text) == ["first", "first"])
        }
        #expect(await Mock(run: run).performOperations(operations).map(text) == ["first", "first"])
        #expect(log.events == ["2", "2", "2"] && !operations.contains { $0.isFinished })
    }

    @Test("Only the first call of the completion of a coordinator's own run counts", arguments: Report.allCases)
    func secondCall(report: Report) async {
        for _ in 0..<50 {
            let mock = Mock { _, completion in report({ completion([$0]) }, TestError.first) }
            #expect(await mock.performOperations([]).map(text) == ["first"])
        }
    }

    @Test("A coordinator's own run is called in a cancelled task, too, and waited for")
    func cancelledTask() async throws {
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
