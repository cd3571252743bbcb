import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// A cancellation is Foundation's, and when cancelled before the start, nothing runs.
@Suite("Cancelling before the start and after the end", .hangGuard) struct CancelTests {
    @Test(
        "An operation that is cancelled before its start ends with `CancellationError`, without `main()`",
        arguments: Start.allCases)
    func cancelledBeforeStart(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            operation.cancel()
            log.add("cancelled \(operation.isCancelled), finished \(operation.isFinished)")
        }
        #expect(log.events == ["cancelled true, finished false", "asyncCompletionBlock cancelled"])
        #expect(operation.isFinished && operation.isCancelled)
        #expect(operation.error is CancellationError)
    }

    @Test("An operation that is cancelled before its start never reads as executing", arguments: Start.allCases)
    func neverExecutes(start: Start) async {
        final class Watching: Operation, @unchecked Sendable {
            let watched: AsyncOperation
            let hasSeenExecution = Shared(false)
            init(_ watched: AsyncOperation) {
                self.watched = watched
                super.init()
                addDependency(watched)
            }
            override var isReady: Bool {
                if watched.isExecuting { hasSeenExecution.value = true }
                return super.isReady
            }
        }
        let operation = ScriptedOperation()
        let inCompletion = Shared(true)
        operation.asyncCompletionBlock = { [unowned operation] _ in inCompletion.value = operation.isExecuting }
        let watching = Watching(operation)
        await start(operation) { operation.cancel() }
        #expect(!inCompletion.value)
        #expect(!watching.hasSeenExecution.value)
    }

    @Test("The reason of a cancellation before the start is the outcome", arguments: Start.allCases)
    func reasonIsOutcome(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) { operation.cancel(withError: TestError.reason) }
        #expect(log.events == ["asyncCompletionBlock reason"])
        #expect(operation.isCancelled)
    }

    @Test("Only the first cancellation counts, and whether it has a reason", arguments: Start.allCases)
    func firstCancellationCounts(start: Start) async {
        let (plainFirst, reasonFirst) = (ScriptedOperation(), ScriptedOperation())
        await start(plainFirst) {
            plainFirst.cancel()
            plainFirst.cancel(withError: TestError.reason)
        }
        await start(reasonFirst) {
            reasonFirst.cancel(withError: TestError.reason)
            reasonFirst.cancel()
            reasonFirst.cancel(withError: TestError.second)
        }
        #expect(text(plainFirst.error) == "cancelled")
        #expect(text(reasonFirst.error) == "reason")
    }

    @Test("All operations of a suspended queue that are cancelled by it end when it is resumed")
    func cancelledByQueue() async {
        let log = EventLog()
        let operations = (0..<50).map { _ in ScriptedOperation.logged(log) }
        await onThread {
            let queue = OperationQueue()
            queue.isSuspended = true
            queue.addOperations(operations, waitUntilFinished: false)
            queue.cancelAllOperations()
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
        }
        #expect(log.events == Array(repeating: "asyncCompletionBlock cancelled", count: 50))
    }

    @Test("A cancelled operation on a queue ends without waiting for its dependencies")
    func unfinishedDependency() async {
        let log = EventLog()
        let first = ScriptedOperation.idle()
        let second = ScriptedOperation.logged(log)
        second.addDependency(first)
        await onThread {
            let queue = OperationQueue()
            queue.addOperation(second)
            second.cancel()
            // Foundation does not hold back a cancelled operation for its dependencies.
            second.waitUntilFinished()
            log.add("first finished \(first.isFinished)")
            first.start()
            first.finish()
        }
        #expect(log.events == ["asyncCompletionBlock cancelled", "first finished false"])
    }

    @Test("A cancellation in `asyncCompletionBlock` has no effect") func inAsyncCompletionBlock() async {
        let log = EventLog()
        let operation = ScriptedOperation(didCancel: { _ in log.add("didCancel") })
        operation.asyncCompletionBlock = { [unowned operation] error in
            operation.cancel(withError: TestError.reason)
            log.add("\(text(error)), cancelled \(operation.isCancelled)")
        }
        await onThread { operation.start() }
        #expect(log.events == ["success, cancelled false"])
        #expect(!operation.isCancelled && operation.error == nil)
    }

    @Test("A cancellation in `completionBlock` has no effect") func inCompletionBlock() async {
        let log = EventLog()
        let called = Gate()
        let operation = ScriptedOperation()
        operation.completionBlock = {
            operation.cancel()
            log.add("cancelled \(operation.isCancelled)")
            called.open()
        }
        await onThread { operation.start() }
        await called.opened()
        #expect(log.events == ["cancelled false"])
    }

    @Test("A cancellation after the end has no effect") func afterEnd() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await onThread {
            operation.start()
            operation.cancel()
            operation.cancel(withError: TestError.reason)
        }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(!operation.isCancelled && operation.error == nil)
    }
}
