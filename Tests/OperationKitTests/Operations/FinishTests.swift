import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The first finish wins, and a finish before the start is remembered.
@Suite("Finishing", .hangGuard) struct FinishTests {
    @Test("`finish` in `main()` ends the operation before it returns", arguments: Start.allCases)
    func inMain(start: Start) async {
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

    @Test("An operation executes until `finish` is called, on whatever thread", arguments: Start.allCases)
    func later(start: Start) async throws {
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

    @Test("Finishing twice keeps the first outcome") func keepsFirstOutcome() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) { _ in }
        await onThread { operation.start() }
        #expect(operation.finish(withError: TestError.first))
        #expect(!operation.finish(withError: TestError.second))
        #expect(!operation.finish())
        #expect(text(operation.error) == "first")
        #expect(log.events == ["main", "asyncCompletionBlock first"])
    }

    @Test("A success is an outcome that a later error does not replace") func keepsSuccess() async {
        let operation = ScriptedOperation.idle()
        await onThread { operation.start() }
        #expect(operation.finish())
        #expect(!operation.finish(withError: TestError.first))
        #expect(operation.error == nil)
    }

    @Test("`finish` in the operation's own `asyncCompletionBlock` is rejected") func inAsyncCompletionBlock() async {
        let log = EventLog()
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { [unowned operation] error in
            log.add("\(text(error)), again \(operation.finish(withError: TestError.second))")
        }
        await onThread { operation.start() }
        #expect(log.events == ["success, again false"])
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test("Of many threads that finish an operation, exactly one gets `true`, and its outcome stands")
    func fromManyThreads() async {
        let operation = ScriptedOperation.idle()
        let accepted = Shared<[Int]>([])
        let completions = EventLog()
        operation.asyncCompletionBlock = { completions.add(text($0)) }
        await onThread { operation.start() }
        await concurrently(
            (0..<16).map { number in
                { if operation.finish(withError: TestError.numbered(number)) { accepted.change { $0.append(number) } } }
            })
        #expect(accepted.value.count == 1)
        #expect(completions.events == accepted.value.map { "\(TestError.numbered($0))" })
        #expect(text(operation.error) == completions.events.first)
    }

    @Test(
        "An outcome that is given before the start is remembered, and ends the operation without `main()`",
        arguments: Start.allCases, [TestError?.none, .first])
    func beforeStart(start: Start, error: TestError?) async {
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

    @Test("An outcome that is given before a cancellation stands", arguments: Start.allCases)
    func beforeCancellation(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            operation.finish(withError: TestError.first)
            operation.cancel()
        }
        #expect(log.events == ["asyncCompletionBlock first"])
        #expect(operation.isCancelled)
    }

    @Test("A success that is given after a cancellation stands", arguments: Start.allCases)
    func afterCancellation(start: Start) async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await start(operation) {
            operation.cancel()
            log.add("accepted \(operation.finish())")
        }
        #expect(log.events == ["accepted true", "asyncCompletionBlock success"])
        #expect(operation.isCancelled && operation.error == nil)
    }

    @Test("An error that is given before the start can be read after it, not before") func errorBeforeStart() {
        let operation = ScriptedOperation.idle()
        operation.finish(withError: TestError.first)
        #expect(operation.error == nil)
        operation.start()
        #expect(text(operation.error) == "first")
    }

    @Test("An operation that is started repeatedly calls `main()` once") func startsOnce() async {
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

    @Test("Starting an operation in its own `main()` does nothing") func startInMain() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) {
            $0.start()
            $0.finish()
        }
        await onThread { operation.start() }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test("The default implementation of `main()` finishes the operation successfully", arguments: Start.allCases)
    func defaultMain(start: Start) async {
        let operation = AsyncOperation()
        await start(operation)
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test("The outcome can be read from any thread after the end", arguments: Start.allCases)
    func readFromAnyThread(start: Start) async {
        let operation = ScriptedOperation(main: { $0.finish(withError: TestError.first) })
        await start(operation)
        let log = EventLog()
        await concurrently(Array(repeating: { log.add(text(operation.error)) }, count: 4))
        #expect(log.events == Array(repeating: "first", count: 4))
    }
}
