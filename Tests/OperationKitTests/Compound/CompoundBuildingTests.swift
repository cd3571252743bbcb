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
            for index in 1...2 {
                AsyncBlockOperation { finish in
                    log.add("\(index)"); finish(nil)
                }
            }
        }
        #expect(compound.name == "Build")
        #expect(compound.maxConcurrentOperationCount == 1)
        try await OperationQueue().run(compound)
        let branches = isThorough ? ["thorough", "slow"] : ["quick"]
        #expect(Set(log.events) == Set(["first", "last", "a", "b", "available", "1", "2"] + branches))
        #expect(log.events.firstIndex(of: "first")! < log.events.firstIndex(of: "last")!)
    }

    @Test("An empty builder makes an empty compound, one that throws none, and a subclass may have one, too")
    func emptyAndThrowing() async throws {
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

    @Test("Blocks and asynchronous closures become children, with their names, errors and weights")
    func blocks() async throws {
        let compound = CompoundOperation(name: "Blocks", maxConcurrentOperationCount: 1)
        let block = try compound.addOperation(name: "block") { throw TestError.numbered(1) }
        let task = try compound.addOperation(name: "task", progressWeight: 3) {
            await Task.yield()
            throw TestError.numbered(2)
        }
        #expect(type(of: block) == ThrowingBlockOperation.self)
        #expect(type(of: task) == TaskOperation<Void>.self)
        await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(compound) }
        let errors = (compound.error as? CompoundOperationError)?.suboperationErrors ?? []
        #expect(errors.map(\.name) == ["block", "task"])
        #expect(errors.compactMap { $0.error as? TestError } == [TestError.numbered(1), TestError.numbered(2)])
    }

    @Test("A child reaches its compound, a step that around its macro, and a nested compound the one around that")
    func nearestCompound() throws {
        let step = IOBlockOperation<Int, Int> { $0 }
        let macro = MacroOperation(step)
        let inner = CompoundOperation(operations: [macro])
        let outer = CompoundOperation(operations: [inner])
        #expect(step.parentCompound === inner)
        #expect(macro.parentCompound === inner)
        #expect(inner.parentCompound === outer)
        #expect(outer.parentCompound == nil)
        let block = BlockOperation()
        try outer.addOperation(block)
        #expect(block.parentCompound == nil)
    }

    private func refuse() throws { throw TestError.first }

    private final class Subclass: CompoundOperation, @unchecked Sendable {}
}

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
