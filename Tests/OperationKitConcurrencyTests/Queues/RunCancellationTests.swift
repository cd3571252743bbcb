import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// `OperationQueue.run` when the awaiting task is cancelled: it owns the operation, cancels it, and still waits for its
/// end.
@Suite("OperationQueue.run, cancelled", .hangGuard) struct RunCancellationTests {
    /// Runs an operation in a task, cancels the task once the work has begun, and lets the work end only after that.
    private func cancel(
        _ operation: Operation, begun: Gate, mayEnd: Gate, log: EventLog
    ) async -> Result<Void, any Error> {
        let task = Task {
            defer { log.add("run returned, finished \(operation.isFinished)") }
            try await OperationQueue().run(operation)
        }
        await begun.opened()
        task.cancel()
        await eventually("the operation was not cancelled") { operation.isCancelled }
        log.add("cancelled \(operation.isCancelled), finished \(operation.isFinished)")
        mayEnd.open()
        return await task.result
    }

    private let expected = ["cancelled true, finished false", "work ends", "run returned, finished true"]

    @Test("`run` returns only after the work has ended")
    func work() async {
        let (begun, mayEnd, log) = (Gate(), Gate(), EventLog())
        let operation = ScriptedOperation(main: { operation in
            Thread {
                begun.open()
                mayEnd.pass()
                log.add("work ends")
                operation.finish(withError: CancellationError())
            }.start()
        })
        let result = await cancel(operation, begun: begun, mayEnd: mayEnd, log: log)
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(log.events == expected)
    }

    @Test("`run` returns only after a plain operation has ended")
    func plainOperation() async {
        let (begun, mayEnd, log) = (Gate(), Gate(), EventLog())
        let operation = BlockOperation {
            begun.open()
            mayEnd.pass()
            log.add("work ends")
        }
        let result = await cancel(operation, begun: begun, mayEnd: mayEnd, log: log)
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(log.events == expected)
    }

    @Test("`run` returns only after a throwing block has ended")
    func throwingBlock() async {
        let (begun, mayEnd, log) = (Gate(), Gate(), EventLog())
        let operation = ThrowingBlockOperation {
            begun.open()
            mayEnd.pass()
            log.add("work ends")
            throw TestError.first
        }
        let result = await cancel(operation, begun: begun, mayEnd: mayEnd, log: log)
        #expect(throws: TestError.first) { try result.get() }
        #expect(log.events == expected)
    }

    @Test("The outcome of work that goes on stands")
    func outcome() async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let task = Task {
            try await OperationQueue().run(
                AsyncBlockOperation { finish in
                    Thread {
                        begun.open()
                        mayEnd.pass()
                        finish(nil)
                    }.start()
                })
        }
        await begun.opened()
        task.cancel()
        mayEnd.open()
        try await task.value
    }

    @Test("A closure is cancelled and waited for")
    func closure() async throws {
        let (begun, never, log) = (Gate(), Gate(), EventLog())
        let task = Task {
            try await OperationQueue().run {
                begun.open()
                await never.opened()
                log.add("cancelled \(Task.isCancelled)")
                return 1
            }
        }
        await begun.opened()
        task.cancel()
        // The closure returns all the same: its output stands.
        #expect(try await task.value == 1)
        #expect(log.events == ["cancelled true"])
    }

    @Test("A typed operation that stops throws")
    func typedOperation() async {
        let (begun, never) = (Gate(), Gate())
        let task = Task {
            try await OperationQueue().run {
                begun.open()
                await never.opened()
                try Task.checkCancellation()
            }
        }
        await begun.opened()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
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
        let log = EventLog()
        let queue = OperationQueue()
        queue.isSuspended = true
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
        let queue = OperationQueue()
        queue.isSuspended = true
        let operation = ScriptedOperation()
        let task = Task { try await queue.run(operation) }
        await operation.becomesAwaited()
        operation.cancel(withError: TestError.first)
        task.cancel()
        await #expect(throws: TestError.first) { try await task.value }
        queue.isSuspended = false
    }

    @Test("A plain operation on a suspended queue is waited for until the queue is resumed")
    func plainOperationOnSuspendedQueue() async {
        let log = EventLog()
        let queue = OperationQueue()
        queue.isSuspended = true
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

    enum Kind: CaseIterable {
        case asynchronous, throwing, plain

        func make() -> Operation {
            switch self {
            case .asynchronous: ScriptedOperation()
            case .throwing: ThrowingBlockOperation {}
            case .plain: BlockOperation {}
            }
        }
    }

    @Test("An operation that is cancelled while it is added ends", arguments: Kind.allCases)
    func cancelledDuringTheAddition(kind: Kind) async {
        let seed = SplitMix64.freshSeed()
        let unfinished = Shared(0)
        let tracker = LeakTracker()
        let queue = OperationQueue()
        await race(
            rounds: 3_000, seed: seed, prepare: { _ in tracker.track(kind.make()) },
            [
                { @Sendable operation in
                    queue.addOperation(operation)
                    operation.waitUntilFinished()
                },
                { @Sendable in $0.cancel() },
            ],
            check: { operation, _ in if !operation.isFinished { unfinished.change { $0 += 1 } } })
        #expect(unfinished.value == 0, "seed \(seed)")
        await tracker.expectAllReleased()
    }

    @Test("A task that was cancelled before never starts the work")
    func taskCancelledBefore() async {
        let log = EventLog()
        let queue = OperationQueue()
        for _ in 0..<500 {
            let never = Gate()
            let task = Task {
                while !Task.isCancelled { await never.opened() }
                try await queue.run(ScriptedOperation.logged(log))
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        await eventually("\(log.events.count) operations have finished") { log.events.count == 500 }
        #expect(Set(log.events) == ["asyncCompletionBlock cancelled"])
    }

    @Test("Cancelling the task may meet the run anywhere")
    func races() async {
        let queue = OperationQueue()
        let tracker = LeakTracker()
        for _ in 0..<2_000 {
            let operation = tracker.track(ScriptedOperation())
            let task = Task { try await queue.run(operation) }
            await Task.yield()
            task.cancel()
            let result = await task.result
            if case .failure(let error) = result { #expect(error is CancellationError && operation.isCancelled) }
        }
        await tracker.expectAllReleased()
    }

    @Test("Cancelling the task may meet the run of a throwing block anywhere")
    func throwingBlockRaces() async {
        let queue = OperationQueue()
        let tracker = LeakTracker()
        for _ in 0..<2_000 {
            let hasRun = Shared(false)
            let operation = tracker.track(ThrowingBlockOperation { hasRun.value = true })
            let task = Task { try await queue.run(operation) }
            await Task.yield()
            task.cancel()
            // Success means that the block has run, a cancellation that it has not.
            switch await task.result {
            case .success: #expect(hasRun.value)
            case .failure(let error): #expect(!hasRun.value && error is CancellationError)
            }
        }
        await tracker.expectAllReleased()
    }
}
