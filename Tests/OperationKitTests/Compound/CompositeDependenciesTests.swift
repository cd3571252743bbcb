#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// What is recorded of the operations that composites depend on, and for how long.
@Suite("What composites are recorded to depend on", .hangGuard) struct CompositeDependenciesTests {
    @Test("A composite is recorded once for each operation, until it is freed") func freed() {
        let awaited = AsyncOperation()
        var compounds: [CompoundOperation] = []
        for _ in 0..<100 {
            let compound = CompoundOperation()
            for _ in 0..<3 { compound.addDependency(awaited) }
            compounds.append(compound)
        }
        #expect(CompositeDependencies.count(waitingFor: awaited) == 100)
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited, awaited]).count == 100)
        compounds.removeLast(60)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 40)
        compounds.removeAll()
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
    }

    @Test(
        "A composite that has started is not recorded, nor is what it is made to depend on then",
        arguments: [true, false])
    func started(isCancelled: Bool) async {
        let awaited = AsyncOperation()
        let child = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [child])
        compound.addDependency(awaited)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 1)
        if isCancelled { compound.cancel() }
        await onThread { compound.start() }
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        compound.addDependency(awaited)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        child.finish()
        _ = try? await compound.finished()
    }

    @Test("A macro that becomes part of a longer one is not recorded") func consumed() {
        let awaited = AsyncOperation()
        let macro = MacroOperation(Step.increment("first"))
        macro.addDependency(awaited)
        let longer = macro.then(Step.increment("next"))
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        longer.addDependency(awaited)
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited]).map { $0 === longer } == [true])
        withExtendedLifetime(macro) {}
    }

    /// How deep the operation is inside what is added.
    @Test(
        "What is added while the compound is being made to depend on it excludes the dependency, or is refused",
        arguments: [0, 1, 20])
    func sameTime(depth: Int) {
        for place in 0..<Interruption.bound {
            let awaited = AsyncOperation()
            let child = (0..<depth).reduce(awaited as AsyncOperation) { inner, _ in
                CompoundOperation(operations: [inner])
            }
            let compound = CompoundOperation(name: "compound")
            var isAdded = false
            let add = { isAdded = (try? compound.addOperation(child)) != nil }
            let depend = { compound.addDependency(awaited) }
            let interruption = Interruption(at: place, add)
            SchedulingProbe.observed(by: interruption) { depend() }
            if !interruption.hasRun { return }
            #expect(!isAdded || compound.dependencies.isEmpty, "at \(place)")
        }
        Issue.record("There are more places")
    }
}
#endif

extension CompositeDependencies {
    /// How many composites are in the table because they were made to depend on an operation.
    fileprivate static func count(waitingFor operation: Operation) -> Int {
        table.withLock { $0[ObjectIdentifier(operation)]?.count ?? 0 }
    }
}
