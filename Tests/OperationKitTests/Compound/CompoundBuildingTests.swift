import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: building", .hangGuard) struct CompoundBuildingTests {
    @Test("A builder takes operations, sequences, conditions, loops, calls, in their order", arguments: [true, false])
    func statements(isThorough: Bool) async throws {
        let log = EventLog()
        let compound = CompoundOperation(name: "Build", maxConcurrentOperationCount: 1) {
            let first = ThrowingBlockOperation { log.add("first") }
            let last = BlockOperation { log.add("last") }
            last.addDependency(first)
            last
            first
            [ThrowingBlockOperation { log.add("a") }, ThrowingBlockOperation { log.add("b") }]
            if isThorough { TaskOperation { log.add("thorough") } }
            if !isThorough {
                BlockOperation { log.add("quick") }
            } else {
                BlockOperation { log.add("slow") }
            }
            if #available(macOS 13, iOS 16, *) { BlockOperation { log.add("available") } }
            for index in 1...2 { ScriptedOperation.named("\(index)", in: log) }
        }
        #expect(compound.name == "Build" && compound.maxConcurrentOperationCount == 1)
        try await OperationQueue().run(compound)
        let branches = isThorough ? ["thorough", "slow"] : ["quick"]
        #expect(Set(log.events) == Set(["first", "last", "a", "b", "available", "1", "2"] + branches))
        #expect(log.events.firstIndex(of: "first")! < log.events.firstIndex(of: "last")!)
    }

    @Test("A builder may be empty, throw, or make a subclass") func emptyAndThrowing() async throws {
        func refuse() throws { throw TestError.first }
        let log = EventLog()
        try await OperationQueue().run(CompoundOperation {})
        try await OperationQueue().run(Subclass { BlockOperation { log.add("child") } })
        #expect(log.events == ["child"])
        #expect(throws: TestError.first) {
            try CompoundOperation {
                BlockOperation {}
                try refuse()
            }
        }
    }

    @Test("A child, a step and a nested compound reach the compound around them") func nearestCompound() throws {
        let step = IOBlockOperation<Int, Int> { $0 }
        let macro = MacroOperation(step)
        let inner = CompoundOperation(operations: [macro])
        let outer = CompoundOperation(operations: [inner])
        #expect(step.parentCompound === inner && macro.parentCompound === inner && inner.parentCompound === outer)
        let block = BlockOperation()
        try outer.addOperation(block)
        #expect(outer.parentCompound == nil && block.parentCompound == nil)
    }

    private final class Subclass: CompoundOperation, @unchecked Sendable {}
}

@Suite("Compound: counts", .hangGuard) struct CompoundCountTests {
    @Test("A compound counts its children, and those that have finished somehow, and its progress their weights")
    func counts() async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let compound = CompoundOperation()
        try compound.addOperation(first, progressWeight: 3)
        try compound.addOperation(second)
        let progress = compound.progress
        #expect(progress.totalUnitCount == 4 && progress.completedUnitCount == 0)
        #expect(compound.operationCount == 2 && compound.finishedOperationCount == 0)
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
        try compound.addOperation(BlockOperation {})
        #expect(compound.operationCount == 3)
        second.finish(withError: TestError.first)
        try? await compound.finished()
        #expect(compound.operationCount == 3 && compound.finishedOperationCount == 3)
        #expect(progress.completedUnitCount == 5 && progress.totalUnitCount == 5 && progress.fractionCompleted == 1)
    }

    @Test("Progress that is kept after its compound is gone still shows its units, also those of one added inside")
    func progressThatIsKept() async throws {
        let (first, second) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        let progress: Progress
        do {
            let compound = CompoundOperation(operations: [AsyncOperation()])
            progress = compound.progress
            try compound.addOperation(CompoundOperation(operations: [first, second]))
            await compound.start(until: first, second)
            first.finish()
            await eventually("not reported") { progress.fractionCompleted == 0.75 }
            second.finish()
            try await compound.finished()
        }
        await eventually("not complete") { progress.completedUnitCount == 2 }
        #expect(progress.totalUnitCount == 2)
    }
}

extension AsyncOperation {
    var slotCount: Int {
        (children as? ChildScheduler)?.machine.withLock { $0.readiness.table.records.count } ?? .max
    }
}
