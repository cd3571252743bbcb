import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: counts", .hangGuard) struct CompoundCountTests {
    @Test("A compound says how many children have finished, whatever their outcome, and how many there are")
    func counts() async throws {
        let hold = ScriptedOperation.idle()
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            AsyncOperation()
            ScriptedOperation { $0.finish(withError: TestError.first) }
            hold
            BlockOperation {}
        }
        #expect(compound.operationCount == 4 && compound.finishedOperationCount == 0)
        await compound.start(until: hold)
        #expect(compound.operationCount == 4 && compound.finishedOperationCount == 2)
        try compound.addOperation(BlockOperation {})
        #expect(compound.operationCount == 5)
        hold.finish()
        try? await compound.finished()
        #expect(compound.operationCount == 5 && compound.finishedOperationCount == 5)
    }

    @Test("The units of a compound's progress are weights, its fraction is finer, its description counts children")
    func units() async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let compound = CompoundOperation()
        try compound.addOperation(first, progressWeight: 3)
        try compound.addOperation(second)
        let progress = compound.progress
        #expect(progress.totalUnitCount == 4 && progress.completedUnitCount == 0)
        #if !canImport(ObjectiveC)
        #expect(progress.localizedDescription == "0 of 2 operations have finished")
        let single = CompoundOperation(operations: [AsyncOperation()])
        #expect(single.progress.localizedDescription == "0 of 1 operation has finished")
        let macro = MacroOperation(IOBlockOperation<Int, Int> { $0 })
        #expect(macro.progress.localizedDescription == "")
        #endif
        await compound.start(until: first, second)
        second.progress.totalUnitCount = 2
        second.progress.completedUnitCount = 1
        #expect(progress.completedUnitCount == 0 && progress.fractionCompleted == 0.125)
        first.finish()
        // A worker that has not returned from the start of the child counts it, after this.
        await eventually("not counted") { compound.finishedOperationCount == 1 }
        #expect(progress.completedUnitCount == 3 && progress.totalUnitCount == 4)
        #if !canImport(ObjectiveC)
        #expect(progress.localizedDescription == "1 of 2 operations have finished")
        #endif
        second.finish(withError: TestError.first)
        try? await compound.finished()
        #expect(progress.completedUnitCount == 4 && progress.totalUnitCount == 4 && progress.fractionCompleted == 1)
    }

    @Test("A compound that is added while progress is observed reports how far it has come")
    func addedInside() async throws {
        let (first, second) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        let compound = CompoundOperation()
        let progress = compound.progress
        try compound.addOperation(CompoundOperation(operations: [first, second]))
        await compound.start(until: first, second)
        first.finish()
        await eventually("not reported") { progress.fractionCompleted == 0.5 }
        second.finish()
        try await compound.finished()
    }

    @Test("A composite that is fed stays small, also if children end before what they depend on")
    func slots() async throws {
        let hold = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [hold])
        compound.start()
        for _ in 0..<50 {
            let (first, second) = (ScriptedOperation.idle(), AsyncOperation())
            second.addDependency(first)
            try compound.addOperations([first, second])
            second.cancel()
            await eventually("has not ended") { second.isFinished }
            first.finish()
            await eventually("has not ended") { compound.operationCount - compound.finishedOperationCount == 1 }
        }
        #expect(compound.slotCount < 10)
        hold.finish()
        try? await compound.finished()
    }

    @Test("Progress that is kept after its compound is gone still shows its units")
    func progressThatIsKept() async throws {
        let progress = Shared<Progress?>(nil)
        do {
            let compound = CompoundOperation(operations: [AsyncOperation(), AsyncOperation()])
            progress.value = compound.progress
            try await OperationQueue().run(compound)
        }
        await eventually("not complete") { progress.value?.completedUnitCount == 2 }
        #expect(progress.value?.totalUnitCount == 2)
    }
}

extension AsyncOperation {
    var slotCount: Int {
        (children as? ChildScheduler)?.machine.withLock { $0.readiness.table.records.count } ?? .max
    }
}
