import OperationKitTestSupport

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

    @Test("An empty builder makes an empty compound, and one that throws makes none")
    func emptyAndThrowing() async throws {
        try await OperationQueue().run(CompoundOperation {})
        #expect(throws: TestError.first) {
            try CompoundOperation {
                BlockOperation {}
                try refuse()
            }
        }
    }

    @Test("A subclass that adds no designated initializer is built like a compound")
    func subclass() async throws {
        let log = EventLog()
        try await OperationQueue().run(Subclass { BlockOperation { log.add("child") } })
        #expect(log.events == ["child"])
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

    @Test("A child reaches its compound while it works, and adds to it")
    func parent() async throws {
        let log = EventLog()
        let compound = CompoundOperation {
            Step<Void, Void>("child") { step, _ in
                do {
                    try step.parentCompound?.addOperation(name: "added") { log.add("added") }
                    step.finish()
                } catch {
                    step.finish(withError: error)
                }
            }.with(input: ())
        }
        try await OperationQueue().run(compound)
        #expect(log.events == ["added"])
    }

    @Test("The compound of a step is the one around its macro, and that of a nested compound the one around that")
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
