import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// What operations made by `map` and its like do with their sources.
@Suite("Transforming operations", .hangGuard) struct TransformTests {
    @Test(
        "A transform is not called for the result of an operation that belongs to another one",
        arguments: [false, true])
    func aSourceOfAnother(hasFailed: Bool) async throws {
        let log = EventLog()
        let source = Step<Int, Int>("source") { step, input in
            if hasFailed { step.finish(withError: TestError.first) } else { step.finish(with: input) }
        }
        let owner = source.map { $0 }.with(input: 0)
        let mapped = source.map { value in
            log.add("map")
            return value
        }
        let recovered = source.recover { _ in
            log.add("recover")
            return 0
        }
        let recoveredByAnother = source.recoverRun { _ in
            log.add("recoverRun")
            return TaskOperation { 0 }
        }
        await Start.byHand(owner)
        for operation in [mapped, recovered, recoveredByAnother] {
            await Start.byHand(operation.with(input: 0))
            #expect(
                operation.error as? ChainError == .alreadyUsed(operation: "source", chain: "source"))
        }
        #expect(log.events.isEmpty)
        // It belongs to that one as long as that lives.
        withExtendedLifetime(owner) {}
    }

    @Test("A transforming operation that has ended holds neither its source nor that one's output")
    func theSourceIsReleased() async throws {
        for isCancelled in [false, true] {
            let tracker = LeakTracker()
            let transformed = {
                let source = tracker.track(
                    Step<Int, LeakTracker.Token>("source") { step, _ in step.finish(with: tracker.token("output")) },
                    "source")
                return source.map { _ in 1 }.mapError { $0 }.with(input: 0)
            }()
            if isCancelled { transformed.cancel() }
            await Start.byHand(transformed)
            await tracker.expectAllReleased()
            #expect(transformed.output == (isCancelled ? nil : 1))
        }
    }

    @Test("The input that an operation has when it is transformed or becomes a macro is that of the new operation")
    func inputGivenBefore() async throws {
        let make = { Step<Int, Int>.increment("source").with(input: 1) }
        let transformed: [IOOperation<Int, Int>] = [
            make().map { $0 }, make().mapError { $0 }, make().recover { _ in 0 },
            make().recoverRun { _ in TaskOperation { 0 } }, make().map { $0 }.map { $0 }, MacroOperation(make()),
            MacroOperation(make()).then(Step.increment("next")).map { $0 - 1 },
        ]
        for operation in transformed { #expect(try await OperationQueue().run(operation) == 2) }
        #expect(try await OperationQueue().run(make().map { $0 }.with(input: 5)) == 6)
    }

    @Test("A long chain of transforming operations that was never run is freed without recursion")
    func longChain() async {
        await onThread(stackSize: workerStackSize) {
            let count = TestExtent.choose(2_000, long: 100_000)
            var mapped: IOOperation<Int, Int> = Step.increment("mapped")
            for _ in 0..<count { mapped = mapped.map { $0 } }
            var recovered: IOOperation<Int, Int> = Step.increment("recovered")
            for _ in 0..<count { recovered = recovered.recoverRun { _ in TaskOperation { 1 } } }
            var gathered: IOOperation<Void, Int> = TaskOperation { 1 }
            for _ in 0..<count { gathered = [gathered].gathered().map { $0[0] } }
            #expect(chain(of: (0..<10_000).map { Step<Int, Int>.increment("\($0)") }).input == nil)
        }
    }
}

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
}
