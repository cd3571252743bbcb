import OperationKitTestSupport

@testable import OperationKit

@Suite("Progress at the end", .hangGuard) struct ProgressEndTests {
    #if DEBUG
    /// Ends a leaf on another thread, at each place of a call in turn, and says where the leaf is not complete then. Its
    /// completion block asks for the progress, too, unless the call has to be the first one that does.
    private static func incomplete(
        _ call: @escaping @Sendable (Progress) -> Void, isAsked: Bool, isAskedInBlock: Bool = true
    ) async -> [String] {
        await onThread {
            var incomplete: [String] = []
            for place in 0..<Interruption.bound {
                let (leaf, fraction) = (ScriptedOperation.idle(), Shared(1.0))
                leaf.asyncCompletionBlock = { [unowned leaf] _ in
                    if isAskedInBlock { fraction.value = leaf.progress.fractionCompleted }
                }
                leaf.start()
                if isAsked { leaf.progress.totalUnitCount = 4 }
                let interruption = Interruption(at: place) {
                    if !answersOnAnotherThread({ leaf.finish() }) { incomplete.append("place \(place) hangs") }
                }
                SchedulingProbe.observed(by: interruption) { call(leaf.progress) }
                if !interruption.hasRun { return place > 2 ? incomplete : ["only \(place) places"] }
                let fractions = [fraction.value, leaf.progress.fractionCompleted]
                if fractions != [1, 1] { incomplete.append("place \(place): \(fractions) in the block and at last") }
            }
            return incomplete
        }
    }

    @Test("A leaf that is changed or asked while another thread ends it is complete") func aLeaf() async {
        #expect(await Self.incomplete({ $0.completedUnitCount = 1 }, isAsked: true) == [])
        #expect(await Self.incomplete({ _ in }, isAsked: false) == [])
        #expect(await Self.incomplete({ _ in }, isAsked: false, isAskedInBlock: false) == [])
    }
    #endif

    @Test("A progress above counts a leaf that succeeds once, whatever units the leaf has", arguments: [-1, 1, 20, 24])
    func aProgressAboveCountsALeafOnce(total: Int64) {
        let app = Progress.discreteProgress(totalUnitCount: 4)
        let leaf = ScriptedOperation.idle()
        app.addChild(leaf.progress, withPendingUnitCount: 2)
        leaf.progress.totalUnitCount = total
        let parts = (0..<max(0, total)).map { _ in Progress.discreteProgress(totalUnitCount: 3) }
        for part in parts { leaf.progress.addChild(part, withPendingUnitCount: 1) }
        for part in parts.dropFirst(1) { part.completedUnitCount = 1 }
        for part in parts.dropFirst(9) { part.completedUnitCount = 3 }
        leaf.start()
        leaf.finish()
        #expect(app.completedUnitCount == 2 && app.fractionCompleted == 0.5)
        #expect(leaf.progress.fractionCompleted == 1 && leaf.progress.isFinished)
    }

    @Test(
        "A leaf whose total is not known, or not known any more, says so, and is complete in the end",
        arguments: [[-1], [0], [5, -1], [5, 0], [-7, -1], [5, -1, 7]] as [[Int64]], [false, true])
    func unknownTotal(totals: [Int64], hasPart: Bool) throws {
        let leaf = ScriptedOperation.idle()
        let (progress, part) = (leaf.progress, Progress(totalUnitCount: 3))
        leaf.start()
        for total in totals { progress.totalUnitCount = total }
        if hasPart { progress.addChild(part, withPendingUnitCount: 1) }
        part.completedUnitCount = 2
        progress.completedUnitCount = 3
        let last = try #require(totals.last)
        #expect(progress.isIndeterminate == (last <= 0) && progress.totalUnitCount == (last == 0 ? -1 : last))
        #expect(progress.completedUnitCount == 3 && (0...1).contains(progress.fractionCompleted))
        leaf.finish()
        #expect(progress.fractionCompleted == 1 && progress.isFinished && !progress.isIndeterminate)
        #expect(progress.completedUnitCount == progress.totalUnitCount)
    }

    @Test("A progress below a leaf counts and is cancelled with it, until its success", arguments: [2, 3, 7])
    func aProgressBelow(total: Int64) {
        let (leaf, app) = (ScriptedOperation.idle(), Progress.discreteProgress(totalUnitCount: 2))
        app.addChild(leaf.progress, withPendingUnitCount: 2)
        leaf.progress.totalUnitCount = total
        let parts = (0..<3).map { _ in Progress.discreteProgress(totalUnitCount: 4) }
        for part in parts.prefix(2) { leaf.progress.addChild(part, withPendingUnitCount: 1) }
        leaf.start()
        parts[0].completedUnitCount = 4
        parts[1].completedUnitCount = 1
        #expect(abs(leaf.progress.fractionCompleted - 1.25 / Double(total)) < 1e-9)
        #expect(leaf.progress.completedUnitCount == 1)
        leaf.progress.cancel()
        #expect(parts[1].isCancelled && leaf.isCancelled)
        leaf.finish()
        leaf.progress.addChild(parts[2], withPendingUnitCount: 1)
        for count in [2, 3, 4] as [Int64] {
            #expect(leaf.progress.fractionCompleted == 1 && app.fractionCompleted == 1)
            for part in parts.dropFirst() { part.completedUnitCount = count }
        }
        #expect(leaf.progress.fractionCompleted == 1 && app.fractionCompleted == 1)
        #expect(leaf.progress.totalUnitCount == total && leaf.progress.completedUnitCount == total)
    }

    @Test("Operations below one progress of the user's may end at the same time") func belowOneProgress() async {
        for round in 0..<TestExtent.choose(5, long: 20) {
            let app = Progress.discreteProgress(totalUnitCount: 2_000)
            let operations = (0..<2_000).map { _ in ScriptedOperation.idle() }
            for operation in operations {
                operation.progress.totalUnitCount = 2
                app.addChild(operation.progress, withPendingUnitCount: 1)
                operation.start()
            }
            await concurrently(
                (0..<4).map { lane in
                    {
                        for (index, operation) in operations.enumerated() where index % 4 == lane {
                            operation.progress.completedUnitCount = 1
                            operation.finish()
                        }
                    }
                })
            #expect(app.completedUnitCount == 2_000 && app.fractionCompleted == 1, "round \(round)")
            if app.fractionCompleted != 1 { return }
        }
    }

    @Test("Units of a composite are exact, and never fall", arguments: [1, 3, 7, 1_000_000, 999_999_999])
    func exactUnits(total: Int64) {
        let progress = OperationProgress(of: AsyncOperation(), unitCount: -1)
        #expect(progress.isIndeterminate)
        for completed in [0, total / 3, total / 2, total - 1, total] {
            progress.publish(Double(completed) / Double(total), of: total)
            if completed > 0 {
                progress.publish(Double(completed - 1) / Double(total), of: total)
                progress.publish(0, of: -1)
            }
            #expect(progress.completedUnitCount == completed && progress.totalUnitCount == total)
        }
    }

    @Test("Units that are set on the progress of a composite are ignored") func unitsOfComposites() {
        let attempt: @Sendable (Int) -> TaskOperation<Int> = { _ in TaskOperation { 1 } }
        let composites: [AsyncOperation] = [
            RetryOperation(makeOperation: attempt), HedgedOperation(after: .seconds(1), makeOperation: attempt),
            CompoundOperation(), CompoundOperation(operations: [AsyncOperation(), AsyncOperation()]),
            MacroOperation(Step.increment("step")),
        ]
        for composite in composites {
            let around = CompoundOperation(operations: [composite])
            let (progress, total) = (composite.progress, composite.progress.totalUnitCount)
            _ = around.progress
            for (completed, newTotal) in [(1, 1), (-7, Int64.max)] as [(Int64, Int64)] {
                progress.completedUnitCount = completed
                progress.totalUnitCount = newTotal
                #expect(progress.completedUnitCount == 0 && progress.totalUnitCount == total, "\(composite)")
                #expect(around.progress.fractionCompleted == 0, "\(composite)")
            }
        }
    }
}
