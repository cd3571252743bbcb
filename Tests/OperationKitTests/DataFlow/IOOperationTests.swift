import OperationKitTestSupport

@Suite("IOOperation", .hangGuard) struct IOOperationTests {
    private static func measure() -> Step<String, Int> { Step { $0.finish(with: $1.count) } }

    @Test("The output can be read in the completion block, by dependents and afterward", arguments: Start.allCases)
    func output(start: Start) async throws {
        let (log, measure) = (EventLog(), Self.measure().with(input: "four"))
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

    @Test(
        "Ended before its start, by an output or a cancellation, an operation does no work and misses no input",
        arguments: Start.allCases, [false, true])
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
}
