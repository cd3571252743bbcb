import OperationKitTestSupport

@Suite("IOOperation", .hangGuard) struct IOOperationTests {
    private static func measure() -> Step<String, Int> { Step { $0.finish(with: $1.count) } }

    @Test("The output can be read in the completion block, by dependents and afterward", arguments: Start.allCases)
    func output(start: Start) async throws {
        let log = EventLog()
        let measure = Self.measure().with(input: "four")
        measure.asyncCompletionBlock = { [unowned measure] _ in log.add("block \(measure.output ?? -1)") }
        let dependent = BlockOperation { log.add("dependent \(measure.output ?? -1)") }
        dependent.addDependency(measure)
        OperationQueue().addOperation(dependent)
        #expect(measure.output == nil && measure.result == nil)
        await start(measure)
        #expect(measure.output == 4 && measure.error == nil)
        #expect(try measure.result?.get() == 4)
        #expect(try await measure.value == 4)
        await onThread { dependent.waitUntilFinished() }
        #expect(log.events == ["block 4", "dependent 4"])
    }

    @Test("What is made of an operation that runs without an input runs without one, too", arguments: Start.allCases)
    func defaultInput(start: Start) async throws {
        let greet = {
            let measure = Self.measure()
            measure.defaultInput = "hello"
            return measure
        }
        let operations: [IOOperation<String, Int>] = [
            greet(), greet().map { $0 }, greet().mapError { $0 }, greet().recover { _ in 0 },
            greet().map { $0 }.recoverRun { _ in TaskOperation { 0 } }, MacroOperation(greet()),
            MacroOperation(greet()).then(Step("same") { $0.finish(with: $1) }),
        ]
        for operation in operations {
            await start(operation)
            #expect(try await operation.value == 5)
        }
    }

    /// Operations that miss something, and what.
    private static let missing: [(make: @Sendable () -> AsyncOperation, error: IOOperationError)] = [
        ({ measure() }, .missingInput(operation: "step")),
        ({ Step<Int?, Int> { $0.finish(with: $1 ?? 0) } }, .missingInput(operation: "step")),
        ({ Step<any Sendable, Int> { step, _ in step.finish(with: 1) } }, .missingInput(operation: "step")),
        (
            { Step<Int, Int> { step, _ in step.finish(withError: nil) }.with(input: 1) },
            .missingOutput(operation: "step")
        ),
        (
            { Step<Int, Int?> { step, _ in step.finish(withError: nil) }.with(input: 1) },
            .missingOutput(operation: "step")
        ),
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

    @Test("`Void` needs neither an input nor an output", arguments: Start.allCases)
    func void(start: Start) async throws {
        let log = EventLog()
        let step = Step<Void, Void> { step, _ in
            log.add("main")
            step.finish()
        }
        await start(step)
        #expect(log.events == ["main"] && step.error == nil && step.output != nil)
        try await step.value
    }

    @Test("An optional input, or output, may be `nil`") func optionals() async throws {
        let input = Step<Int?, String> { $0.finish(with: "\(String(describing: $1))") }.with(input: nil)
        let output = Step<Int, Int?> { step, _ in step.finish(with: nil) }.with(input: 1)
        await Start.byHand(input)
        await Start.byHand(output)
        #expect(input.output == "nil" && output.error == nil && output.output == .some(.none))
        #expect(try await output.value == nil)
    }

    @Test("The input that is set last before the start counts") func lastInput() async throws {
        let gate = Gate()
        let operation = IOTaskOperation<Int, Int> { (number: Int) in
            await gate.opened()
            return number
        }
        operation.input = 1
        operation.input = 2
        #expect(operation.input == 2)
        operation.start()
        operation.input = 3
        gate.open()
        #expect(try await operation.value == 2)
    }

    @Test("The first `finish` decides, with its output or its error", arguments: [false, true])
    func firstFinish(fails: Bool) async {
        let answers = EventLog()
        let step = Step<Int, Int> { step, _ in
            answers.add("\(fails ? step.finish(withError: TestError.second) : step.finish(with: 1))")
            answers.add("\(step.finish(with: 2))")
            answers.add("\(step.finish(withError: TestError.first))")
        }
        await Start.byHand(step.with(input: 0))
        #expect(answers.events == ["true", "false", "false"])
        #expect(step.output == (fails ? nil : 1) && text(step.error) == (fails ? "second" : "success"))
    }

    @Test("An output that is given before the start is the outcome, and no work is done", arguments: Start.allCases)
    func outputBeforeTheStart(start: Start) async {
        let log = EventLog()
        let step = Step<Int, Int> { _, _ in log.add("main") }
        await start(step) {
            log.add("\(step.finish(with: 1)), \(step.output == nil)")
        }
        #expect(log.events == ["true, true"])
        #expect(step.output == 1 && step.error == nil)
    }

    @Test("An operation that is cancelled before its start misses no input", arguments: Start.allCases)
    func cancelledBeforeTheStart(start: Start) async {
        let measure = Self.measure()
        await start(measure) { measure.cancel(withError: TestError.reason) }
        #expect(text(measure.error) == "reason")
        #expect(measure.output == nil)
        await #expect(throws: TestError.reason) { try await measure.value }
    }

    @Test("An operation, its input and its output are released after the end") func releases() async {
        let tracker = LeakTracker()
        do {
            let step = tracker.track(
                Step<LeakTracker.Token, LeakTracker.Token> { step, input in
                    input.use()
                    step.finish(with: tracker.token("output"))
                })
            await Start.onSuspendedQueue(step.with(input: tracker.token("input")))
            #expect(step.output != nil)
        }
        await tracker.expectAllReleased()
    }
}
