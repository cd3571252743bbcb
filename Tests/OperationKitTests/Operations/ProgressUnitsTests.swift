import OperationKitTestSupport

@testable import OperationKit

@Suite("The units of a leaf", .hangGuard) struct ProgressUnitsTests {
    @Test("Units that a child changes after its failure do not count") func unitsAfterFailure() async {
        let failed = ScriptedOperation {
            $0.progress.totalUnitCount = 4
            $0.finish(withError: TestError.first)
        }
        let running = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [failed, running])
        let progress = compound.progress
        compound.start()
        await eventually("not ended") { failed.isFinished && running.isAtWork }
        await eventually("not counted") { progress.fractionCompleted == 0.5 }
        failed.progress.completedUnitCount = 1
        #expect(progress.fractionCompleted == 0.5)
        running.finish()
        await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
        #expect(progress.fractionCompleted == 1)
    }

    @Test("A mapped operation takes the fraction of what it maps, from 0 before its start to 1 after its success")
    func mapped() async throws {
        let begun = Gate()
        let step = Step<Int, Int> { _, _ in begun.open() }
        let mapped = step.map { $0 }.with(input: 1)
        let progress = mapped.progress
        #expect(progress.fractionCompleted == 0)
        mapped.start()
        await begun.opened()
        step.progress.totalUnitCount = 4
        for completed in 1...3 {
            step.progress.completedUnitCount = Int64(completed)
            #expect(progress.fractionCompleted == Double(completed) / 4)
        }
        step.finish(with: 2)
        #expect(try await mapped.value == 2)
        #expect(progress.fractionCompleted == 1)
    }

    @Test("Units that are published late do not set a progress back") func unitsThatAreLate() {
        let progress = OperationProgress(of: AsyncOperation(), unitCount: -1)
        progress.publish(3 / 5, of: 5)
        progress.publish(2 / 5, of: 5)
        progress.publish(0, of: -1)
        #expect(progress.completedUnitCount == 3 && progress.totalUnitCount == 5)
    }

    @Test("The units of a composite are those that it counts, exactly", arguments: [1, 3, 7, 1_000_000, 999_999_999])
    func exactUnits(total: Int64) {
        let progress = OperationProgress(of: AsyncOperation(), unitCount: -1)
        #expect(progress.isIndeterminate)
        for completed in [0, total / 3, total / 2, total - 1, total] {
            progress.publish(Double(completed) / Double(total), of: total)
            #expect(progress.completedUnitCount == completed && progress.totalUnitCount == total)
        }
    }
}
