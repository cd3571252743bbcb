import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The first finish wins, and a finish before the start is remembered.
@Suite("Finishing", .hangGuard) struct FinishTests {
    @Test(arguments: Start.allCases) func finishingInMainTakesEffectAtOnce(start: Start) async {
        let log = EventLog()
        let returned = Gate()
        let operation = ScriptedOperation.logged(log) {
            log.add("accepted \($0.finish(withError: TestError.first))")
            log.add("finished \($0.isFinished)")
            returned.open()
        }
        await start(operation)
        // Code that waits for the end may go on before `main()` returns.
        await returned.opened()
        #expect(
            log.events == ["main", "asyncCompletionBlock first", "accepted true", "finished true"])
        #expect(text(operation.error) == "first")
    }

    @Test(arguments: Start.allCases) func finishingLaterEndsTheOperation(start: Start) async throws {
        let begun = Gate()
        let operation = ScriptedOperation(main: { _ in begun.open() })
        async let ended: Void = start(operation)
        await begun.opened()
        #expect(operation.isExecuting)
        #expect(operation.error == nil)
        #expect(operation.finish())
        await ended
        #expect(operation.isFinished && !operation.isExecuting && operation.error == nil)
    }

    @Test func finishingTwiceKeepsTheFirstOutcome() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) { _ in }
        await onThread { operation.start() }
        #expect(operation.finish(withError: TestError.first))
        #expect(!operation.finish(withError: TestError.second))
        #expect(!operation.finish())
        #expect(text(operation.error) == "first")
        #expect(log.events == ["main", "asyncCompletionBlock first"])
    }

    @Test func successIsAnOutcomeThatALaterErrorDoesNotReplace() async {
        let operation = ScriptedOperation.idle()
        await onThread { operation.start() }
        #expect(operation.finish())
        #expect(!operation.finish(withError: TestError.first))
        #expect(operation.error == nil)
    }

    @Test func finishingInItsOwnCompletionIsRejected() async {
        let log = EventLog()
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { [unowned operation] error in
            log.add("\(text(error)), again \(operation.finish(withError: TestError.second))")
        }
        await onThread { operation.start() }
        #expect(log.events == ["success, again false"])
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test func ofManyThreadsThatFinishOneWins() async {
        let operation = ScriptedOperation.idle()
        let accepted = Shared<[Int]>([])
        let completions = EventLog()
        operation.asyncCompletionBlock = { completions.add(text($0)) }
        await onThread { operation.start() }
        await atOnce(
            (0..<16).map { number in
                { if operation.finish(withError: TestError.numbered(number)) { accepted.change { $0.append(number) } } }
            })
        #expect(accepted.value.count == 1)
        #expect(completions.events == accepted.value.map { "\(TestError.numbered($0))" })
        #expect(text(operation.error) == completions.events.first)
    }

    @Test(arguments: Start.allCases, [TestError?.none, .first])
    func aFinishBeforeTheStartIsRemembered(start: Start, error: TestError?) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            log.add("accepted \(operation.finish(withError: error))")
            log.add("finished \(operation.isFinished), again \(operation.finish(withError: TestError.second))")
        }
        #expect(
            log.events == ["accepted true", "finished false, again false", "asyncCompletionBlock \(text(error))"])
        #expect(operation.isFinished && !operation.isExecuting && !operation.isCancelled)
        #expect(text(operation.error) == text(error))
    }

    @Test(arguments: Start.allCases) func anOutcomeBeforeACancellationWins(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            operation.finish(withError: TestError.first)
            operation.cancel()
        }
        #expect(log.events == ["asyncCompletionBlock first"])
        #expect(operation.isCancelled)
    }

    @Test(arguments: Start.allCases) func aSuccessAfterACancellationWins(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            operation.cancel()
            log.add("accepted \(operation.finish())")
        }
        #expect(log.events == ["accepted true", "asyncCompletionBlock success"])
        #expect(operation.isCancelled && operation.error == nil)
    }

    @Test func theErrorCannotBeReadBeforeTheOutcomeStands() {
        let operation = ScriptedOperation.idle()
        operation.finish(withError: TestError.first)
        #expect(operation.error == nil)
        operation.start()
        #expect(text(operation.error) == "first")
    }

    @Test func startingTwiceRunsMainOnce() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) { _ in }
        await onThread {
            operation.start()
            operation.start()
            operation.finish()
            operation.start()
        }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test func startingInMainDoesNothing() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) {
            $0.start()
            $0.finish()
        }
        await onThread { operation.start() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test func withoutAnOverrideTheOperationSucceeds() async throws {
        let operation = AsyncOperation()
        await Start.onSuspendedQueue(operation)
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test(arguments: Start.allCases) func theOutcomeCanBeReadFromAnyThreadAfterwards(start: Start) async {
        let operation = ScriptedOperation(main: { $0.finish(withError: TestError.first) })
        await start(operation)
        let log = EventLog()
        await atOnce(Array(repeating: { log.add(text(operation.error)) }, count: 4))
        #expect(log.events == Array(repeating: "first", count: 4))
    }
}
