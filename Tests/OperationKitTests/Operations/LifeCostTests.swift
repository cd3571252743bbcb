#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// What one life costs, in counts that do not depend on the machine. The article Performance states them.
///
/// Changes of state are those that Foundation is told of, each with what `isExecuting` and `isFinished` are at that moment.
@Suite("Cost of a life") struct LifeCostTests {
    /// The record of a start has the name of the operation.
    private static var locksOfALife: Int { OperationDiagnostics.level != .off ? 11 : 10 }

    @Test("A life takes the lock ten times, and announces each change before and after it, once") func life() {
        let operation = ScriptedOperation { $0.finish() }
        let cost = HeldComposites.count { _ in operation.start() }
        // Eight for the events (start, execution, whether main may be called, finish, delivery, end, announcement, return
        // of main), and Foundation asks for isExecuting and isFinished while it is told of them.
        #expect(cost.locks == Self.locksOfALife)
        let start = ["will change isExecuting: false false", "did change isExecuting: true false"]
        #if canImport(ObjectiveC)
        let end = [
            "will change isExecuting: true false", "will change isFinished: true false",
            "did change isExecuting: false true", "did change isFinished: false true",
        ]
        #else
        let end = ["will change isFinished: true false", "did change isFinished: false true"]
        #endif
        #expect(cost.announcements == start + end)
    }

    @Test("A life that is cancelled before its start takes the lock five times") func cancelledLife() {
        let operation = ScriptedOperation { $0.finish() }
        operation.cancel()
        let cost = HeldComposites.count { _ in operation.start() }
        #expect(cost.locks == 5)
        #expect(
            cost.announcements == ["will change isFinished: false false", "did change isFinished: false true"])
    }

    /// Once for its name, twice when it is added with the compound, once when the compound starts, and twice when it has
    /// ended.
    @Test("A child takes the lock six times more than its life") func child() {
        func locks(_ count: Int) -> Int {
            HeldComposites.count { queue in
                let children = (0..<count).map { _ in ScriptedOperation { $0.finish() } }
                let compound = CompoundOperation(operations: children)
                compound.start()
                queue.startAll()
                #expect(compound.isFinished)
            }.locks
        }
        // Few enough for one worker, and for one portion when they are asked what they are like.
        #expect(locks(200) - locks(100) == 100 * (Self.locksOfALife + 6))
    }

    /// No operation of the queue's for each child, and after 256 of them others get their turn. Where several workers may
    /// be at work, each requests the next one; the last of these finds nothing left.
    @Test("A thousand children take four turns of the queue, five in parallel", arguments: [(1, 4), (2, 5), (-1, 5)])
    func turns(limit: Int, turns: Int) {
        let composites = HeldComposites.count { queue in
            let children = (0..<1_000).map { _ in ScriptedOperation { $0.finish() } }
            let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: limit)
            compound.start()
            queue.startAll()
            #expect(compound.isFinished)
        }
        #expect(composites.queue.additions == turns)
    }

    @Test("A compound that each `didCancel()` cancels costs each the same") func cancelledInEachHook() {
        func locks(_ count: Int) -> Int {
            HeldComposites.count { queue in
                let holder = Shared<CompoundOperation?>(nil)
                let hook: ScriptedOperation.Script = {
                    holder.value?.cancel()
                    $0.finish()
                }
                let compound = CompoundOperation(
                    operations: (0..<count).map { _ in ScriptedOperation(main: { _ in }, didCancel: hook) })
                holder.value = compound
                compound.start()
                queue.startAll()
                compound.cancel()
                #expect(compound.isFinished)
                holder.value = nil
            }.locks
        }
        #expect(locks(150) - locks(100) == locks(100) - locks(50))
    }

    /// `BlockOperation` has no lock of the library's, and the group none but that of its operation.
    private func locksOfAnAddition(initial: Int, children: Int) throws -> Int {
        let compound = CompoundOperation(operations: (0..<initial).map { _ in BlockOperation() })
        let scheduler = ChildScheduler(limit: 1, failurePolicy: .continueAll)
        scheduler.addInitial((0..<initial).map { _ in BlockOperation() }, to: compound)
        try #require(scheduler.problem(of: compound) == nil)
        let added = (0..<children).map { _ in BlockOperation() }
        return try HeldComposites.count { _ in
            try scheduler.add(added, weight: 1, to: compound)
        }.locks
    }

    @Test("An addition takes the lock of the children three times, or four later") func additions() throws {
        // For each child, that of its compound: whether it depends on the child, and what is around it.
        #expect(try locksOfAnAddition(initial: 0, children: 1) == 3 + 2)
        #expect(try locksOfAnAddition(initial: 0, children: 10) == 3 + 2 * 10)
        #expect(try locksOfAnAddition(initial: 5, children: 1) == 4 + 2)
    }

    @Test("The record of a child takes at most 48 bytes") func bytes() {
        #expect(MemoryLayout<ChildTable.Record>.stride <= 48)
    }
}
#endif
