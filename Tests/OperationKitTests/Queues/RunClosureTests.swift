import OperationKitTestSupport

@testable import OperationKit

@Suite("OperationQueue.run with a closure", .hangGuard) struct RunClosureTests {
    @TaskLocal private static var request = "none"

    /// May be used in one task, or by one actor.
    private final class Counter {
        var count = 0
    }

    @Test("A closure has the task-local values and the priority of its caller") func task() async throws {
        let queue = OperationQueue()
        queue.qualityOfService = .background
        let task = Task(priority: .high) {
            try await Self.$request.withValue("request 7") {
                let outside = unsafe withUnsafeCurrentTask { unsafe $0?.hashValue }
                let inside = try await queue.run { () -> (String, TaskPriority, Int?) in
                    await Task.yield()
                    return (Self.request, Task.currentPriority, unsafe withUnsafeCurrentTask { unsafe $0?.hashValue })
                }
                #expect(inside.0 == "request 7" && inside.1 >= .high && inside.2 == outside)
                for (request, priority) in try await queue.map(0..<3, { _ in (Self.request, Task.currentPriority) }) {
                    #expect(request == "request 7" && priority >= .high)
                }
            }
        }
        try await task.value
    }

    @Test("A closure on the main actor stays there with its objects") @MainActor func mainActor() async throws {
        let counter = Counter()
        let result = try await OperationQueue().run {
            MainActor.assertIsolated()
            counter.count += 1
            await Task.yield()
            MainActor.assertIsolated()
            return counter
        }
        #expect(result === counter && counter.count == 1)
    }

    @Test("A closure that throws gives its place back, and its operation has the error") func failure() async throws {
        let (queue, places) = (OperationQueue.serial(name: "serial"), Shared<[AsyncOperation]>([]))
        for _ in 0..<100 {
            await #expect(throws: TestError.first) {
                try await queue.run {
                    places.change { $0 += queue.operations.compactMap { $0 as? AsyncOperation } }
                    throw TestError.first
                }
            }
        }
        try await queue.allOperationsFinished()
        #expect(places.value.allSatisfy { $0.error as? TestError == .first } && places.value.count >= 100)
    }

    @Test("The operation that takes the place does not hold the queue") func queueIsNotHeld() async {
        let tracker = LeakTracker()
        let place = QueueSlot(name: nil, on: tracker.track(OperationQueue.serial(name: "uploads")))
        await tracker.expectAllReleased()
        #expect(place.displayName == "run on a queue")
    }

    @Test("Nothing is left of a closure that runs, fails or is cancelled before") func release() async throws {
        let tracker = LeakTracker()
        do {
            let queue = tracker.track(OperationQueue())
            for isFailing in [false, true] {
                try? await queue.run { [token = tracker.token("closure")] in
                    token.use()
                    for operation in queue.operations { tracker.track(operation) }
                    if isFailing { throw TestError.first }
                }
            }
            queue.isSuspended = true
            let task = Task { [token = tracker.token("cancelled closure")] in try await queue.run { token.use() } }
            await eventually("it does not wait") { queue.operationCount == 1 }
            for operation in queue.operations { tracker.track(operation) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            queue.isSuspended = false
        }
        await tracker.expectAllReleased()
    }

    @Test("What ends its operation before its turn is thrown", arguments: [nil, TestError.reason], [false, true])
    func beforeTheTurn(error: TestError?, isFinished: Bool) async throws {
        let (log, queue) = (EventLog(), OperationQueue.suspended())
        let task = Task { try await queue.run(name: "waiting") { log.add("closure") } }
        await eventually("it does not wait") { queue.operationCount == 1 }
        let place = try #require(queue.operations.first as? AsyncOperation)
        if isFinished {
            place.finish(withError: error)
            queue.isSuspended = false
        } else if let error {
            place.cancel(withError: error)
        } else {
            queue.cancelAllOperations()
        }
        let expected = error.map(text) ?? "cancelled"
        #expect(await text(task.result.failure) == expected && !task.isCancelled)
        queue.isSuspended = false
        try? await place.finished()
        #expect(text(place.error) == (isFinished ? text(error) : expected) && log.events.isEmpty)
    }

    @Test("The operation that has the place ends at its turn if the task is cancelled, after a barrier before it")
    func cancelledBehindABarrier() async throws {
        let (queue, work) = (OperationQueue(), HeldWork())
        queue.addOperation { work() }
        queue.addBarrierBlock {}
        let task = Task { try await queue.run { 1 } }
        await eventually("it does not wait") { queue.operations.last is QueueSlot }
        weak let place = queue.operations.last
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(place?.isFinished == false)
        work.mayEnd.open()
        try await queue.allOperationsFinished()
        #expect(try await queue.run { 2 } == 2)
    }

    @Test("Calling `main()` of the operation that has the place does nothing") func mainByHand() async throws {
        let (queue, place) = (OperationQueue.suspended(), Shared<Operation?>(nil))
        async let answer = queue.run { () -> Int in
            place.value?.main()
            return 1
        }
        await eventually("it does not wait") { queue.operationCount == 1 }
        place.value = queue.operations.first
        place.value?.main()
        queue.isSuspended = false
        #expect(try await answer == 1)
        try await queue.allOperationsFinished()
        place.value?.main()
    }

    @Test("A closure keeps its place, although its operation is given an outcome", arguments: [nil, TestError.second])
    func finishedDuringTheClosure(given: TestError?) async throws {
        let (log, queue) = (EventLog(), OperationQueue.serial(name: "serial"))
        let (next, place) = (ScriptedOperation.logged(log), Shared<AsyncOperation?>(nil))
        let result = try await queue.run(name: "closure") {
            let operation = try #require(queue.operations.first as? AsyncOperation)
            place.value = operation
            queue.addOperation(next)
            operation.cancel()
            #expect(operation.finish(withError: given))
            #expect(!operation.finish(withError: TestError.first))
            #expect(operation.isExecuting && !operation.isFinished && operation.error == nil && !Task.isCancelled)
            await Task.yield()
            #expect(queue.operations.map(\.isExecuting) == [true, false])
            #expect(queue.operations.map(\.name) == ["closure", nil])
            log.add("closure ends")
            return 1
        }
        #expect(result == 1)
        try await next.finished()
        #expect(log.events == ["closure ends", "main", "asyncCompletionBlock success"])
        #expect(place.value?.isFinished == true && place.value?.error as? TestError == given)
        await #expect(throws: TestError.first) {
            try await queue.run {
                (queue.operations.first as? AsyncOperation)?.finish()
                throw TestError.first
            }
        }
        try await queue.allOperationsFinished()
    }

    @Test("In a task that was cancelled before, nothing is put on the queue") func taskCancelledBefore() async {
        let queue = OperationQueue.suspended()
        await #expect(throws: CancellationError.self) { try await inCancelledTask { try await queue.run {} } }
        #expect(queue.operationCount == 0)
    }
}
