import OperationKitTestSupport

@testable import OperationKit

/// Workflows that end early: cancelled, whatever they wait for, or by what their body throws.
@Suite("Workflows that end early", .hangGuard) struct WorkflowCancellationTests {
    enum Wait: CaseIterable { case place, suspension, work, dependency, sleep, together }

    @Test(
        "A workflow that is cancelled while it, or a step, waits ends, and runs no further step",
        arguments: Wait.allCases)
    func waits(_ wait: Wait) async {
        let (clock, log) = (ManualClock(), EventLog())
        let step = TaskOperation(name: "step") { log.add("step") }
        // A cancellation ends it, and what follows it does not run.
        let held = ScriptedOperation.stoppable("held")
        if wait == .dependency { step.addDependency(held) }
        let workflow = WorkflowOperation(name: "flow", maxConcurrentOperationCount: 1) { flow in
            defer { log.add("cleaned up") }
            switch wait {
            case .sleep: try await flow.sleep(for: .seconds(1_000))
            case .work: try await flow.run(held)
            case .together:
                async let first: Void = flow.run(held)
                async let second: Void = flow.run(step)
                _ = try await (first, second)
            default: try await flow.run(step)
            }
            log.add("went on")
        }
        workflow.clock = clock
        if wait == .place { expectNoError { try workflow.addOperation(held) } }
        workflow.isSuspended = wait == .suspension
        workflow.start()
        if wait == .sleep { await clock.sleepers() }
        if [.place, .work, .together].contains(wait) { await eventually("it does not run") { held.isExecuting } }
        if [.place, .suspension, .dependency].contains(wait) {
            await eventually("the step is not there") { workflow.debugDescription.contains("“step”") }
        }
        workflow.cancel()
        await #expect(throws: CancellationError.self) { try await workflow.finished() }
        #expect(log.events == ["cleaned up"] || wait == .together && log.events == ["step", "cleaned up"])
        await clock.expectNoSleepers()
        held.cancel()
        held.start()
    }

    private final class Subject: Sendable {
        let running = Shared(0)
        let workflow: WorkflowOperation<Void, Int>
        let added: TaskOperation<Void>

        init() {
            let running = running
            @Sendable func work() async {
                running.change { $0 += 1 }
                await Task.yield()
                running.change { $0 -= 1 }
            }
            added = TaskOperation { await work() }
            workflow = WorkflowOperation(maxConcurrentOperationCount: 2) { flow in
                for _ in 0..<3 {
                    async let first: Void = flow.run(TaskOperation { await work() })
                    async let second: Void = flow.run(TaskOperation { await work() })
                    _ = try await (first, second)
                }
                return 3
            }
        }
    }

    @Test("A workflow that is cancelled, and added to, at any moment ends once, after its children")
    func anyMoment() async {
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 600, seed: seed, prepare: { _ in Subject() },
            [
                {
                    $0.workflow.start()
                    $0.workflow.waitUntilFinished()
                }, { $0.workflow.cancel() }, { try? $0.workflow.addOperation($0.added) },
            ]
        ) { subject, round in
            #expect(subject.running.value == 0, "seed \(seed), round \(round)")
            let error = subject.workflow.error
            #expect(error == nil ? subject.workflow.output == 3 : error?.isCancellation == true, "seed \(seed)")
        }
    }

    /// Cancels its workflow when that reads its priority.
    private final class Cancelling: ScriptedOperation, @unchecked Sendable {
        let cancelWorkflow = Shared<(@Sendable () -> Void)?>(nil)

        override var queuePriority: QueuePriority {
            get {
                cancelWorkflow.value?()
                return super.queuePriority
            }
            set { super.queuePriority = newValue }
        }
    }

    @Test("A body whose workflow is cancelled between its start and the body learns of that", arguments: Start.allCases)
    func cancelledAtTheStart(start: Start) async {
        let (log, child) = (EventLog(), Cancelling())
        let workflow = WorkflowOperation { _ in log.add("\(Task.isCancelled)") }
        expectNoError { try workflow.addOperation(child) }
        await start(workflow) { child.cancelWorkflow.value = { [weak workflow] in workflow?.cancel() } }
        #expect(log.events == ["true"])
    }

    @Test("A workflow that is cancelled calls the handlers of its child on the same thread, before the call returns")
    func handlers() async {
        let (working, thread) = (Gate(), Shared<ObjectIdentifier?>(nil))
        let child = IOBlockOperation<Void, Void>.finishing { _, finish in
            finish.onCancel {
                thread.value = ObjectIdentifier(Thread.current)
                finish(CancellationError())
            }
            working.open()
        }
        let workflow = WorkflowOperation { flow in
            try await withTaskCancellationHandler {
                try await flow.run(child)
            } onCancel: {
                // Another thread has the time to cancel the child.
                Thread.sleep(forTimeInterval: 0.02)
            }
        }
        workflow.start()
        await working.opened()
        let isSameThread = await onThread {
            workflow.cancel()
            return thread.value == ObjectIdentifier(Thread.current)
        }
        #expect(isSameThread)
        try? await workflow.finished()
    }

    @Test("A body that throws cancels what others have added, and the workflow ends after that")
    func throwing() async {
        let added = ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
        let workflow = WorkflowOperation { _ in throw TestError.first }
        expectNoError { try workflow.addOperation(added) }
        workflow.start()
        try? await workflow.finished()
        #expect(added.isCancelled && added.isFinished && workflow.error as? TestError == .first)
    }

    @Test("Once the body has returned, `run` is refused, also while the workflow waits for a child")
    func tooLate() async {
        let (kept, added) = (Shared<Workflow?>(nil), ScriptedOperation.idle())
        let workflow = WorkflowOperation(name: "workflow") { flow in kept.value = flow }
        expectNoError { try workflow.addOperation(added) }
        workflow.start()
        await eventually("it does not run") { kept.value != nil }
        var refusal: (any Error)?
        while refusal == nil {
            do { try await kept.value?.run(BlockOperation {}) } catch { refusal = error }
        }
        guard case CompoundAdditionError.compoundFinished(_, compound: "workflow")? = refusal else {
            return #expect(Bool(false), "\(text(refusal))")
        }
        kept.value = nil
        #expect(!workflow.isFinished)
        added.finish()
        try? await workflow.finished()
        #expect(workflow.error == nil)
    }

    @Test("A call that is too late leaves its operation alone, in a cancelled task and after the workflow, too")
    func leftAlone() async {
        let (kept, late, leaks) = (Shared<Workflow?>(nil), ScriptedOperation("late"), LeakTracker())
        func expectRefusal(by name: String, _ run: () async throws -> Void) async {
            await #expect(throws: CompoundAdditionError.compoundFinished(operation: "late", compound: name)) {
                try await run()
            }
            #expect(!late.isCancelled)
        }
        do {
            let workflow = leaks.track(WorkflowOperation(name: "flow") { flow in kept.value = flow })
            await Start.byHand(workflow)
            await expectRefusal(by: "flow") { try await inCancelledTask { try await kept.value?.run(late) } }
            withExtendedLifetime(workflow) {}
        }
        await leaks.expectAllReleased()
        await expectRefusal(by: "compound") { try await kept.value?.run(late) }
    }

    @Test("In a cancelled task, `run` leaves a child of another class alone that is there already")
    func foreignChild() async throws {
        let (first, block) = (ScriptedOperation.idle(), BlockOperation {})
        let workflow = WorkflowOperation(maxConcurrentOperationCount: 1) { flow in
            await #expect(throws: CompoundAdditionError.self) {
                try await inCancelledTask { try await flow.run(block) }
            }
            first.finish()
        }
        for child in [first, block] { try workflow.addOperation(child) }
        try await OperationQueue().run(workflow)
        #expect(block.isFinished && !block.isCancelled)
    }

    @Test(
        "In a cancelled task, `run` cancels what it is given, but not what is part of another operation, or runs elsewhere",
        arguments: [false, true])
    func runAfterCancellation(runsElsewhere: Bool) async {
        let (other, own) = (ScriptedOperation.idle("other"), ScriptedOperation.idle("own"))
        let owner = CompoundOperation(operations: [other])
        owner.start()
        let refusal = Shared<(any Error)?>(nil)
        let workflow = WorkflowOperation { flow in
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            do { try await flow.run(runsElsewhere ? owner : other) } catch { refusal.value = error }
            try await flow.run(own)
        }
        workflow.start()
        await #expect(throws: CancellationError.self) { try await workflow.finished() }
        #expect(refusal.value is CompoundAdditionError && !other.isCancelled && !owner.isCancelled && own.isFinished)
        other.finish()
        try? await owner.finished()
        #expect(owner.error == nil)
    }

    @Test(
        "A child that is added begins although the worker of the last step runs the body, also if another task of that waits",
        arguments: [false, true], [false, true])
    func addedMeanwhile(byBody: Bool, anotherWaits: Bool) async throws {
        let (begun, computing, hasRun) = (Gate(), Gate(), Gate())
        let other = ScriptedOperation { operation in
            begun.open()
            if !anotherWaits { operation.finish() }
        }
        let added = ScriptedOperation {
            hasRun.open()
            $0.finish()
        }
        let add = Shared<@Sendable () throws -> Void>({})
        let workflow = WorkflowOperation { flow in
            async let end: Void = flow.run(other)
            await begun.opened()
            if !anotherWaits { try await end }
            try await flow.run(ScriptedOperation())
            if byBody { try add.value() }
            computing.open()
            block(until: hasRun)
            other.finish()
            try await end
        }
        add.change { $0 = { [unowned workflow] in try workflow.addOperation(added) } }
        workflow.start()
        await computing.opened()
        if !byBody { try add.value() }
        try await workflow.finished()
    }
}
