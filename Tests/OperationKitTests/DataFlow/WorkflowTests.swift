import OperationKitTestSupport

@testable import OperationKit

@Suite("WorkflowOperation", .hangGuard) struct WorkflowTests {
    private static func increment(_ number: Int, _ name: String = "step") -> IOOperation<Int, Int> {
        Step<Int, Int>.increment(name).with(input: number)
    }

    @Test("A body loops, branches and runs steps together", arguments: Start.allCases) func loop(start: Start) async {
        let workflow = WorkflowOperation(name: "pages") { flow in
            var pages = [try await flow.run(TaskOperation { 1 })]
            while let last = pages.last, last < 4 { pages.append(try await flow.run(Self.increment(last))) }
            async let (sum, count) = (
                flow.run(TaskOperation { [pages] in pages.reduce(0, +) }),
                flow.run(TaskOperation { [pages] in pages.count })
            )
            return try await (sum, count)
        }
        await start(workflow)
        #expect(workflow.output ?? (0, 0) == (10, 4))
    }

    @Test("A body gets the input, and may run on the main actor") func input() async throws {
        let double = WorkflowOperation { @MainActor (number: Int, flow) in
            MainActor.assertIsolated()
            return try await flow.run(Self.increment(number - 1)) * 2
        }
        #expect(try await OperationQueue().run(MacroOperation(double).then(Step.increment("next")).with(input: 4)) == 9)
        let main = WorkflowOperation { @MainActor flow in MainActor.assertIsolated() }
        try await OperationQueue().run(main)
    }

    @Test("A step that fails ends the workflow, unless its error is caught") func failures() async {
        for isCaught in [true, false] {
            let workflow = WorkflowOperation { flow in
                async let other: Void = isCaught ? () : flow.run(ScriptedOperation.stoppable())
                do {
                    try await flow.run(Step<Void, Int>.failing())
                } catch {
                    if !isCaught { throw error }
                }
                try await other
                return try await flow.run(Self.increment(1))
            }
            await Start.byHand(workflow)
            #expect(workflow.output == (isCaught ? 2 : nil) && text(workflow.error) == (isCaught ? "success" : "first"))
        }
    }

    @Test("Steps that are cancelled or reused are errors of `run`") func misuse() async throws {
        let (kept, slow) = (Shared<Workflow?>(nil), ManualOperation<Void, Void>(name: "slow"))
        let workflow = WorkflowOperation(name: "workflow") { flow in
            kept.value = flow
            @Sendable func expectRefusal(_ operation: Operation) async {
                let error = CompoundAdditionError.alreadyAdded(operation: operation.name ?? "", compound: "workflow")
                await #expect(throws: error) { try await flow.run(operation) }
            }
            let (block, cancelled, step) = (BlockOperation {}, BlockOperation {}, Self.increment(1))
            try await flow.run(block)
            #expect(block.isFinished)
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await flow.run(cancelled) }
            try await flow.run(step)
            await expectRefusal(step)
            let slowEnd = Task { try await flow.run(slow) }
            await slow.started()
            await expectRefusal(slow)
            await #expect(throws: CompoundAdditionError.self) { try await inCancelledTask { try await flow.run(slow) } }
            #expect(!slow.isCancelled)
            slow.cancel()
            await #expect(throws: CancellationError.self) { try await slowEnd.value }
            return ()
        }
        await Start.byHand(workflow)
        #expect(workflow.error == nil)
        await #expect(throws: CancellationError.self) { try await kept.value?.sleep(for: .seconds(100)) }
    }

    @Test("Of two calls with one step that meet at its addition, the second is refused") func sameStep() async throws {
        let workflow = WorkflowOperation { flow in
            let (step, refused) = (ReadOperation {}, Gate())
            step.willRead.value = { [weak step] in
                guard let step else { return }
                step.willRead.value = {}
                Task.detached {
                    await #expect(throws: CompoundAdditionError.self) { try await flow.run(step) }
                    refused.open()
                }
                refused.pass()
            }
            try await flow.run(step)
            #expect(refused.isOpen)
        }
        try await OperationQueue().run(workflow)
    }

    @Test("Two steps run together under a limit of one, one after the other") func limit() async throws {
        let tokens = TokenCount()
        let workflow = WorkflowOperation(maxConcurrentOperationCount: 1) { flow in
            let step = { @Sendable in TaskOperation { await tokens.hold(1) } }
            async let (first, second) = (flow.run(step()), flow.run(step()))
            return try await first + second
        }
        #expect(try await OperationQueue().run(workflow) == 2 && tokens.most == 1)
        #expect(workflow.maxConcurrentOperationCount == 1)
        workflow.maxConcurrentOperationCount = 2
        #expect(workflow.maxConcurrentOperationCount == 2)
    }

    @Test("A workflow ends after children of other threads, and fails if one does", arguments: [nil, TestError.first])
    func addedFromOutside(error: TestError?) async throws {
        let (begun, added) = (Gate(), ScriptedOperation.idle("added"))
        let workflow = WorkflowOperation(name: "workflow") { flow in
            begun.open()
            return try await flow.run(Self.increment(1))
        }
        try workflow.addOperation(added)
        workflow.start()
        await begun.opened()
        await eventually("it does not run") { added.isExecuting }
        #expect(!workflow.isFinished)
        added.finish(withError: error)
        #expect((try? await workflow.value) == (error == nil ? 2 : nil))
        #expect(brief(workflow.error) == (error == nil ? "success" : "workflow failed [0 added]"))
    }

    @Test("Cancelling the task that calls `run` cancels its step, and waits for it") func cancelledTask() async throws {
        let (step, hasReturned) = (ManualOperation<Void, Void>(ignoresCancellation: true), Shared(false))
        let workflow = WorkflowOperation { flow in
            let task = Task {
                defer { hasReturned.value = true }
                try await flow.run(step)
            }
            await step.started()
            task.cancel()
            await eventually("it is not cancelled") { step.calls.contains(.didCancel) }
            // Other steps come and go meanwhile.
            for number in 0..<10 { try await flow.run(Self.increment(number)) }
            #expect(!hasReturned.value)
            step.finish(withError: CancellationError())
            await #expect(throws: CancellationError.self) { try await task.value }
            return Task.isCancelled
        }
        #expect(try await OperationQueue().run(workflow) == false)
        #expect(!workflow.isCancelled)
    }

    @Test("A suspended workflow begins no step; what runs goes on") func suspension() async throws {
        let (first, log) = (ManualOperation<Void, Void>(), EventLog())
        let workflow = WorkflowOperation(name: "workflow") { flow in
            try await flow.run(first)
            log.add("first ended")
            return try await flow.run(Step<Int, Int>.increment("second", log: log).with(input: 1))
        }
        workflow.start()
        await first.started()
        workflow.isSuspended = true
        first.finish()
        await eventually("\(workflow.debugDescription)") {
            workflow.debugDescription.contains("ready, but the children are suspended")
        }
        #expect(!workflow.isFinished && workflow.isSuspended && log.events == ["first ended"])
        workflow.isSuspended = false
        #expect(try await workflow.value == 2)
        #expect(log.events == ["first ended", "second"])
    }

    @Test("A sleep is a wait for descriptions and events until it is over or cancelled") func sleep() async {
        let (clock, log, kept) = (ManualClock(), EventLog(), Shared<AsyncOperation?>(nil))
        let workflow = WorkflowOperation(name: "poll") { flow in
            try await flow.sleep(for: .seconds(2))
            log.add(kept.change { $0.take() }?.waitDescription ?? "awake")
            for seconds in [0, 4] { try await flow.sleep(for: .seconds(seconds)) }
        }
        kept.value = workflow
        workflow.clock = clock
        workflow.start()
        await clock.sleepers()
        #expect(workflow.debugDescription.contains("sleeping for 2 s, 0 of 0"))
        clock.advance(by: .seconds(2))
        await eventually("it sleeps on: \(log.events)") { log.events == ["awake"] && !clock.deadlines.isEmpty }
        workflow.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await workflow.finished() }
        await clock.expectNoSleepers()
    }

    @Test("Of two sleeps, the wait is the one that began last", arguments: [[1, 3], [3, 1]])
    func sleeps(seconds: [Int]) async throws {
        let (clock, log, recorder) = (ManualClock(), EventLog(), EventRecorder())
        let workflow = WorkflowOperation(name: "sleeps") { flow in
            @Sendable func sleep(_ seconds: Int) async throws {
                try await flow.sleep(for: .seconds(seconds))
                log.add("\(seconds)")
            }
            async let first: Void = sleep(seconds[0])
            await recorder.occurrence(of: "sleeps: sleeping for \(seconds[0]) s")
            async let second: Void = sleep(seconds[1])
            _ = try await (first, second)
        }
        workflow.clock = clock
        recorder.observe(workflow)
        let events = workflow.events
        workflow.start()
        await eventually("the second sleep has not begun") {
            workflow.waitDescription == "sleeping for \(seconds[1]) s"
        }
        await clock.pass(.seconds(1))
        await eventually("the short sleep has not ended") { log.events == ["1"] }
        await clock.pass(.seconds(3))
        let waits = await events.reduce(into: []) { $0.append("\($1.kind)") }
        let expected = (seconds == [1, 3] ? [1, 3] : [3, 1, 3]).map { "is sleeping for \($0) s" }
        #expect(waits == ["started", "runs"] + expected + ["runs", "finished"])
    }

    @Test("Progress is 0 until the end, apart from shares of at most all") func progress() async throws {
        let (log, holder) = (ProgressLog(), Shared<Progress?>(nil))
        let workflow = WorkflowOperation { flow in
            for share in [0, 0.25, .nan, -1, 0.5, 0.7] {
                try await flow.run(Self.increment(1), progress: share)
                log.look()
            }
            return holder.value.map { [$0.completedUnitCount, $0.totalUnitCount] }
        }
        log.watch(workflow)
        holder.value = workflow.progress
        await Start.byHand(workflow)
        #expect(log.fractions == [0, 0.25, 0.25, 0.25, 0.75, 1] && workflow.progress.fractionCompleted == 1)
        #expect(workflow.output == [1_000_000, 1_000_000] && workflow.progress.completedUnitCount == 1_000_000)
    }

    @Test("A workflow of many steps holds one of them at a time") func manySteps() async {
        let (leaks, tokens, steps) = (LeakTracker(), TokenCount(), TestExtent.choose(3_000, long: 1_000_000))
        do {
            let workflow = leaks.track(
                WorkflowOperation { flow in
                    var sum = 0
                    for _ in 0..<steps {
                        let token = tokens.token()
                        let step = IOBlockOperation<Int, Int> { input in withExtendedLifetime(token) { input + 1 } }
                        sum = try await flow.run(step.with(input: sum))
                    }
                    return sum
                })
            await Start.onBusyQueue(workflow)
            #expect(workflow.output == steps)
        }
        #expect(tokens.alive == 0 && tokens.most <= 3)
        await leaks.expectAllReleased()
    }

    #if DEBUG
    @Test("A worker that has run a step runs the body up to the next, and that") func oneWorker() async throws {
        let count = Shared<Int?>(nil)
        let counting = BlockOperation {
            HeldComposites.run { queue in
                let workflow = WorkflowOperation { flow in
                    for number in 0..<100 { try await flow.run(Self.increment(number)) }
                }
                workflow.start()
                queue.startAll()
                if workflow.isFinished { count.value = queue.additions }
            }
        }
        try await OperationQueue().run(counting)
        #expect(count.value == 1)
    }
    #endif
}
