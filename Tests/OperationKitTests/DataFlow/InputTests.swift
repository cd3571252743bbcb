import OperationKitTestSupport

/// How operations that are made of others, or make others, get their input.
@Suite("Inputs of composites", .hangGuard) struct InputTests {
    private static func count() -> IOBlockOperation<String, Int> { IOBlockOperation(name: "count") { $0.count } }
    private static let attempt: @Sendable (Int) -> IOOperation<String, Int> = { _ in count() }

    private static let takingInput: [@Sendable () -> IOOperation<String, Int>] = [
        { count() }, { IOTaskOperation(name: "count") { $0.count } }, { MacroOperation(count()).named("count") },
        { MacroOperation(count()).then(IOBlockOperation { $0 }).named("count") },
        { Waterfall<String, String>(name: "count").then { $0.count } }, { count().map { $0 } },
        { count().mapError { $0 } }, { count().recover { _ in 0 } },
        { count().recoverRun { _ in TaskOperation { 0 } } },
        { WorkflowOperation(name: "count") { (text: String, _) in text.count } },
        { RetryOperation(RetryPolicy(maximumAttempts: 1), name: "count", makeOperation: attempt) },
        { RepeatOperation(every: .seconds(1), maximumCount: 1, name: "count", makeOperation: attempt) },
        { HedgedOperation(after: .seconds(100), name: "count", makeOperation: attempt) },
    ]

    @Test("A composite takes an input, and a missing one is an error with its name", arguments: takingInput.indices)
    func inputs(index: Int) async throws {
        #expect(try await OperationQueue().run(Self.takingInput[index]().with(input: "four")) == 4)
        let operation = Self.takingInput[index]()
        await Start.byHand(operation)
        #expect(operation.error as? IOOperationError == .missingInput(operation: "count") && operation.output == nil)
    }

    private static func increment(_ input: Int) -> IOOperation<Int, Int> { Step.increment("source").with(input: input) }

    /// Operations that need no input: they have one, from the beginning or given, or each of their attempts has one. With
    /// their outputs if they are given 5.
    private static let complete: [(make: @Sendable () -> IOOperation<Int, Int>, output: Int)] = [
        (
            {
                let step = Step<Int, Int>.increment("source")
                step.defaultInput = 1
                return step
            }, 6
        ),
        ({ increment(1) }, 6), ({ RetryOperation { increment($0) } }, 2),
        ({ RepeatOperation(every: .seconds(1), maximumCount: 1) { increment($0) } }, 2),
        ({ HedgedOperation(after: .seconds(100)) { increment($0) } }, 2),
    ]

    private static let wraps: [@Sendable (IOOperation<Int, Int>) -> IOOperation<Int, Int>] = [
        { $0 }, { $0.map { $0 } }, { $0.mapError { $0 } }, { $0.recover { _ in 0 } },
        { $0.map { $0 }.recoverRun { _ in TaskOperation { 0 } } }, { MacroOperation($0) },
        { MacroOperation($0).then(Step.increment("next")).map { $0 - 1 } },
    ]

    @Test(
        "What is made of an operation that needs no input needs none, and hands on what it is given",
        arguments: wraps.indices)
    func noneNeeded(index: Int) async throws {
        let (wrap, queue) = (Self.wraps[index], OperationQueue())
        for (make, output) in Self.complete {
            for start in Start.allCases {
                let operation = wrap(make())
                operation.require(ExclusiveAccess("database"))
                await start(operation)
                #expect(operation.output == 2)
            }
            #expect(try await queue.run(wrap(make()).with(input: 5)) == output)
        }
        #expect(try await queue.run(wrap(RetryOperation { _ in Step.increment("source") }).with(input: 5)) == 6)
    }

    @Test("An attempt without an input is a failed attempt") func attemptWithoutInput() async throws {
        let retry = RetryOperation(RetryPolicy(backoff: .none), name: "page") { number -> IOOperation<String, Int> in
            let attempt = IOBlockOperation<String, Int> { $0.count }
            return number == 1 ? attempt : attempt.with(input: "xx")
        }
        #expect(try await OperationQueue().run(retry) == 2)
        #expect(retry.attempts[0].error as? IOOperationError == .missingInput(operation: "page, attempt 1"))
    }
}

extension IOOperation {
    fileprivate func named(_ name: String) -> IOOperation {
        self.name = name
        return self
    }
}
