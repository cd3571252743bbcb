import OperationKitTestSupport

@testable import OperationKit

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
        let macro = MacroOperation(step).with(input: 1)
        let compound = CompoundOperation(operations: [macro])
        await Start.byHand(compound)
        for operation in [compound, macro, step] as [AsyncOperation] {
            #expect(operation.withState { $0.progress } == nil)
        }
    }

    @Test("A leaf sets the units of its own progress while it works, and not after its end") func ownUnits() async {
        let log = ProgressLog()
        let step = Self.worker(4) { log.look() }.with(input: 0)
        log.watch(step)
        await Start.byHand(step)
        #expect((step as any ProgressReporting).progress === step.progress && step.progress.isCancellable)
        #expect(log.fractions == [0, 0.25, 0.5, 0.75] && step.progress.fractionCompleted == 1)
        step.progress.completedUnitCount = 0
        #expect(step.progress.fractionCompleted == 1)
    }

    @Test(
        "An operation is complete in its completion block, however it ends, and stays so",
        arguments: [nil, TestError.first, CancellationError()] as [(any Error & Sendable)?])
    func complete(error: (any Error & Sendable)?) async {
        let (operation, log) = (ScriptedOperation.idle(), ProgressLog())
        log.watch(operation)
        operation.asyncCompletionBlock = { _ in log.look() }
        operation.start()
        log.look()
        operation.progress.totalUnitCount = 2
        operation.progress.completedUnitCount = 1
        if error is CancellationError { operation.cancel() }
        operation.finish(withError: error)
        operation.progress.completedUnitCount = 1
        #expect(log.fractions == [0, 1] && operation.progress.fractionCompleted == 1 && operation.progress.isFinished)
        // It need not have been asked for before.
        let unasked = ScriptedOperation { $0.finish(withError: error) }
        if error is CancellationError { unasked.cancel() }
        await Start.byHand(unasked)
        #expect(unasked.progress.fractionCompleted == 1)
    }

    @Test("Parts count in a progress by their weights at any depth") func nested() async {
        let log = ProgressLog()
        let look: @Sendable () -> Void = { log.look() }
        let inner = MacroOperation(Self.worker(2, look)).then(Self.worker(2, look).map { $0 })
        let noting = Waterfall<Int, Int>().then { input in
            look()
            return input
        }
        let waterfall = noting.thenRun { Self.worker(1, look).with(input: $0) }
        let compound = CompoundOperation(operations: [MacroOperation(inner).then(waterfall).with(input: 0)])
        log.watch(compound)
        await Start.byHand(compound)
        #expect(log.fractions == [0, 0.125, 0.25, 0.375, 0.5, 0.75], "\(log.fractions)")
        #expect(compound.error == nil && compound.progress.fractionCompleted == 1)
    }

    @Test("A progress that is first read during the work counts what was done") func readLate() async throws {
        let last = ManualOperation<Void, Void>()
        let inner = CompoundOperation(
            operations: ["a", "b", "c"].map { ScriptedOperation($0) } + [last], maxConcurrentOperationCount: 1)
        let outer = CompoundOperation(operations: [
            MacroOperation(Step.increment("step")), CompoundOperation(operations: [inner]),
        ])
        outer.start()
        await last.started()
        // Another thread may be about to count the macro.
        await eventually("is \(outer.progress.fractionCompleted)") { outer.progress.fractionCompleted == 0.875 }
        last.finish()
        try? await outer.finished()
        #expect(outer.progress.fractionCompleted == 1)
    }

    @Test("Children of every class count in the progress of a compound by their weights", arguments: ChildKind.allCases)
    func compound(kind: ChildKind) async {
        let log = ProgressLog()
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        expectNoError {
            for weight in [3, 1, 0] as [Int64] {
                try compound.addOperation(kind.make { log.look() }, progressWeight: weight)
            }
        }
        log.watch(compound)
        await Start.byHand(compound)
        #expect(log.fractions == [0, 0.75, 1] && compound.progress.fractionCompleted == 1)
    }

    enum Whole: CaseIterable {
        case compound, macro, waterfall

        /// An operation whose four parts have these weights, and look when they run.
        func make(_ weights: [Int64], _ look: @escaping @Sendable () -> Void) throws -> AsyncOperation {
            let next: @Sendable (Int) -> Int = { number in
                look()
                return number + 1
            }
            switch self {
            case .compound:
                let compound = CompoundOperation(maxConcurrentOperationCount: 1)
                for weight in weights { try compound.addOperation(BlockOperation(block: look), progressWeight: weight) }
                return compound
            case .macro:
                return weights.dropFirst().reduce(
                    MacroOperation(IOBlockOperation(next), progressWeight: weights[0])
                ) { $0.then(IOBlockOperation(next), progressWeight: $1) }.with(input: 0)
            case .waterfall:
                return weights.reduce(Waterfall<Int, Int>()) { $0.then(progressWeight: $1, next) }.with(input: 0)
            }
        }
    }

    @Test("Negative weights count as 0, huge ones do not overflow, and the end is complete", arguments: Whole.allCases)
    func extremeWeights(whole: Whole) async throws {
        let log = ProgressLog()
        let operation = try whole.make([.min, 2, -1, 2]) { log.look() }
        log.watch(operation)
        try await OperationQueue().run(operation)
        #expect(log.fractions == [0, 0, 0.5, 0.5] && operation.progress.fractionCompleted == 1)
        let huge = try whole.make([.max, .max, .max]) {}
        let progress = huge.progress
        try await OperationQueue().run(huge)
        #expect(progress.fractionCompleted == 1)
    }

    @Test("Children that are added later do not set the progress back") func addedLater() async throws {
        let log = ProgressLog()
        let look: @Sendable () -> Void = { log.look() }
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        log.watch(compound)
        let adding = BlockOperation { [unowned compound] in
            look()
            for _ in 0..<3 { try? compound.addOperation(BlockOperation(block: look)) }
        }
        try compound.addOperations([BlockOperation(block: look), adding])
        await Start.byHand(compound)
        #expect(log.fractions == [0, 0.5, 0.5, 0.6, 0.8] && compound.progress.fractionCompleted == 1)
    }

    @Test("A child that has failed counts wholly, and so does a compound with it") func failedChild() async {
        let (failing, log) = (ScriptedOperation { $0.finish(withError: TestError.first) }, ProgressLog())
        failing.progress.totalUnitCount = 4
        let later = BlockOperation {
            log.look()
            failing.progress.completedUnitCount = 3
            log.look()
        }
        let compound = CompoundOperation(operations: [failing, later], maxConcurrentOperationCount: 1)
        log.watch(compound)
        await Start.byHand(compound)
        #expect(log.fractions == [0.5, 0.5] && compound.error != nil)
        #expect(compound.progress.fractionCompleted == 1 && compound.progress.isFinished)
    }

    @Test("Cancelling a progress cancels its operation", arguments: [false, true]) func tree(isAbove: Bool) async {
        let app = Progress.discreteProgress(totalUnitCount: 10)
        let (step, second) = (Step<Int, Int> { _, _ in }, AsyncOperation())
        let macro = MacroOperation(Step<Int, Int>.increment("first")).then(step).with(input: 0)
        for operation in [macro, second] { app.addChild(operation.progress, withPendingUnitCount: 5) }
        await Start.byHand(second)
        #expect(app.fractionCompleted == 0.5)
        macro.start()
        (isAbove ? app : macro.progress).cancel()
        await #expect(throws: CancellationError.self) { try await macro.value }
        #expect(step.isCancelled && macro.isCancelled)
    }

    @Test("Cancelling a progress calls its handler, and cancels what is below it and not complete") func below() async {
        let (step, handled) = (AsyncOperation(), Gate())
        let parts = (0..<3).map { _ in Progress.discreteProgress(totalUnitCount: 1) }
        for part in parts[..<2] { step.progress.addChild(part, withPendingUnitCount: 1) }
        step.progress.cancellationHandler = { handled.open() }
        parts[0].completedUnitCount = 1
        step.progress.cancel()
        step.progress.addChild(parts[2], withPendingUnitCount: 1)
        await handled.opened()
        #expect(parts.map(\.isCancelled) == [false, true, true] && step.progress.isCancelled && step.isCancelled)
    }

    @Test("Of alternatives the one that has come farthest counts") func alternatives() {
        var ledger = ProgressLedger(ofAlternatives: true)
        for (part, fraction) in [0.5, 0.2, 0.7, 2].enumerated() {
            ledger.advanced(part, weight: 1, to: fraction)
            #expect(ledger.fraction == [0.5, 0.5, 0.7, 1][part])
        }
    }

    @Test("The fraction of many parts that have succeeded is exactly 1") func manyParts() {
        var ledger = ProgressLedger()
        for part in 0..<10_000 { ledger.added(Int64(part % 7)) }
        for part in 0..<10_000 { ledger.advanced(part, weight: Int64(part % 7), to: Double(part % 11) / 11) }
        for part in 0..<10_000 { ledger.ended(part, weight: Int64(part % 7)) }
        #expect(ledger.fraction == 1)
    }
}
