import OperationKitTestSupport

@testable import OperationKit

@Suite("Start gates", .hangGuard) struct StartGateTests {
    private let log = EventLog()

    /// An operation that has started, and waits.
    private func waiting(
        _ gate: HeldGate, main: @escaping ScriptedOperation.Script = { $0.finish() }
    ) -> ScriptedOperation {
        let operation = ScriptedOperation.logged(log, main: main)
        operation.addGate(gate)
        operation.start()
        #expect(operation.isExecuting && !operation.isFinished && gate.isAwaited)
        return operation
    }

    @Test("`main()` is called on another thread than the one that opens the gate, and belongs to no queue and no task")
    func mainOnAnotherThread() async throws {
        let threads = Shared<[ObjectIdentifier]>([])
        let note = { @Sendable in threads.change { $0.append(ObjectIdentifier(Thread.current)) } }
        let gate = HeldGate()
        let operation = ScriptedOperation { operation in
            note()
            let isInTask = unsafe withUnsafeCurrentTask { unsafe $0 != nil }
            operation.finish(withError: OperationQueue.current == nil && !isInTask ? nil : TestError.first)
        }
        operation.addGate(gate)
        OperationQueue.main.addOperation(operation)
        await eventually("not asked") { gate.isAwaited }
        await onThread {
            note()
            gate.open()
            operation.waitUntilFinished()
        }
        #expect(Set(threads.value).count == 2 && operation.error == nil)
    }

    @Test("Observers are told of a wait before it begins, and a gate that opens at that moment is asked again")
    func earlyAnswer() async throws {
        let gates = ["1", "2"].map { HeldGate($0, log) }
        let operation = ScriptedOperation.logged(log)
        for gate in gates { operation.addGate(gate) }
        operation.addObserver(
            EventRecorder { [log] _, event in
                guard case .waiting = event.kind else { return }
                log.add("waiting")
                let gate = gates[log.count(of: "waiting") - 1]
                #expect(!gate.isAwaited)
                gate.open()
            })
        operation.start()
        try await operation.finished()
        #expect(log.events == ["1", "waiting", "2", "waiting", "main", "asyncCompletionBlock success"])
    }

    @Test("Observers that are told that `main()` is about to be called can keep it from being called", arguments: 0..<3)
    func endedByAnObserver(index: Int) {
        let operation = ScriptedOperation.logged(log)
        if index == 2 { operation.addStartHandler { _ in } }
        operation.addObserver(
            EventRecorder { operation, event in
                guard case .running = event.kind else { return }
                if index == 0 { operation.cancel() } else { operation.finish(withError: TestError.first) }
            })
        operation.start()
        #expect(operation.isFinished && log.count(of: "main") == 0)
    }

    @Test(
        "An operation that is cancelled or finished while it waits ends immediately, with neither `main()` nor `didCancel()`",
        arguments: [true, false])
    func endedWhileWaiting(isCancelled: Bool) async {
        let (gate, recorder) = (HeldGate("gate", log), EventRecorder())
        let operation = recorder.observe(ScriptedOperation.logged(log))
        operation.name = "load"
        operation.addGate(gate)
        operation.start()
        operation.start()
        #expect(gate.isAwaited && operation.isExecuting)
        if isCancelled {
            operation.cancel(withError: TestError.first)
        } else {
            #expect(operation.finish(withError: TestError.first))
        }
        #expect(operation.isFinished && operation.error as? TestError == .first)
        gate.open(withError: TestError.second)
        #expect(log.events == ["gate", "withdraw gate", "asyncCompletionBlock first"])
        let end = (isCancelled ? ["cancelled"] : []) + ["finished: first"]
        #expect(recorder.events(of: "load") == ["started", "waiting for the test"] + end)
    }

    @Test(
        "A composite that is cancelled or finished while it waits ends after its children, of which none runs",
        arguments: [true, false])
    func endedComposite(isCancelled: Bool) async {
        let (gate, child) = (HeldGate("gate", log), ScriptedOperation.logged(log))
        let compound = CompoundOperation(operations: [child])
        compound.addGate(gate)
        compound.start()
        #expect(compound.isExecuting && !child.isExecuting)
        if isCancelled { compound.cancel() } else { compound.finish(withError: TestError.first) }
        gate.open()
        try? await compound.finished()
        #expect(isCancelled ? compound.error is CompoundOperationError : compound.error as? TestError == .first)
        #expect(child.isFinished && log.count(of: "main") == 0 && log.count(of: "withdraw gate") == 1)
    }

    @Test(
        "No composite succeeds that is cancelled before its main(), even if all inside has ended before",
        arguments: [true, false])
    func cancelledCompositesWithoutWork(isWaiting: Bool) async {
        func finished() -> IOOperation<Void, Int> {
            let operation = IOBlockOperation<Void, Int> { 1 }
            operation.start()
            return operation
        }
        let operations: [AsyncOperation] = [
            CompoundOperation(), MacroOperation(finished()), Waterfall<Int, Int>().with(input: 1),
            finished().map { _ in 2 }, finished().recoverRun { _ in TaskOperation { 1 } }, [finished()].gathered(),
        ]
        for operation in operations {
            if isWaiting {
                operation.addGate(HeldGate("gate", log))
                operation.start()
                operation.cancel()
            } else {
                operation.addStartHandler { $0.cancel() }
                operation.start()
            }
            try? await operation.finished()
            #expect(operation.isFinished && operation.error?.isCancellation == true, "\(type(of: operation))")
        }
    }

    @Test("A child that waits keeps its place, and is followed by the next one after its end")
    func child() async throws {
        let gate = HeldGate("gate", log)
        let first = ScriptedOperation.logged(log)
        first.addGate(gate)
        let second = ScriptedOperation.named("second", in: log)
        let compound = CompoundOperation(operations: [first, second], maxConcurrentOperationCount: 1)
        compound.start()
        await eventually("not asked") { first.withState { $0.lifecycle.isWaiting } }
        #expect(log.events == ["gate"])
        gate.open()
        try await compound.finished()
        #expect(log.events == ["gate", "main", "asyncCompletionBlock success", "second"])
    }

    @Test("Gates are released once they have been passed, and those that are not needed at the end")
    func release() async throws {
        let leaks = LeakTracker()
        let begun = Gate()
        let operation: ScriptedOperation
        do {
            let gate = leaks.track(HeldGate("gate", log))
            operation = waiting(gate) { _ in begun.open() }
            gate.open()
        }
        await begun.opened()
        await leaks.expectAllReleased()
        operation.finish()
        let cancelled = ScriptedOperation()
        cancelled.addGate(leaks.track(HeldGate()))
        cancelled.cancel()
        cancelled.start()
        await leaks.expectAllReleased()
    }
}
