import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Steps without a subclass, and operations made from others.
@Suite("Closures, map and recover", .hangGuard) struct IOBlockOperationTests {
    @Test("A closure makes the output from the input", arguments: Start.allCases) func closure(start: Start) async {
        let measure = IOBlockOperation<String, Int> { $0.count }
        measure.input = "four"
        await start(measure)
        #expect(measure.output == 4)
    }

    @Test("An `async` closure makes the output from the input", arguments: Start.allCases)
    func asyncClosure(start: Start) async {
        let measure = IOTaskOperation<String, Int> { text in
            await Task.yield()
            return text.count
        }
        measure.input = "four"
        await start(measure)
        #expect(measure.output == 4)
    }

    @Test("The error that a closure throws is the error of its operation") func throwingClosure() async {
        let sync = IOBlockOperation<Int, Int> { _ in throw TestError.first }
        let async = IOTaskOperation<Int, Int> { input in
            await Task.yield()
            throw TestError.numbered(input)
        }
        sync.input = 1
        async.input = 2
        await Start.byHand(sync)
        await Start.byHand(async)
        #expect(text(sync.error) == "first" && text(async.error) == "numbered(2)")
    }

    @Test("A missing input of a closure is an error with the name of the operation") func missingInput() async {
        let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }
        await Start.byHand(measure)
        #expect(measure.error as? IOOperationError == .missingInput(operation: "measure"))
    }

    @Test("A closure whose input is `Void` needs none") func voidInput() async {
        let answer = IOBlockOperation<Void, Int> { 42 }
        await Start.byHand(answer)
        #expect(answer.output == 42)
    }

    @Test("Cancelling an operation cancels the task of its `async` closure") func cancelsTheTask() async {
        let began = Gate()
        let sleep = IOTaskOperation<Int, Int> { _ in
            began.open()
            try await cancellation()
        }
        sleep.input = 1
        sleep.start()
        await began.opened()
        sleep.cancel()
        await #expect(throws: CancellationError.self) { try await sleep.value }
    }

    @Test("An operation with a closure is released after its end, and so is the closure") func releases() async {
        let tracker = LeakTracker()
        do {
            let (one, two) = (tracker.token("sync"), tracker.token("async"))
            let sync = tracker.track(
                IOBlockOperation<Int, Int> {
                    one.use(); return $0
                })
            let async = tracker.track(
                IOTaskOperation<Int, Int> { input in
                    await Task.yield()
                    two.use()
                    return input
                })
            sync.input = 1
            async.input = 1
            await Start.byHand(sync)
            await Start.onSuspendedQueue(async)
        }
        await tracker.expectAllReleased()
    }

    @Test("`map` makes the output from the output of its source", arguments: Start.allCases)
    func map(start: Start) async {
        let mapped = Step<Int, Int>.increment("source").map { "\($0)" }
        mapped.input = 1
        await start(mapped)
        #expect(mapped.output == "2" && mapped.error == nil)
    }

    @Test("An error passes through `map`, and an error that the closure of `map` throws is the outcome")
    func mapFailures() async {
        let failing = Step<Int, Int> { step, _ in step.finish(withError: TestError.first) }.map { $0 }
        let throwing = Step<Int, Int>.increment("source").map { _ -> Int in throw TestError.second }
        failing.input = 1
        throwing.input = 1
        await Start.byHand(failing)
        await Start.byHand(throwing)
        #expect(text(failing.error) == "first" && text(throwing.error) == "second")
    }

    @Test("`mapError` replaces the error") func mapError() async {
        let failing = Step<Int, Int> { step, _ in step.finish(withError: TestError.first) }
            .mapError { _ in TestError.second }
        failing.input = 1
        await Start.byHand(failing)
        #expect(text(failing.error) == "second")
    }

    @Test("`recover` replaces a failure with a value") func recover() async {
        let recovered = Step<Int, Int> { step, _ in step.finish(withError: TestError.first) }
            .recover { $0 as? TestError == .first ? 7 : 0 }
        recovered.input = 1
        await Start.byHand(recovered)
        #expect(recovered.output == 7 && recovered.error == nil)
    }

    @Test("A cancellation is not recovered from") func recoverFromCancellation() async {
        let log = EventLog()
        let source = Step<Int, Int> { step, _ in step.cancel() }
        let recovered = source.recover { _ in
            log.add("recover")
            return 7
        }
        recovered.input = 1
        await Start.byHand(recovered)
        #expect(recovered.error is CancellationError && log.events.isEmpty)
    }

    @Test("Cancelling a mapped operation cancels its source") func cancelsTheSource() async {
        let source = Step<Int, Int> { _, _ in }
        let began = Gate()
        let mapped = Step<Int, Int> { _, _ in began.open() }.recover { _ in 7 }.map { $0 }
        mapped.input = 1
        mapped.start()
        await began.opened()
        mapped.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await mapped.value }
        let early = source.map { $0 }
        early.input = 1
        early.cancel()
        #expect(source.isCancelled)
        await Start.byHand(early)
        #expect(source.isFinished && early.error is CancellationError)
    }

    @Test("An operation that is mapped twice runs for the first one; the second one ends with an error")
    func mappedTwice() async {
        let source = Step<Int, Int>.increment("source")
        let (first, second) = (source.map { $0 }, source.map { $0 })
        first.input = 1
        second.input = 1
        await Start.byHand(second)
        #expect(second.error as? ChainError == .alreadyUsed(operation: "source", chain: "source"))
        await Start.byHand(first)
        #expect(first.output == 2)
    }

    @Test("A mapped operation without an input ends with an error, and its source finishes")
    func mapWithoutInput() async {
        let source = Step<Int, Int>.increment("source")
        let mapped = source.map { $0 }
        await Start.byHand(mapped)
        #expect(mapped.error as? IOOperationError == .missingInput(operation: "source"))
        #expect(source.isFinished && source.isCancelled)
    }

    @Test("A mapped operation, its source and its closure are released, run or not") func releasesSources() async {
        let tracker = LeakTracker()
        for isRun in [true, false] {
            let token = tracker.token("closure")
            let source = tracker.track(Step<Int, Int>.increment("source"))
            let mapped = tracker.track(
                source.map {
                    token.use(); return $0
                }.recover { _ in 0 })
            mapped.input = 1
            if isRun { await Start.onSuspendedQueue(mapped) }
        }
        await tracker.expectAllReleased()
    }
}
