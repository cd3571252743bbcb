import OperationKitTestSupport

@testable import OperationKit

@Suite("Control of a waterfall", .hangGuard) struct WaterfallControlTests {
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

    @Test("Cancelling a suspended waterfall ends it without calling a job") func cancelledWhileSuspended() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>().then { _ in log.add("job") }.with(input: 1)
        waterfall.suspend()
        waterfall.start()
        waterfall.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await waterfall.value }
        #expect(log.events.isEmpty && waterfall.isCancelled)
    }

    @Test("Cancelling a waterfall cancels the task of an asynchronous job, and the waterfall ends after that")
    func asynchronousCancellation() async {
        let (began, cancelled, gate) = (Gate(), Gate(), Gate())
        let waterfall = Waterfall<Void, Void>().thenAwait(to: Int.self) {
            began.open()
            try? await cancellation()
            cancelled.open()
            await gate.openedDespiteCancellation()
            throw CancellationError()
        }
        waterfall.start()
        await began.opened()
        #expect(waterfall.debugDescription.contains("“job 0”: executing"))
        waterfall.cancel(withError: TestError.reason)
        await cancelled.opened()
        #expect(!waterfall.isFinished)
        gate.open()
        await #expect(throws: TestError.reason) { try await waterfall.value }
    }

    @Test("A job that goes on when other code has finished its operation may return when its waterfall is gone")
    func jobAfterTheWaterfall() async {
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

    @Test("An operation that is refused, because it belongs to a compound, may finish at that moment")
    func rejectedOperation() async {
        await race(
            rounds: 500, seed: 5,
            prepare: { _ in
                let made = Step<Int, Int>("made") { _, _ in }.with(input: 0)
                let owner = CompoundOperation(operations: [made])
                owner.start()
                return (made: made, owner: owner)
            },
            [
                { @Sendable subject in
                    let waterfall = Waterfall<Int, Int>(name: "all").thenRun { _ in subject.made }.with(input: 0)
                    waterfall.start()
                    waterfall.waitUntilFinished()
                    let error = waterfall.error as? CompoundAdditionError
                    #expect(error == .alreadyAdded(operation: "made", compound: "all"))
                },
                { @Sendable subject in
                    subject.made.finish(with: 1)
                    subject.owner.waitUntilFinished()
                },
            ], check: { _, _ in })
    }
}
