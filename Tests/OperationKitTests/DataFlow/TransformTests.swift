import OperationKitTestSupport

/// What operations made by `map` and its like do with their sources.
@Suite("Transforming operations", .hangGuard) struct TransformTests {
    private static let failing: @Sendable () -> Step<Int, Int> = {
        Step { step, _ in step.finish(withError: TestError.first) }
    }

    private static let failures: [(make: @Sendable () -> IOOperation<Int, Int>, outcome: String)] = [
        ({ failing().map { $0 } }, "first"),
        ({ Step.increment("source").map { _ -> Int in throw TestError.second } }, "second"),
        ({ failing().mapError { _ in TestError.second } }, "second"),
        ({ failing().recover { $0 as? TestError == .first ? 7 : 0 } }, "7"),
        ({ failing().recover { _ in throw TestError.second } }, "second"),
        ({ failing().recoverRun { _ -> TaskOperation<Int> in throw TestError.second } }, "second"),
    ]

    @Test(
        "An error passes through `map`, is replaced by `mapError` or `recover`, and one that a closure throws stands",
        arguments: failures.indices)
    func failure(index: Int) async {
        let operation = Self.failures[index].make().with(input: 1)
        await Start.byHand(operation)
        #expect((operation.output.map { "\($0)" } ?? text(operation.error)) == Self.failures[index].outcome)
    }

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
}
