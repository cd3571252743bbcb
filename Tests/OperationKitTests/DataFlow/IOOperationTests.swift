import OperationKitTestSupport

@Suite("IOOperation", .hangGuard) struct IOOperationTests {
    private static func measure() -> Step<String, Int> { Step { $0.finish(with: $1.count) } }

    private static func withoutOutput<Output>(_ type: Output.Type) -> Step<Int, Output> {
        Step { step, _ in step.finish(withError: nil) }.with(input: 1)
    }

    /// Operations that miss something, and what.
    private static let missing: [(make: @Sendable () -> AsyncOperation, error: IOOperationError)] = [
        ({ measure() }, .missingInput(operation: "step")),
        ({ Step<Int?, Int> { $0.finish(with: $1 ?? 0) } }, .missingInput(operation: "step")),
        ({ Step<any Sendable, Int> { step, _ in step.finish(with: 1) } }, .missingInput(operation: "step")),
        ({ withoutOutput(Int.self) }, .missingOutput(operation: "step")),
        ({ withoutOutput(Int?.self) }, .missingOutput(operation: "step")),
        // `main(input:)` is not overridden.
        ({ IOOperation<Int, Int>().with(input: 1) }, .missingOutput(operation: "step")),
    ]

    @Test("A missing input or output is an error with the operation's name", arguments: missing.indices, Start.allCases)
    func missingValue(index: Int, start: Start) async {
        let operation = Self.missing[index].make()
        operation.name = "step"
        await start(operation)
        #expect(operation.error as? IOOperationError == Self.missing[index].error)
        if let measure = operation as? Step<String, Int> {
            #expect(throws: IOOperationError.self) { try measure.result?.get() }
            await #expect(throws: IOOperationError.self) { try await measure.value }
            #expect(measure.output == nil)
        }
    }

    @Test("`Void` needs neither an input nor an output, and an optional one may be `nil`", arguments: Start.allCases)
    func void(start: Start) async throws {
        let step = Step<Void, Void> { step, _ in step.finish() }
        let input = Step<Int?, String> { $0.finish(with: "\(String(describing: $1))") }.with(input: nil)
        let output = Step<Int, Int?> { step, _ in step.finish(with: nil) }.with(input: 1)
        for operation in [step, input, output] as [AsyncOperation] {
            await start(operation)
            #expect(operation.error == nil)
        }
        #expect(step.output != nil && input.output == "nil" && output.output == .some(.none))
        try await step.value
        #expect(try await output.value == nil)
    }

    @Test("The input that is set last before the start counts") func lastInput() async {
        let operation = Step<Int, Int> { step, input in
            step.input = 3
            step.finish(with: input)
        }
        for input in [1, 2] { operation.input = input }
        #expect(operation.input == 2)
        await Start.byHand(operation)
        #expect(operation.output == 2)
    }

    @Test("The first `finish` decides, and sets the result", arguments: [false, true])
    func firstFinish(fails: Bool) async {
        let answers = EventLog()
        let step = Step<Int, Int> { step, _ in
            answers.add("\(fails ? step.finish(withError: TestError.second) : step.finish(with: 1))")
            answers.add("\(step.finish(with: 2))")
            answers.add("\(step.finish(withError: TestError.first))")
        }
        #expect(step.result == nil)
        await Start.byHand(step.with(input: 0))
        #expect(answers.events == ["true", "false", "false"])
        #expect(step.output == (fails ? nil : 1) && text(step.error) == (fails ? "second" : "success"))
        #expect((try? step.result?.get()) == step.output)
    }

    @Test("Ended before its start, it does no work and misses no input", arguments: Start.allCases, [false, true])
    func endedBeforeTheStart(start: Start, isCancelled: Bool) async {
        let log = EventLog()
        let step = Step<Int, Int> { _, _ in log.add("main") }
        await start(step) {
            if isCancelled { return step.cancel(withError: TestError.reason) }
            log.add("\(step.finish(with: 1)), \(step.output == nil)")
        }
        #expect(log.events == (isCancelled ? [] : ["true, true"]) && step.output == (isCancelled ? nil : 1))
        #expect(await text(Task { try await step.value }.result.failure) == (isCancelled ? "reason" : "success"))
    }

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

    @Test("What is made of an operation that needs no input needs none, and hands it on", arguments: wraps.indices)
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
    func named(_ name: String) -> IOOperation {
        self.name = name
        return self
    }
}
