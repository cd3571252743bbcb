import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// How far operations have come.
@Suite("Progress", .hangGuard) struct ProgressTests {
    /// Sets the units of its own progress, one after the other, and shows the test each time.
    private static func worker(_ units: Int64, _ look: @escaping @Sendable () -> Void = {}) -> Step<Int, Int> {
        Step { step, input in
            step.progress.totalUnitCount = units
            for unit in 0..<units {
                step.progress.completedUnitCount = unit
                look()
            }
            step.finish(with: input)
        }
    }

    @Test("No `Progress` is created unless it is asked for") func onDemand() async {
        let step = Step<Int, Int>.increment("step")
        let macro = MacroOperation(step)
        macro.input = 1
        let compound = CompoundOperation(operations: [macro])
        await Start.byHand(compound)
        for operation in [compound, macro, step] as [AsyncOperation] {
            #expect(operation.withState { $0.progress } == nil)
        }
    }

    @Test("Every thread that asks for the progress of an operation gets the same one") func same() async {
        let operation = AsyncOperation()
        let all = Shared<[Progress]>([])
        await concurrently(Array(repeating: { @Sendable in all.change { $0.append(operation.progress) } }, count: 8))
        #expect(all.value.count == 8 && all.value.allSatisfy { $0 === operation.progress })
        let reporting: any ProgressReporting = operation
        #expect(reporting.progress === operation.progress)
    }

    @Test("The progress of a leaf goes from 0 to 1, before its `asyncCompletionBlock` is called") func leaf() async {
        let operation = ScriptedOperation.idle()
        let progress = operation.progress
        operation.start()
        #expect(progress.fractionCompleted == 0)
        operation.asyncCompletionBlock = { _ in #expect(progress.fractionCompleted == 1) }
        operation.finish()
        #expect(progress.fractionCompleted == 1 && progress.isFinished)
    }

    @Test("A leaf sets the units of its own progress while it works, and not after its end") func ownUnits() async {
        let seen = Shared<[Double]>([])
        let step = Shared<Step<Int, Int>?>(nil)
        step.value = Self.worker(4) { seen.change { $0.append(step.value?.progress.fractionCompleted ?? -1) } }
        step.value?.input = 0
        await Start.byHand(step.value!)
        #expect(seen.value == [0, 0.25, 0.5, 0.75] && step.value?.progress.fractionCompleted == 1)
        step.value?.progress.completedUnitCount = 0
        #expect(step.value?.progress.fractionCompleted == 1)
        step.value = nil
    }

    @Test(
        "An operation that fails or is cancelled is complete in its completion block, and stays so",
        arguments: [true, false])
    func failedOrCancelled(isCancelled: Bool) async {
        let operation = ScriptedOperation {
            $0.progress.totalUnitCount = 2
            $0.progress.completedUnitCount = 1
            if isCancelled { $0.cancel() }
            $0.finish(withError: isCancelled ? CancellationError() : TestError.first)
        }
        let seen = Shared<Double?>(nil)
        operation.asyncCompletionBlock = { [unowned operation] _ in seen.value = operation.progress.fractionCompleted }
        await Start.byHand(operation)
        operation.progress.completedUnitCount = 1
        #expect(seen.value == 1 && operation.progress.fractionCompleted == 1)
        let late = AsyncOperation()
        late.cancel()
        await Start.byHand(late)
        #expect(late.progress.fractionCompleted == 1)
    }

    @Test("The progress of an operation that has succeeded is complete although it was not asked for before")
    func afterTheEnd() async {
        let operation = AsyncOperation()
        let macro = MacroOperation(Step<Int, Int>.increment("step"))
        macro.input = 1
        await Start.byHand(operation)
        await Start.byHand(macro)
        #expect(operation.progress.fractionCompleted == 1 && macro.progress.fractionCompleted == 1)
    }

    @Test("Parts count in a progress by their weights at any depth") func nested() async {
        let seen = Shared<[Double]>([])
        let holder = Shared<Progress?>(nil)
        let look: @Sendable () -> Void = { seen.change { $0.append(holder.value?.fractionCompleted ?? -1) } }
        let inner = MacroOperation(Self.worker(2, look)).then(Self.worker(2, look).map { $0 })
        let waterfall = Waterfall<Int, Int>()
            .then { input in
                look()
                return input
            }
            .thenRun { Self.worker(1, look).with(input: $0) }
        let macro = MacroOperation(inner).then(waterfall)
        macro.input = 0
        let compound = CompoundOperation()
        expectNoError { try compound.addOperation(macro) }
        holder.value = compound.progress
        await Start.byHand(compound)
        #expect(compound.error == nil)
        #expect(seen.value == [0, 0.125, 0.25, 0.375, 0.5, 0.75], "\(seen.value)")
        #expect(compound.progress.fractionCompleted == 1)
    }

    @Test("Children of every class count in the progress of a compound by their weights", arguments: ChildKind.allCases)
    func compound(kind: ChildKind) async {
        let seen = Shared<[Double]>([])
        let holder = Shared<Progress?>(nil)
        let look: @Sendable () -> Void = { seen.change { $0.append(holder.value?.fractionCompleted ?? -1) } }
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        expectNoError {
            try compound.addOperation(kind.make(nil, look), progressWeight: 3)
            try compound.addOperation(kind.make(nil, look))
            try compound.addOperation(kind.make(nil, look), progressWeight: 0)
        }
        holder.value = compound.progress
        await Start.byHand(compound)
        #expect(seen.value == [0, 0.75, 1] && compound.progress.fractionCompleted == 1)
    }

    @Test("Children that are added later do not set the progress back") func addedLater() async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        let progress = compound.progress
        let seen = Shared<[Double]>([])
        let look: @Sendable () -> Void = { seen.change { $0.append(progress.fractionCompleted) } }
        try compound.addOperation(BlockOperation(block: look))
        try compound.addOperation(
            BlockOperation { [unowned compound] in
                look()
                for _ in 0..<3 { try? compound.addOperation(BlockOperation(block: look)) }
            })
        await Start.byHand(compound)
        #expect(seen.value == [0, 0.5, 0.5, 0.6, 0.8] && progress.fractionCompleted == 1)
    }

    @Test("A child that has failed counts wholly, and so does a compound with it")
    func failedChild() async {
        let seen = Shared<Double?>(nil)
        let holder = Shared<Progress?>(nil)
        let compound = CompoundOperation(
            operations: [
                ScriptedOperation {
                    $0.progress.totalUnitCount = 4
                    $0.progress.completedUnitCount = 1
                    $0.finish(withError: TestError.first)
                },
                ScriptedOperation {
                    seen.value = holder.value?.fractionCompleted
                    $0.finish()
                },
            ], maxConcurrentOperationCount: 1)
        holder.value = compound.progress
        await Start.byHand(compound)
        #expect(seen.value == 0.5 && compound.progress.fractionCompleted == 1 && compound.progress.isFinished)
        #expect(compound.error != nil)
    }

    @Test("Cancelling a progress cancels its operation") func cancellation() async {
        let leaf = AsyncOperation()
        leaf.progress.cancel()
        #expect(leaf.isCancelled)
        let step = Step<Int, Int> { _, _ in }
        let macro = MacroOperation(step)
        macro.input = 0
        macro.start()
        macro.progress.cancel()
        await #expect(throws: CancellationError.self) { try await macro.value }
        #expect(step.isCancelled)
    }

    @Test("A progress can be a child of another `Progress`, which counts it and cancels its operation")
    func tree() async {
        let app = Progress.discreteProgress(totalUnitCount: 10)
        let macro = MacroOperation(Step<Int, Int>.increment("step")).then(Step<Int, Int> { _, _ in })
        let second = AsyncOperation()
        macro.input = 0
        app.addChild(macro.progress, withPendingUnitCount: 5)
        app.addChild(second.progress, withPendingUnitCount: 5)
        await Start.byHand(second)
        #expect(app.fractionCompleted == 0.5)
        app.cancel()
        await eventually("not cancelled") { macro.isCancelled }
    }

    @Test("The fraction never falls, and is exactly 1 at success") func monotonic() async {
        let seed = SplitMix64.freshSeed()
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let wrong = EventLog()
            let last = Shared(0.0)
            let holder = Shared<Progress?>(nil)
            let look: @Sendable () -> Void = {
                last.change { last in
                    let now = holder.value?.fractionCompleted ?? -1
                    if now < last || now > 1 { wrong.add("\(now) after \(last)") }
                    last = now
                }
            }
            let compound = CompoundOperation(maxConcurrentOperationCount: 3)
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                let macro = chain(of: (0..<3).map { _ in Self.worker(Int64.random(in: 1...7, using: &random), look) })
                macro.input = 0
                expectNoError {
                    try compound.addOperation(macro, progressWeight: Int64.random(in: 0...13, using: &random))
                    try compound.addOperation(
                        BlockOperation { [unowned compound] in
                            look()
                            try? compound.addOperation(BlockOperation(block: look))
                        })
                }
            }
            holder.value = compound.progress
            await Start.byHand(compound)
            #expect(compound.error == nil && compound.progress.fractionCompleted == 1.0, "seed \(seed)")
            #expect(wrong.events.isEmpty, "seed \(seed): \(wrong.events)")
        }
    }
}

/// The arithmetic alone.
@Suite("The ledger of a composite's progress") struct ProgressLedgerTests {
    @Test("Without parts the fraction is 0") func noParts() {
        #expect(ProgressLedger().fraction == 0)
    }

    @Test("Parts count in the fraction by their weights") func weights() {
        var ledger = ProgressLedger()
        ledger.added(3)
        ledger.added(1)
        ledger.advanced(0, weight: 3, to: 0.5)
        #expect(ledger.fraction == 0.375)
        ledger.advanced(0, weight: 3, to: 7)
        #expect(ledger.fraction == 0.75)
        ledger.ended(0, weight: 3)
        #expect(ledger.fraction == 0.75)
        ledger.finished += 1
        #expect(ledger.fraction == 1)
    }

    @Test("A part that has ended counts wholly, whatever it had reached")
    func endedPart() {
        var ledger = ProgressLedger()
        ledger.added(2)
        ledger.advanced(0, weight: 1, to: 0.5)
        ledger.ended(0, weight: 1)
        #expect(ledger.fraction == 0.5)
        ledger.ended(1, weight: 1)
        #expect(ledger.fraction == 1)
    }

    @Test("Of alternatives the one that has come farthest counts, also while another one goes on") func alternatives() {
        var ledger = ProgressLedger(ofAlternatives: true)
        for fraction in [0.6, 0.2, 0.4] {
            ledger.advanced(0, weight: 1, to: fraction)
            #expect(ledger.fraction == 0.6)
        }
    }

    @Test("The fraction of many parts that have succeeded is exactly 1") func manyParts() {
        var ledger = ProgressLedger()
        for part in 0..<10_000 { ledger.added(Int64(part % 7)) }
        for part in 0..<10_000 { ledger.advanced(part, weight: Int64(part % 7), to: Double(part % 11) / 11) }
        for part in 0..<10_000 { ledger.ended(part, weight: Int64(part % 7)) }
        #expect(ledger.fraction == 1)
    }

    @Test("What a child reports while its end is counted does not count once more")
    func reportsAgainstTheEnd() async {
        struct Subject: Sendable {
            let child: ScriptedOperation
            let hold: ScriptedOperation
            let compound: CompoundOperation

            @available(*, noasync)
            init() {
                let (childBegun, holdBegun) = (Gate(), Gate())
                child = ScriptedOperation { _ in childBegun.open() }
                hold = ScriptedOperation { _ in holdBegun.open() }
                compound = CompoundOperation(operations: [child, hold])
                child.progress.totalUnitCount = 1_000
                child.progress.completedUnitCount = 900
                _ = compound.progress
                compound.start()
                childBegun.pass()
                holdBegun.pass()
            }
        }
        await race(
            rounds: 300, seed: 20, prepare: { _ in Subject() },
            [
                { subject in subject.child.finish(withError: TestError.first) },
                { subject in for unit in 900..<920 { subject.child.progress.completedUnitCount = Int64(unit) } },
            ]
        ) { subject, round in
            #expect(subject.compound.progress.fractionCompleted <= 0.5, "round \(round)")
            subject.hold.finish()
            subject.compound.waitUntilFinished()
        }
    }

    @Test("Shares of a workflow that are more than 1 in all complete no more than there is")
    func sharesBeyondAll() async {
        let (seen, holder) = (Shared<[Int64]>([]), Shared<Progress?>(nil))
        let workflow = WorkflowOperation { flow in
            for _ in 0..<3 { try await flow.run(TaskOperation {}, progress: 0.7) }
            seen.value = holder.value.map { [$0.completedUnitCount, $0.totalUnitCount] } ?? []
        }
        let progress = workflow.progress
        holder.value = progress
        await Start.byHand(workflow)
        #expect(seen.value == [1_000_000, 1_000_000] && progress.completedUnitCount == 1_000_000)
    }
}
