import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// An operation whose work is an `async` closure.
@Suite("TaskOperation", .hangGuard) struct TaskOperationTests {
    @Test(arguments: Start.allCases) func whatTheClosureReturnsIsTheOutput(start: Start) async throws {
        let operation = TaskOperation(name: "answer") { 42 }
        await start(operation)
        #expect(operation.name == "answer")
        #expect(operation.output == 42)
        #expect(try await operation.value == 42)
    }

    @Test(arguments: Start.allCases) func whatTheClosureThrowsIsTheError(start: Start) async {
        let operation = TaskOperation<Int> { throw TestError.first }
        await start(operation)
        #expect(text(operation.error) == "first" && operation.output == nil)
        await #expect(throws: TestError.first) { try await operation.value }
    }

    @Test func aClosureWithoutAResultSucceeds() async throws {
        let operation = TaskOperation { await Task.yield() }
        await Start.byHand(operation)
        #expect(operation.error == nil)
        try await operation.value
    }

    @Test func theOperationExecutesUntilTheClosureReturns() async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await mayEnd.opened()
        }
        operation.start()
        await begun.opened()
        #expect(operation.isExecuting && !operation.isFinished && operation.output == nil)
        mayEnd.open()
        try await operation.finished()
        #expect(operation.isFinished)
    }

    @Test func cancellingTheOperationCancelsTheTask() async throws {
        let log = EventLog()
        let (begun, never) = (Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await never.opened()
            log.add("task cancelled \(Task.isCancelled)")
            try Task.checkCancellation()
        }
        operation.start()
        await begun.opened()
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(log.events == ["task cancelled true"])
        #expect(operation.isCancelled)
    }

    @Test func aTaskThatIsCancelledFromInsideCancelsTheOperation() async throws {
        let log = EventLog()
        let operation = TaskOperation {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            log.add("task cancelled \(Task.isCancelled)")
            try Task.checkCancellation()
        }
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(log.events == ["task cancelled true"])
        #expect(operation.isCancelled)
    }

    @Test func theReasonTakesThePlaceOfTheCancellationErrorOfTheClosure() async throws {
        let (begun, never) = (Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await never.opened()
            try Task.checkCancellation()
        }
        operation.start()
        await begun.opened()
        operation.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await operation.finished() }
    }

    @Test func aClosureThatIgnoresTheCancellationHasTheLastWord() async throws {
        let (begun, never) = (Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await never.opened()
            return 1
        }
        operation.start()
        await begun.opened()
        operation.cancel(withError: TestError.reason)
        #expect(try await operation.value == 1)
        #expect(operation.isCancelled)
    }

    @Test func aCancellationErrorWithoutACancellationIsTheOutcome() async {
        let operation = TaskOperation { throw CancellationError() }
        await Start.byHand(operation)
        #expect(operation.error is CancellationError)
    }

    @Test(arguments: Start.allCases) func cancelledBeforeTheStartTheClosureDoesNotRun(start: Start) async {
        let log = EventLog()
        let operation = TaskOperation { log.add("closure") }
        await start(operation) { operation.cancel() }
        #expect(operation.error is CancellationError)
        #expect(log.events.isEmpty)
    }

    @Test func anOutcomeFromOutsideEndsTheOperationBeforeTheClosureDoes() async throws {
        let (begun, mayEnd, ended) = (Gate(), Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await mayEnd.opened()
            ended.open()
            return 1
        }
        operation.start()
        await begun.opened()
        #expect(operation.finish(with: 2))
        #expect(operation.isFinished && operation.output == 2)
        mayEnd.open()
        await ended.opened()
        #expect(operation.output == 2)
    }

    @Test(
        arguments: [
            (QualityOfService.userInteractive, TaskPriority.high), (.userInitiated, .userInitiated),
            (.default, .medium), (.utility, .utility), (.background, .background),
        ])
    func thePriorityFollowsTheQualityOfServiceAtTheStart(
        quality: QualityOfService, priority: TaskPriority
    ) async throws {
        let operation = TaskOperation { Task.currentPriority }
        operation.qualityOfService = quality
        // Read without awaiting: a caller that waits for a task lends it a higher priority.
        await onThread {
            operation.start()
            operation.waitUntilFinished()
        }
        #expect(operation.output == priority)
    }

    @Test(arguments: [false, true]) func theClosureIsReleasedWhenTheOperationFinishes(isCancelled: Bool) async {
        let tracker = LeakTracker()
        let operation = Self.holding(tracker)
        await Start.onSuspendedQueue(operation) { if isCancelled { operation.cancel() } }
        await tracker.expectAllReleased()
        #expect(operation.isFinished)
    }

    private static func holding(_ tracker: LeakTracker) -> TaskOperation<Void> {
        let token = tracker.token("closure")
        return TaskOperation { token.use() }
    }

    @Test func anOperationIsReleasedAfterItsEnd() async throws {
        let tracker = LeakTracker()
        do {
            let operation = tracker.track(TaskOperation { 1 })
            operation.start()
            #expect(try await operation.value == 1)
        }
        await tracker.expectAllReleased()
    }

    @Test func cancellingRacesWithTheStartAndTheEnd() async {
        let wrong = EventLog()
        let tracker = LeakTracker()
        let seed = SplitMix64.freshSeed()
        let operations = Shared<[TaskOperation<Int>]>([])
        await race(
            rounds: 2_000, seed: seed,
            prepare: { _ -> TaskOperation<Int> in
                let operation = TaskOperation {
                    try Task.checkCancellation()
                    return 1
                }
                operations.change { $0.append(tracker.track(operation)) }
                return operation
            },
            [{ @Sendable in $0.start() }, { @Sendable in $0.cancel(withError: TestError.reason) }], check: { _, _ in })
        for operation in operations.value {
            do {
                if try await operation.value != 1 { wrong.add("wrong output") }
            } catch {
                if !operation.isCancelled || text(error) != "reason" { wrong.add("\(text(error))") }
            }
        }
        #expect(wrong.events.isEmpty, "seed \(seed)")
        operations.value = []
        await tracker.expectAllReleased()
    }
}
