import OperationKitTestSupport

/// Coordinators that implement the run themselves, as mocks do.
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
    func cancelledTask() async {
        let (mayBegin, log) = (Gate(), EventLog())
        let mock = Mock { _, completion in
            log.add("\(Task.isCancelled)")
            DispatchQueue.global().async { completion([nil]) }
        }
        let task = Task {
            // Returns immediately: the task has been cancelled.
            await mayBegin.opened()
            return await mock.performOperations([AsyncOperation()])
        }
        task.cancel()
        #expect(await task.value.map(text) == ["success"])
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
