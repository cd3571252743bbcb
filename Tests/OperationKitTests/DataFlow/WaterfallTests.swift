import OperationKitTestSupport

@Suite("Waterfall", .hangGuard) struct WaterfallTests {
    @Test("A job of each kind makes the next result, whether its type is inferred or given", arguments: Start.allCases)
    func jobs(start: Start) async {
        let inferred = Waterfall<String, String>()
            .then { $0.count }
            .thenRun { count in IOBlockOperation<Void, Int> { _ in count * 2 } }
            .thenAwait { count in await Task { count + 1 }.value }
            .thenRun { count in TaskOperation { count + 1 } }
            .then { "<\($0)>" }
        let given = Waterfall<Int, Int>()
            .then(to: String.self) { number in "\(number)" }
            .thenAwait(to: Int.self) { text in await Task { text.count }.value }
            .thenRun(to: [Int].self) { number in
                number > 1 ? TaskOperation { [number] } : IOBlockOperation<Void, [Int]> { [0, number] }
            }
            .thenDecide(to: Int.self) { numbers in .value(numbers.count) }
        await start(inferred.with(input: "four"))
        await start(given.with(input: 7))
        #expect(inferred.output == "<10>" && inferred.error == nil && inferred.failedStep == nil)
        #expect(given.output == 2 && given.error == nil)
    }

    @Test("No result is kept while the operation runs that was made from it") func released() async throws {
        let (leaks, began, release) = (LeakTracker(), Gate(), Gate())
        let waterfall = Waterfall<Void, Void>()
            .thenRun { TaskOperation { leaks.token("operation") } }
            .thenAwait { _ in leaks.token("task") }
            .then { token in [token, leaks.token("closure")].count }
            .thenRun { count in
                TaskOperation {
                    began.open()
                    await release.opened()
                    return count
                }
            }
        waterfall.start()
        await began.opened()
        await leaks.expectAllReleased()
        release.open()
        #expect(try await waterfall.value == 2)
    }

    /// What waterfalls make of 5.
    private static let outputs: [(make: @Sendable () -> Waterfall<Int, Int>, output: Int)] = [
        ({ Waterfall() }, 5),
        ({ Waterfall<Int, Int>().thenDecide { $0 == 5 ? .value(10) : .operation(TaskOperation { 20 }) } }, 10),
        ({ Waterfall<Int, Int>().thenDecide { $0 != 5 ? .value(10) : .operation(TaskOperation { 20 }) } }, 20),
        // An operation that is passed on as a value.
        ({ Waterfall<Int, Int>().thenDecide { input in .value(TaskOperation { input + 1 }) }.thenRun { $0 } }, 6),
        // An optional result passes through unchanged.
        ({ Waterfall<Int, Int>().then { _ -> Int? in nil }.then { $0 == nil ? 1 : 0 } }, 1),
        // Jobs are added in a loop.
        ({ (1...3).reduce(Waterfall<Int, Int>()) { waterfall, number in waterfall.then { $0 * number } } }, 30),
    ]

    @Test("The output is that of the last job, or the input if there is none", arguments: outputs.indices)
    func output(index: Int) async {
        let waterfall = Self.outputs[index].make().with(input: 5)
        await Start.byHand(waterfall)
        #expect(waterfall.output == Self.outputs[index].output)
    }

    /// The kinds of jobs that fail, with a name, and what each is called without one.
    private static let failing: [(make: @Sendable (String?) -> Waterfall<Int, Int>, unnamed: String?)] = [
        ({ name in first.then(name: name) { _ in throw TestError.first } }, "job 1"),
        ({ name in first.thenAwait(name: name) { _ in throw TestError.first } }, "job 1"),
        ({ name in first.thenRun(name: name) { _ in TaskOperation<Int> { throw TestError.first } } }, nil),
        ({ name in first.thenRun(name: name) { _ -> TaskOperation<Int> in throw TestError.first } }, nil),
        ({ name in first.thenDecide(name: name) { _ in throw TestError.first } }, nil),
        ({ name in first.thenRun { _ in TaskOperation<Int>(name: name ?? "own") { throw TestError.first } } }, "own"),
    ]
    private static var first: Waterfall<Int, Int> { Waterfall<Int, Int>(name: "all").then(name: "first") { $0 + 1 } }

    @Test("A job that fails ends the waterfall with its error and is called by its name", arguments: failing.indices)
    func failures(index: Int) async {
        for name in ["parse", nil] {
            let log = EventLog()
            let waterfall = Self.failing[index].make(name).then { input in
                log.add("next")
                return input
            }
            waterfall.completion = { log.add("completion \(text($0.failure))") }
            waterfall.asyncCompletionBlock = { log.add("block \(text($0))") }
            await Start.onBusyQueue(waterfall.with(input: 1))
            #expect(log.events == ["block first", "completion first"])
            let step = waterfall.failedStep
            #expect(step?.index == 1 && step?.siblingCount == 3 && waterfall.name == "all")
            if let called = name ?? Self.failing[index].unnamed { #expect(step?.name == called) }
            if name == nil { #expect(step?.name != "parse") }
        }
    }

    @Test("A value job that makes an operation, which would not run, is an error that names the job")
    func operationAsValue() async {
        func expectError<Made: Sendable>(_ make: @escaping @Sendable (Int) -> Made) async {
            let first = { Waterfall<Int, Int>(name: "waterfall").then { $0 } }
            for waterfall in [first().then { make($0) }, first().thenAwait { make($0) }] {
                let whole = waterfall.then { _ in Issue.record("It goes on.") }
                whole.name = "whole"
                await Start.byHand(whole.with(input: 1))
                #expect(whole.error as? ChainError == .operationNotRun(job: "job 1", chain: "whole"))
                #expect(whole.failedStep?.index == 1)
            }
        }
        await expectError { input in TaskOperation { input } }
        await expectError { $0 > 0 ? BlockOperation {} : nil }
        await expectError { _ -> any Sendable in BlockOperation {} }
    }

    @Test("An operation that ends with success but without an output is an error with its name")
    func missingOutput() async throws {
        let waterfall = Waterfall<Int, Int>()
            .then { $0 + 1 }
            .thenDecide { _ in WaterfallStep<Int>.operation(OwnOutputOperation("ending")) }
            .then { (value: Int) in Issue.record("It goes on with \(value).") }
        let error = await outcome(of: CompoundOperation(operations: [waterfall.with(input: 0)]))
        for error in [waterfall.error, error?.leafErrors.first] {
            #expect(error as? IOOperationError == .missingOutput(operation: "ending"))
        }
        #expect(waterfall.failedStep?.index == 1)
    }

    @Test(
        "The completion gets the result before the waterfall has finished, also of a job that ended as cancelled by itself"
    )
    func completion() async {
        for error in [nil, CancellationError()] {
            let log = EventLog()
            let waterfall = Waterfall<Int, Int>().then(name: "parse") {
                if let error { throw error }
                return $0 + 1
            }.with(input: 1)
            waterfall.completion = { [unowned waterfall] result in
                log.add("\(text(result.failure)), \(waterfall.isFinished), \(waterfall.output ?? -1)")
            }
            await Start.byHand(waterfall)
            #expect(log.events == [error == nil ? "success, false, 2" : "cancelled, false, -1"])
            #expect(waterfall.failedStep?.name == (error == nil ? nil : "parse"))
            waterfall.completion = { _ in }
            #expect(waterfall.completion == nil)
        }
    }

    @Test("An operation that has failed has no output, whatever it says")
    func outputOfFailure() async throws {
        let failing = { @Sendable in OwnOutputOperation("ending", output: 1, .first) }
        let forms: [AsyncOperation] = [
            Waterfall<Void, Void>().thenRun { failing() }.then { _ in Issue.record("goes on") },
            Waterfall<Void, Void>().thenDecide { WaterfallStep<Int>.operation(failing()) },
            IOBlockOperation<Void, Int> { _ in throw TestError.second }.recoverRun { _ in failing() },
        ]
        for form in forms { await #expect(throws: TestError.first) { try await OperationQueue().run(form) } }
        let gathered = [failing(), failing()].gathered()
        let error = await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(gathered) }
        #expect(error?.leafErrors.map(text) == ["first", "first"])
    }

    @Test("The operation of a job keeps its own name, and one without gets that of the job")
    func operationNames() async {
        let names = EventLog()
        @Sendable func make(_ name: String?) -> IOOperation<Int, Int> {
            Step<Int, Int>(name) { step, input in
                names.add(step.name ?? "none")
                step.finish(with: input)
            }
        }
        let waterfall = Waterfall<Int, Int>()
            .thenRun(name: "job") { make("own").with(input: $0) }
            .thenRun(name: "job") { make(nil).with(input: $0) }
            .thenDecide(name: "decided") { .operation(make(nil).with(input: $0)) }
            .thenRun { make(nil).with(input: $0) }
        await Start.byHand(waterfall.with(input: 1))
        #expect(names.events == ["own", "job", "decided", "none"])
    }

    @Test("An operation that a composite refuses is not renamed") func nameOfRefused() async throws {
        let (child, work) = (TaskOperation { 1 }, ScriptedOperation.idle())
        let parent = CompoundOperation(operations: [child])
        let executing = WorkflowOperation(name: "own") { flow in
            try await flow.run(work)
            return 1
        }
        executing.start()
        await eventually("it does not run") { work.isExecuting }
        for composite in [
            Waterfall<Void, Void>().thenRun(name: "job") { child },
            Waterfall<Void, Void>().thenRun(name: "job") { executing },
            RetryOperation(name: "retry") { _ in child }, HedgedOperation(after: .zero, name: "page") { _ in child },
        ] {
            await Start.byHand(composite)
            #expect(composite.error is CompoundAdditionError)
        }
        #expect(child.name == nil && executing.name == "own")
        work.finish()
        try await executing.finished()
        await Start.byHand(parent)
        #expect(child.output == 1)
    }

    @Test("The task of an asynchronous job has the priority of the waterfall") func priority() async throws {
        let waterfall = Waterfall<Int, Int>().thenAwait { _ in Task.currentPriority }.with(input: 1)
        waterfall.qualityOfService = .utility
        waterfall.start()
        #expect(try await waterfall.value == .utility)
    }

    @Test("The jobs of a very long waterfall come and go one by one, and overflow no stack", arguments: [false, true])
    func manyJobs(areOperations: Bool) async {
        let tokens = TokenCount()
        let count = TestExtent.choose(areOperations ? 2_000 : 8_000, long: areOperations ? 20_000 : 1_000_000)
        await onThread(stackSize: workerStackSize) {
            let waterfall = (0..<count).reduce(Waterfall<Int, Int>()) { waterfall, _ in
                if !areOperations {
                    return waterfall.then { input in withExtendedLifetime(tokens.token()) { input + 1 } }
                }
                return waterfall.thenRun { input in
                    let token = tokens.token()
                    return IOBlockOperation { withExtendedLifetime(token) { input + 1 } }
                }
            }
            waterfall.input = 0
            waterfall.start()
            waterfall.waitUntilFinished()
            #expect(waterfall.output == count)
        }
        // Another thread may still be about to release the last operations.
        #expect(tokens.most <= (areOperations ? 50 : 1), "\(tokens.most) were alive")
        await eventually("\(tokens.alive) are alive") { tokens.alive == 0 }
    }
}
