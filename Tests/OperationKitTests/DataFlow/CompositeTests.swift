import OperationKitTestSupport

@Suite("Composites of every kind", .hangGuard) struct CompositeTests {
    enum Kind: CaseIterable, Sendable {
        case macro, longerMacro, waterfall, map, recovery, gathering, workflow, retry, repetition, hedging

        /// Those whose work is made by a closure while they run.
        static let ofClosures: [Kind] = [.waterfall, .recovery, .workflow, .retry, .repetition, .hedging]

        /// Makes one around an operation, whose output it has.
        func make(_ work: IOOperation<Void, Int>) -> IOOperation<Void, Int> { make { work } }

        /// Makes one around the operation that a closure makes.
        func make(_ work: @escaping @Sendable () -> IOOperation<Void, Int>) -> IOOperation<Void, Int> {
            switch self {
            case .macro: MacroOperation(work())
            case .longerMacro:
                MacroOperation(IOBlockOperation<Void, Void> {}).then(work()).then(IOBlockOperation { $0 })
            case .waterfall: Waterfall<Void, Void>().thenRun { _ in work() }
            case .map: work().map { $0 }
            case .recovery:
                Step<Void, Int>.failing("source", .second).recoverRun { _ in work() }
            case .gathering: [work()].gathered().map { $0[0] }
            case .workflow: WorkflowOperation { flow in try await flow.run(work()) }
            case .retry: RetryOperation(RetryPolicy(maximumAttempts: 1)) { _ in work() }
            case .repetition: RepeatOperation(every: .seconds(100), maximumCount: 1, makeOperation: { _ in work() })
            case .hedging: HedgedOperation(after: .seconds(100), maximumAttempts: 2) { _ in work() }
            }
        }
    }

    private static func logging(_ log: EventLog) -> IOOperation<Void, Int> {
        IOBlockOperation {
            log.add("work")
            return 1
        }
    }

    @Test("Work that waits for its composite is a cycle", arguments: [Kind.macro, .longerMacro, .waterfall, .recovery])
    func waitsForItsComposite(kind: Kind) async {
        let work = Step<Void, Int>("work") { step, _ in step.finish(with: 1) }
        let composite = kind.make(work)
        composite.name = "whole"
        work.addDependency(composite)
        await Start.byHand(composite)
        #expect(cyclePath(of: composite.error) == ["whole", "work", "whole"])
        // What a closure has made is refused, and left as it is.
        #expect(work.isFinished == !Kind.ofClosures.contains(kind))
        work.removeDependency(composite)
    }

    private func started(_ kind: Kind) async -> (IOOperation<Void, Int>, ManualOperation<Void, Int>) {
        let work = ManualOperation<Void, Int>(name: "work", ignoresCancellation: true)
        let composite = kind.make(work)
        _ = composite.progress
        composite.start()
        await work.started()
        return (composite, work)
    }

    private func leaf(_ error: (any Error)?) -> (any Error)? {
        (error as? CompoundOperationError)?.leafErrors.first ?? error
    }

    @Test("It has the output of its work, however and inside whatever it is started", arguments: Kind.allCases)
    func output(kind: Kind) async {
        for start in Start.allCases {
            let log = EventLog()
            let composite = kind.make(Self.logging(log))
            composite.asyncCompletionBlock = { [unowned composite] _ in log.add("block \(composite.output ?? -1)") }
            let dependent = BlockOperation { log.add("dependent \(composite.output ?? -1)") }
            dependent.addDependency(composite)
            OperationQueue().addOperation(dependent)
            composite.callMain()
            #expect(log.events.isEmpty && !composite.isFinished)
            await start(composite)
            composite.callMain()
            await onThread { dependent.waitUntilFinished() }
            #expect(log.events == ["work", "block 1", "dependent 1"])
            #expect(composite.output == 1 && composite.error == nil && composite.progress.fractionCompleted == 1)
        }
        for outer in Kind.allCases {
            let composite = outer.make(kind.make(IOBlockOperation { 1 }))
            await Start.onBusyQueue(composite)
            #expect(composite.output == 1, "\(outer)")
        }
        let child = kind.make(TaskOperation { 1 })
        let compound = CompoundOperation(operations: [child])
        await Start.byHand(compound)
        #expect(child.output == 1 && compound.error == nil)
    }

    @Test("A failure of its work is its own, a cancellation is not", arguments: Kind.allCases, [TestError.first, nil])
    func failure(kind: Kind, error: TestError?) async {
        let composite = kind.make {
            Step { step, _ in if let error { step.finish(withError: error) } else { step.cancel() } }
        }
        let progress = composite.progress
        await Start.byHand(composite)
        #expect(error == nil ? composite.error?.isCancellation == true : text(leaf(composite.error)) == "first")
        #expect(composite.output == nil && !composite.isCancelled && progress.fractionCompleted == 1)
    }

    @Test("Cancelling it cancels its work, and it ends after that", arguments: Kind.allCases, [false, true])
    func cancelled(kind: Kind, hasFailure: Bool) async {
        let (composite, work) = await started(kind)
        composite.cancel(withError: TestError.reason)
        await eventually("it is not cancelled") { work.calls == [.main, .didCancel] }
        #expect(!composite.isFinished)
        let failure = SuboperationError(name: "part", index: 0, error: TestError.first)
        let partial = CompoundOperationError.cancelled(name: "parts", errors: [failure])
        work.finish(withError: hasFailure ? partial : CancellationError())
        try? await composite.finished()
        let description = composite.error?.localizedDescription ?? ""
        #expect(text(composite.error).contains("reason") || description.contains("reason"), "\(description)")
        #expect(composite.isCancelled && work.isFinished && description.contains("“part”") == hasFailure)
        #expect(composite.progress.fractionCompleted == 1)
    }

    @Test("Cancelled before its start, it runs nothing, and ends with the reason", arguments: Kind.allCases)
    func cancelledBeforeTheStart(kind: Kind) async {
        for start in Start.allCases {
            let log = EventLog()
            let finished = IOBlockOperation { 1 }
            finished.start()
            for work in [Self.logging(log), finished] {
                let composite = kind.make(work)
                await start(composite) { composite.cancel(withError: TestError.reason) }
                #expect(log.events.isEmpty && text(composite.error).contains("reason") && composite.output == nil)
            }
        }
    }

    @Test("What its work reports stands after a cancellation", arguments: Kind.allCases, [nil, TestError.first])
    func outcomeAfterCancellation(kind: Kind, error: TestError?) async {
        // These ask after it, too, whether they are cancelled.
        if [.repetition, .waterfall, .longerMacro].contains(kind), error == nil { return }
        let (composite, work) = await started(kind)
        composite.cancel()
        await eventually("it is not cancelled") { work.calls == [.main, .didCancel] }
        if let error { work.finish(withError: error) } else { work.finish(with: 1) }
        try? await composite.finished()
        #expect(text(leaf(composite.error)) == text(error) && composite.output == (error == nil ? 1 : nil))
    }

    @Test("Work that its closure makes while it is cancelled does not begin, and ends", arguments: Kind.ofClosures)
    func cancelledWhileMaking(kind: Kind) async {
        let (log, source, holder) = (EventLog(), ScriptedOperation.idle(), Shared<IOOperation<Void, Int>?>(nil))
        let work = Self.logging(log)
        work.addDependency(source)
        work.asyncCompletionBlock = { log.add(text($0)) }
        let composite = kind.make {
            holder.change { $0.take() }?.cancel()
            return work
        }
        holder.value = composite
        await Start.onBusyQueue(composite)
        #expect(composite.error?.isCancellation == true && work.isFinished && log.events == ["cancelled"])
        source.start()
        source.finish()
    }

    @Test("An outcome from outside stands and cancels its work", arguments: Kind.allCases)
    func given(kind: Kind) async {
        let (composite, work) = await started(kind)
        #expect(composite.finish(with: 5) && !composite.finish(withError: TestError.first))
        await eventually("it is not cancelled") { work.calls == [.main, .didCancel] }
        #expect(!composite.isFinished)
        work.finish(withError: TestError.second)
        #expect((try? await composite.value) == 5)
        #expect(work.isFinished && composite.progress.fractionCompleted == 1)
    }

    @Test("Work that was started counts, but no attempt", arguments: Kind.allCases)
    func startedElsewhere(kind: Kind) async {
        let work = ManualOperation<Void, Int>(name: "work", ignoresCancellation: true)
        work.start()
        let composite = kind.make(work)
        composite.start()
        if [.retry, .repetition, .hedging].contains(kind) {
            await #expect(throws: RetryError.self) { try await composite.value }
            return
        }
        #expect(!composite.isFinished)
        work.finish(with: 7)
        #expect((try? await composite.value) == 7)
        let finished = IOBlockOperation { 8 }
        finished.start()
        #expect((try? await OperationQueue().run(kind.make(finished))) == 8)
    }

    @Test("Work that is part of another operation is an error with its name, and left alone", arguments: Kind.allCases)
    func partOfAnother(kind: Kind) async {
        let work = IOBlockOperation(name: "work") { 1 }
        let owner = CompoundOperation(operations: [work])
        let composite = kind.make(work)
        await Start.byHand(composite)
        #expect(composite.error is ChainError || composite.error is CompoundAdditionError)
        #expect(composite.error?.localizedDescription.contains("“work”") == true && !work.isCancelled)
        await Start.byHand(owner)
        #expect(work.output == 1)
    }

    @Test("It is released with its work and closures: run, also alone, cancelled or dropped", arguments: Kind.allCases)
    func releases(kind: Kind) async {
        for moment in ["run", "run alone", "cancel", "drop"] {
            let (tracker, gate, ended) = (LeakTracker(), Gate(), Gate())
            do {
                let token = tracker.token("closure")
                let work = IOTaskOperation<Void, Int> {
                    token.use()
                    await gate.opened()
                    return 1
                }
                let composite = tracker.track(kind.make(tracker.track(work)))
                composite.asyncCompletionBlock = { error in if error == nil { ended.open() } }
                if moment == "run alone" { composite.start() } else { gate.open() }
                if moment == "cancel" { composite.cancel() }
                if ["run", "cancel"].contains(moment) { await Start.onSuspendedQueue(composite) }
            }
            #expect(ended.isOpen == (moment == "run"))
            gate.open()
            if moment == "run alone" { await ended.opened() }
            await tracker.expectAllReleased()
        }
    }
}
