import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// An operation whose work is an `async` closure.
@Suite("TaskOperation", .hangGuard) struct TaskOperationTests {
    @Test("The output is what the closure returns", arguments: Start.allCases) func output(start: Start) async throws {
        let operation = TaskOperation(name: "answer") { 42 }
        await start(operation)
        #expect(operation.name == "answer")
        #expect(operation.output == 42)
        #expect(try await operation.value == 42)
    }

    @Test("The error is what the closure throws", arguments: Start.allCases) func throwingClosure(start: Start) async {
        let operation = TaskOperation<Int> { throw TestError.first }
        await start(operation)
        #expect(text(operation.error) == "first" && operation.output == nil)
        await #expect(throws: TestError.first) { try await operation.value }
    }

    @Test("The reason takes the place of the `CancellationError` that the closure throws") func reason() async throws {
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

    @Test("A closure that ignores the cancellation decides the outcome") func ignoredCancellation() async throws {
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

    @Test("A `CancellationError` that the closure throws without a cancellation is the outcome")
    func thrownCancellation() async {
        let operation = TaskOperation { throw CancellationError() }
        await Start.byHand(operation)
        #expect(operation.error is CancellationError)
    }

    @Test("The closure of an operation that is cancelled before its start does not run", arguments: Start.allCases)
    func cancelledBeforeTheStart(start: Start) async {
        let log = EventLog()
        let operation = TaskOperation { log.add("closure") }
        await start(operation) { operation.cancel() }
        #expect(operation.error is CancellationError)
        #expect(log.events.isEmpty)
    }

    @Test(
        "The priority of the task follows the quality of service at the start",
        arguments: [
            (QualityOfService.userInteractive, TaskPriority.high), (.userInitiated, .userInitiated),
            (.default, .medium), (.utility, .utility), (.background, .background),
        ])
    func priority(
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

    @Test("The closure is released when the operation finishes, cancelled or not", arguments: [false, true])
    func releasesClosure(isCancelled: Bool) async {
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
}
