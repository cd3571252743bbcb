import OperationKitTestSupport

@testable import OperationKit

@Suite("Waterfall", .hangGuard) struct WaterfallTests {
    @Test("No result is kept while the operation runs that was made from it") func released() async throws {
        let (leaks, last) = (LeakTracker(), ManualOperation<Void, Int>())
        let waterfall = Waterfall<Void, Void>()
            .thenRun { TaskOperation { leaks.token("operation") } }
            .thenAwait { _ in leaks.token("task") }
            .then { token in [token, leaks.token("closure")].count }
            .thenRun { count in count == 2 ? last : TaskOperation { count } }
        waterfall.start()
        await last.started()
        await leaks.expectAllReleased()
        last.finish(with: 1)
        #expect(try await waterfall.value == 1)
    }

    /// What waterfalls make of 5.
    private static let outputs: [(make: @Sendable () -> Waterfall<Int, Int>, output: Int)] = [
        ({ Waterfall() }, 5),
        (
            {
                Waterfall<Int, Int>().then { "\($0)" }
                    .thenRun { text in IOBlockOperation<Void, Int> { _ in text.count } }
                    .thenAwait { number in await Task { number + 1 }.value }
                    .thenRun(to: Int.self) { number in number > 0 ? TaskOperation { number } : IOBlockOperation { 0 } }
            }, 2
        ),
        ({ Waterfall<Int, Int>().thenDecide { $0 == 5 ? .value(10) : .operation(TaskOperation { 20 }) } }, 10),
        ({ Waterfall<Int, Int>().thenDecide { $0 != 5 ? .value(10) : .operation(TaskOperation { 20 }) } }, 20),
        // An operation that is passed on as a value.
        ({ Waterfall<Int, Int>().thenDecide { input in .value(TaskOperation { input + 1 }) }.thenRun { $0 } }, 6),
        // An optional result passes through unchanged.
        ({ Waterfall<Int, Int>().then { _ -> Int? in nil }.then { $0 == nil ? 1 : 0 } }, 1),
        // Jobs are added in a loop.
        ({ (1...3).reduce(Waterfall<Int, Int>()) { waterfall, number in waterfall.then { $0 * number } } }, 30),
    ]

    @Test("The output is that of the last job, and goes to the completion before the end", arguments: outputs.indices)
    func output(index: Int) async {
        let (waterfall, log) = (Self.outputs[index].make().with(input: 5), EventLog())
        waterfall.completion = { [unowned waterfall] result in
            log.add("\((try? result.get()) ?? -1), \(waterfall.isFinished), \(waterfall.output ?? -1)")
        }
        await Start.byHand(waterfall)
        let output = Self.outputs[index].output
        #expect(waterfall.output == output && log.events == ["\(output), false, \(output)"])
        waterfall.completion = { _ in }
        #expect(waterfall.completion == nil)
    }

    /// The kinds of jobs that fail, with a name, and what each is called without one. The last one is cancelled.
    private static let failing: [(make: @Sendable (String?) -> Waterfall<Int, Int>, unnamed: String?)] = [
        ({ name in first.then(name: name) { _ in throw TestError.first } }, "job 1"),
        ({ name in first.thenAwait(name: name) { _ in throw TestError.first } }, "job 1"),
        ({ name in first.thenRun(name: name) { _ in TaskOperation<Int> { throw TestError.first } } }, nil),
        ({ name in first.thenRun(name: name) { _ -> TaskOperation<Int> in throw TestError.first } }, nil),
        ({ name in first.thenDecide(name: name) { _ in throw TestError.first } }, nil),
        ({ name in first.thenRun { _ in TaskOperation<Int>(name: name ?? "own") { throw TestError.first } } }, "own"),
        ({ name in first.then(name: name) { _ in throw CancellationError() } }, "job 1"),
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
            let end = index < 6 ? "first" : "cancelled"
            #expect(log.events == ["block \(end)", "completion \(end)"])
            let step = waterfall.failedStep
            #expect(step?.index == 1 && step?.siblingCount == 3 && waterfall.name == "all")
            if let called = name ?? Self.failing[index].unnamed { #expect(step?.name == called) }
            if name == nil { #expect(step?.name != "parse") }
        }
    }

    @Test("An operation as the value of a job, which would not run, is an error") func operationAsValue() async {
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

    @Test("An operation that succeeds without an output is an error by name") func missingOutput() async throws {
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

    @Test("An operation that has failed has no output, whatever it says") func outputOfFailure() async throws {
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

    @Test("The operation of a job keeps its own name, or gets that of the job") func operationNames() async {
        let names = EventLog()
        @Sendable func make(_ name: String?, _ input: Int) -> IOOperation<Int, Int> {
            Step<Int, Int>(name) { step, input in
                names.add(step.name ?? "none")
                step.finish(with: input)
            }.with(input: input)
        }
        let waterfall = Waterfall<Int, Int>().thenRun(name: "job") { make("own", $0) }
            .thenRun(name: "job") { make(nil, $0) }
            .thenDecide(name: "decided") { .operation(make(nil, $0)) }
            .thenRun { make(nil, $0) }
        await Start.byHand(waterfall.with(input: 1))
        #expect(names.events == ["own", "job", "decided", "none"])
    }

    @Test("An operation that a composite refuses is not renamed") func nameOfRefused() async throws {
        let (child, step) = (TaskOperation { 1 }, ManualOperation<Void, Int>())
        let (parent, executing) = (CompoundOperation(operations: [child]), MacroOperation(step).named("own"))
        executing.start()
        await step.started()
        for composite in [
            Waterfall<Void, Void>().thenRun(name: "job") { child },
            Waterfall<Void, Void>().thenRun(name: "job") { executing },
            RetryOperation(name: "retry") { _ in child }, HedgedOperation(after: .zero, name: "page") { _ in child },
        ] {
            await Start.byHand(composite)
            #expect(composite.error is CompoundAdditionError)
        }
        #expect(child.name == nil && executing.name == "own")
        step.finish(with: 1)
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
                    IOBlockOperation { [token = tokens.token()] in withExtendedLifetime(token) { input + 1 } }
                }
            }.with(input: 0)
            waterfall.start()
            waterfall.waitUntilFinished()
            #expect(waterfall.output == count)
        }
        // Another thread may still be about to release the last operations.
        #expect(tokens.most <= (areOperations ? 50 : 1), "\(tokens.most) were alive")
        await eventually("\(tokens.alive) are alive") { tokens.alive == 0 }
    }

    #if DEBUG
    /// A waterfall that is suspended before its first job, or by that, and the jobs that it has called.
    private static func suspending(
        beforeStart: Bool, _ log: EventLog, _ recorder: EventRecorder, _ holder: Shared<Waterfall<Int, Int>?>
    ) -> Waterfall<Int, Int> {
        let shorter = Waterfall<Int, Int>()
        if beforeStart { shorter.suspend() }
        let first = shorter.then { input in
            log.add("first")
            if !beforeStart { holder.value?.suspend() }
            return input + 1
        }
        let waterfall = first.thenRun { input in
            log.add("second")
            return Step<Int, Int>.increment("step", log: log).with(input: input)
        }
        #expect(waterfall.isSuspended == beforeStart)
        holder.value = recorder.observe(waterfall.with(input: 0))
        return waterfall
    }

    @Test("While a waterfall is suspended, nothing of it starts until it is resumed", arguments: [true, false])
    func suspended(beforeStart: Bool) async throws {
        let (log, queue, holder) = (EventLog(), HeldQueue(), Shared<Waterfall<Int, Int>?>(nil))
        let recorder = EventRecorder()
        // On a thread of an operation queue, its first jobs run before `start()` returns.
        let block = BlockOperation {
            HeldComposites.run(on: queue) { _ in
                Self.suspending(beforeStart: beforeStart, log, recorder, holder).start()
            }
        }
        try await OperationQueue().run(block)
        let waterfall = try #require(holder.change { $0.take() })
        queue.startAll()
        #expect(log.events == (beforeStart ? [] : ["first"]))
        // What waits for the end of the suspension is not shown.
        #expect(waterfall.debugDescription.split(separator: "\n").count == 1)
        #expect(waterfall.isSuspended && waterfall.isRunning && !waterfall.isCancelled && !waterfall.isFinished)
        waterfall.resume()
        await eventually("the waterfall does not end") {
            queue.startAll()
            return waterfall.isFinished
        }
        #expect(log.events == ["first", "second", "step"] && waterfall.output == 2)
        #expect(!waterfall.isSuspended && !waterfall.isRunning)
        #expect(recorder.events(of: "AsyncBlockOperation").isEmpty)
    }
    #endif

    @Test("The operation of a job goes on while its waterfall is suspended") func suspendedOperation() async throws {
        let (step, done) = (ManualOperation<Void, Int>(), Gate())
        step.asyncCompletionBlock = { _ in done.open() }
        let waterfall = Waterfall<Int, Int>().thenRun { _ in step }.then { $0 + 1 }.with(input: 0)
        waterfall.start()
        await step.started()
        waterfall.suspend()
        step.finish(with: 1)
        await done.opened()
        #expect(!waterfall.isFinished)
        waterfall.resume()
        #expect(try await waterfall.value == 2)
    }

    @Test("A waterfall that is suspended when no job is left ends", arguments: [0, 1])
    func suspendedAtTheEnd(count: Int) async throws {
        let holder = Shared<Waterfall<Int, Int>?>(nil)
        let jobs = (0..<count).reduce(Waterfall<Int, Int>()) { jobs, _ in
            jobs.then { value in
                holder.value?.suspend()
                return value
            }
        }
        let waterfall = jobs.with(input: 1)
        if count == 0 { waterfall.suspend() } else { holder.value = waterfall }
        waterfall.start()
        #expect(try await waterfall.value == 1)
        holder.value = nil
    }

    @Test("Cancelling a suspended waterfall ends it without calling a job") func cancelledWhileSuspended() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>().then { _ in log.add("job") }.with(input: 1)
        waterfall.suspend()
        waterfall.start()
        waterfall.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await waterfall.value }
        #expect(log.events.isEmpty && waterfall.isCancelled)
    }

    @Test("A job may go on when its operation and its waterfall are gone") func jobAfterTheWaterfall() async {
        let (began, mayReturn, leaks, job) = (Gate(), Gate(), LeakTracker(), LeakTracker())
        do {
            let captured = job.track(ScriptedOperation())
            let waterfall = leaks.track(
                Waterfall<Void, Void>().thenAwait(name: "slow") {
                    began.open()
                    await mayReturn.openedDespiteCancellation()
                    return captured.isFinished
                })
            let running = Shared<AsyncOperation?>(nil)
            waterfall.addObserver(
                EventRecorder { operation, event in
                    if event.isRunning, event.name == "slow" { running.value = operation }
                })
            waterfall.start()
            await began.opened()
            running.change { $0.take() }?.finish(withError: TestError.first)
            await #expect(throws: TestError.first) { try await waterfall.value }
        }
        await leaks.expectAllReleased()
        mayReturn.open()
        await job.expectAllReleased()
    }
}
