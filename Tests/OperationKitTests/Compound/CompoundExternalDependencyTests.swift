import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: external dependencies", .hangGuard) struct CompoundExternalDependencyTests {
    @Test("Children of every class wait for dependencies of every class", arguments: ChildKind.allCases, [-1, 1, 2])
    func everyClass(_ kind: ChildKind, limit: Int) async throws {
        let external = kind.make("external") {}
        let early = Shared(0)
        let children = ChildKind.allCases.map { $0.make { if !external.isFinished { early.change { $0 += 1 } } } }
        for child in children { child.addDependency(external) }
        let free = ScriptedOperation()
        let compound = CompoundOperation(operations: children + [free], maxConcurrentOperationCount: limit)
        compound.start()
        try await free.finished()
        #expect(!compound.isFinished && children.allSatisfy { !$0.isFinished })
        OperationQueue().addOperation(external)
        try await compound.finished()
        #expect(early.value == 0)
    }

    /// What they wait for: one operation of a kind, or each for one of its own; and one that is added as a child.
    @Test(
        "Many children that wait for external dependencies, also such that come late, cost linear time",
        arguments: [ChildKind.block, .asynchronous, .foreign, nil])
    func manyChildren(_ kind: ChildKind?) async throws {
        // Quadratic cost would take minutes here, which the time limit of the suite does not allow.
        let children = (0..<TestExtent.choose(1_000, long: 20_000)).map { _ in ScriptedOperation() }
        let externals = kind.map { [$0.make {}] } ?? children.map { _ in ScriptedOperation() as Operation }
        for (index, child) in children.enumerated() { child.addDependency(externals[index % externals.count]) }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: 2)
        // Has the state machine count them once.
        try compound.addOperation(ScriptedOperation())
        let late = ScriptedOperation()
        for child in children { child.addDependency(late) }
        try compound.addOperation(late)
        compound.start()
        let queue = OperationQueue()
        for external in externals { queue.addOperation(external) }
        try await compound.finished()
    }

    @Test(
        "A cancelled compound does not wait for external dependencies, which keep nothing of it alive, and may finish",
        arguments: ChildKind.allCases, [false, true])
    func cancelledCompound(_ kind: ChildKind, isCancelledBefore: Bool) async throws {
        let (external, tracker) = (kind.make("external") {}, LeakTracker())
        for _ in 0..<10 {
            let children = ChildKind.allCases.map { tracker.track($0.make { Issue.record("a cancelled child ran") }) }
            for child in children { child.addDependency(external) }
            let compound = tracker.track(CompoundOperation(operations: children))
            if isCancelledBefore { compound.cancel() }
            compound.start()
            compound.cancel()
            try? await compound.finished()
            #expect(compound.isFinished && children.allSatisfy { $0.isFinished } && !external.isFinished)
        }
        await tracker.expectAllReleased()
        #expect((external as? AsyncOperation)?.withState { $0.observers.isEmpty } != false)
        try await OperationQueue().run(external)
    }

    private func addCancelled(waitingFor external: Operation, to compound: CompoundOperation) async throws {
        let child = ScriptedOperation { _ in Issue.record("a cancelled child ran") }
        child.addDependency(external)
        try compound.addOperation(child)
        child.cancel()
        try? await child.finished()
        #expect(child.isFinished)
    }

    @Test("An operation outside, also a rejected one, is let go of when the last child that waits for it is cancelled")
    func releasesDependency() async throws {
        let (tracker, hold, waiting) = (LeakTracker(), ScriptedOperation.idle("hold"), ScriptedOperation("waiting"))
        let compound = CompoundOperation(operations: [hold])
        compound.start()
        for count in [1, 50] {
            for _ in 0..<count {
                try await addCancelled(waitingFor: tracker.track(ScriptedOperation.idle("external")), to: compound)
            }
            await tracker.expectAllReleased()
        }
        do {
            let external = tracker.track(ScriptedOperation("external"))
            waiting.addDependency(external)
            try compound.addOperation(waiting)
            try await addCancelled(waitingFor: external, to: compound)
            let cycle = [ScriptedOperation("one"), ScriptedOperation("other")]
            for (child, other) in zip(cycle, cycle.reversed()) { child.addDependency(other) }
            #expect(throws: CompoundOperationError.self) { try compound.addOperations([external] + cycle) }
            cycle[0].removeDependency(cycle[1])
            waiting.cancel()
            try? await waiting.finished()
        }
        await tracker.expectAllReleased()
        #expect(!compound.isFinished && compound.slotCount < 20)
        hold.finish()
        try await compound.finished()
    }

    @Test("What children wait for stays while one does, and what has ended does not pile up", arguments: [false, true])
    func keepsDependency(isInside: Bool) async throws {
        let (external, waiting) = (ScriptedOperation.idle("external"), ScriptedOperation("waiting"))
        waiting.addDependency(external)
        let compound = CompoundOperation(operations: isInside ? [external, waiting] : [waiting])
        compound.start()
        for _ in 0..<100 { try await addCancelled(waitingFor: external, to: compound) }
        let cycle = [ScriptedOperation("one"), ScriptedOperation("other")]
        for (child, other) in zip(cycle, cycle.reversed()) { child.addDependencies([external, other]) }
        #expect(throws: CompoundOperationError.self) { try compound.addOperations(cycle) }
        cycle[0].removeDependency(cycle[1])
        try await addCancelled(waitingFor: AsyncOperation(), to: compound)
        try compound.addOperations(cycle + [ScriptedOperation("next")])
        #expect(!waiting.isFinished && compound.slotCount < 20)
        if isInside {
            external.start()
        } else {
            external.addDependency(waiting)
            #expect(throws: CompoundOperationError.self) { try compound.addOperation(external) }
            #expect(compound.progress.totalUnitCount == 105)
            external.removeDependency(waiting)
            try compound.addOperation(external)
            await eventually("the dependency that became a child does not run") { external.isAtWork }
        }
        external.finish()
        try await compound.finished()
        #expect(waiting.error == nil && cycle.allSatisfy(\.isFinished))
    }

    @Test("External dependencies that children wait for are observed, each by one observer") func observers() {
        var (readiness, externals) = (ReadinessStateMachine(limit: -1), ExternalDependencies())
        readiness.started()
        let (operation, other) = (Operation(), Operation())
        let slots = [readiness.table.insert(Operation()), readiness.table.insert(Operation())]
        externals.awaited(operation, by: slots[0], in: &readiness)
        readiness.registered(slots[0], priority: .normal)
        // The other one is that of a child that is taken back.
        externals.awaited(other, by: slots[1], in: &readiness)
        externals.notAwaited(other, by: slots[1], in: &readiness)
        externals.removeUnobservedThatAreNotAwaited()
        #expect(externals.takeChanges(isStarted: true)?.toObserve == [operation])
        let observers = (0..<2).map { _ in FinishObserver(operation) {} }
        for observer in observers { externals.observed(operation, by: observer) }
        let stale = externals.takeChanges(isStarted: true)?.staleObservers ?? []
        #expect(stale.count == 1 && stale.first === observers[1])
        for observer in observers { observer.end() }
    }

    @Test("An external dependency is not released under a lock") func releasesUnlocked() async throws {
        let (compound, child, isFree) = (CompoundOperation(), ScriptedOperation(), Shared<Bool?>(nil))
        do {
            let released = Released { [unowned compound] in
                isFree.value = answersOnAnotherThread { _ = compound.maxConcurrentOperationCount }
            }
            let external = ScriptedOperation { _ in released.use() }
            child.addDependency(external)
            try compound.addOperation(child)
            child.removeDependency(external)
        }
        #expect(isFree.value == nil)
        try await OperationQueue().run(compound)
        await eventually("the operation outside is held") { isFree.value != nil }
        #expect(isFree.value == true)
    }

    enum Moment: CaseIterable { case initializer, beforeTheStart, whileItRuns }

    enum State: CaseIterable { case executing, finished, released }

    /// A child that waits for an operation that never ends, in a compound to which it is added at some moment.
    private func compound(with child: Operation, at moment: Moment) throws -> CompoundOperation {
        let hold = ScriptedOperation.idle("hold")
        let compound = CompoundOperation(operations: moment == .initializer ? [child, hold] : [hold])
        if moment == .beforeTheStart { try compound.addOperation(child) }
        compound.start()
        if moment == .whileItRuns { try compound.addOperation(child) }
        hold.finish()
        return compound
    }

    @Test("A child whose own state needs no dependency does not wait", arguments: Moment.allCases, State.allCases)
    func aState(moment: Moment, state: State) async throws {
        let never = ScriptedOperation.idle("never")
        let child = ScriptedOperation("child") { if state == .released { $0.finish() } }
        if state != .released { child.start() }
        if state == .finished { child.finish() }
        child.addDependency(never)
        if state == .released { child.removeDependency(never) }
        let compound = try compound(with: child, at: moment)
        if state == .executing { elsewhere { child.finish() } }
        try await compound.finished()
        #expect(child.isFinished)
        // A cancelled one of any class does not, either.
        for kind in ChildKind.allCases {
            let cancelled = kind.make { Issue.record("It runs.") }
            cancelled.addDependency(never)
            cancelled.cancel()
            try await self.compound(with: cancelled, at: moment).finished()
            #expect(cancelled.isFinished)
        }
    }

    @Test("A child that is given a dependency before its turn waits for it", arguments: [false, true])
    func dependencyInItsTurn(isFirst: Bool) async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let child = ScriptedOperation("child")
        if !isFirst { child.addDependency(second) }
        let compound = CompoundOperation(operations: [first, second, child], maxConcurrentOperationCount: 2)
        await compound.start(until: first, second)
        // The turn of the child comes when the second one ends.
        child.addDependency(first)
        if !isFirst { child.removeDependency(second) }
        second.finish()
        await eventually("does not wait") { compound.debugDescription.contains("“child”: waiting for “first”") }
        if isFirst { child.removeDependency(first) }
        #expect(!child.isExecuting)
        first.finish()
        try await compound.finished()
        #expect(child.isFinished && child.error == nil)
    }
}
