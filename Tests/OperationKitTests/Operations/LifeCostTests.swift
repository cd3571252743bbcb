#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What one life costs, in counts that do not depend on the machine. The article Performance states them.
@Suite("Cost of a life") struct LifeCostTests {
    /// Counts the places that one thread comes by.
    private final class Counter: SchedulingProbe.Observer {
        var locks = 0
        var notifications: [String] = []
        let queue = HeldQueue()

        func reached(_ place: SchedulingProbe.Place) {
            switch place {
            case .locking: locks += 1
            case .didChange(_, let key): notifications.append(key)
            case .unlocked, .willChange, .told: break
            }
        }

        func makeQueue() -> CompositeQueue { queue }

        func runWorker(_ work: @escaping @Sendable () -> Void) { work() }
    }

    private func count(_ body: () throws -> Void) rethrows -> (locks: Int, notifications: [String]) {
        let counter = Counter()
        try SchedulingProbe.observed(by: counter, body)
        return (counter.locks, counter.notifications)
    }

    /// The record of a start has the name of the operation.
    private static var locksOfALife: Int { OperationDiagnostics.level != .off ? 11 : 10 }

    @Test("A life takes the lock ten times, and announces once each change that Foundation listens to") func life() {
        let operation = ScriptedOperation { $0.finish() }
        let cost = count { operation.start() }
        // Eight for the events (start, execution, whether main may be called, finish, delivery, end, announcement, return
        // of main), and Foundation asks for isExecuting and isFinished while it is told of them.
        #expect(cost.locks == Self.locksOfALife)
        #if canImport(ObjectiveC)
        #expect(cost.notifications == ["isExecuting", "isExecuting", "isFinished"])
        #else
        #expect(cost.notifications == ["isExecuting", "isFinished"])
        #endif
    }

    @Test("A life that is cancelled before its start takes the lock five times, and announces only its end")
    func cancelledLife() {
        let operation = ScriptedOperation { $0.finish() }
        operation.cancel()
        let cost = count { operation.start() }
        #expect(cost.locks == 5)
        #expect(cost.notifications == ["isFinished"])
    }

    /// Once for its name, twice when it is added with the compound, once when the compound starts, and twice when it has
    /// ended.
    @Test("A child takes the lock six times more than its life") func child() {
        func locks(_ count: Int) -> Int {
            let counter = Counter()
            SchedulingProbe.observed(by: counter) {
                let children = (0..<count).map { _ in ScriptedOperation { $0.finish() } }
                let compound = CompoundOperation(operations: children)
                compound.start()
                counter.queue.startAll()
                #expect(compound.isFinished)
            }
            return counter.locks
        }
        // Few enough for one worker, and for one portion when they are asked what they are like.
        #expect(locks(200) - locks(100) == 100 * (Self.locksOfALife + 6))
    }

    /// No operation of the queue's for each child, and after 256 of them others get their turn. Where several workers may
    /// be at work, each requests the next one; the last of these finds nothing left.
    @Test(
        "A thousand children take four turns of the queue, or five where more than one may run at the same time",
        arguments: [(1, 4), (2, 5), (-1, 5)]
    )
    func turns(limit: Int, turns: Int) {
        let counter = Counter()
        SchedulingProbe.observed(by: counter) {
            let children = (0..<1_000).map { _ in ScriptedOperation { $0.finish() } }
            let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: limit)
            compound.start()
            counter.queue.startAll()
            #expect(compound.isFinished)
        }
        #expect(counter.queue.additions == turns)
    }

    @Test("Cancelling a compound in the `didCancel()` of each child costs each child the same")
    func cancelledInEachHook() {
        func locks(_ count: Int) -> Int {
            let counter = Counter()
            SchedulingProbe.observed(by: counter) {
                let holder = Shared<CompoundOperation?>(nil)
                let children = (0..<count).map { _ in
                    ScriptedOperation(
                        main: { _ in },
                        didCancel: {
                            holder.value?.cancel()
                            $0.finish()
                        })
                }
                let compound = CompoundOperation(operations: children)
                holder.value = compound
                compound.start()
                counter.queue.startAll()
                compound.cancel()
                #expect(compound.isFinished)
                holder.value = nil
            }
            return counter.locks
        }
        #expect(locks(150) - locks(100) == locks(100) - locks(50))
    }

    @Test("The record of a child takes at most 48 bytes") func bytes() {
        #expect(MemoryLayout<ChildTable.Record>.stride <= 48)
    }
}
#endif
