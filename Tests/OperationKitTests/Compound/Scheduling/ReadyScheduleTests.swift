import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The pure part of the scheduler, one rule at a time, without a thread.
@Suite("Ready schedule") struct ReadyScheduleTests {
    /// Holds the value, because an expectation cannot change a variable.
    private final class Box {
        var schedule: ReadySchedule
        init(_ schedule: ReadySchedule) { self.schedule = schedule }
        func callAsFunction<Answer>(_ event: (inout ReadySchedule) -> Answer) -> Answer { event(&schedule) }
    }

    private func make(
        limit: Int = -1, children count: Int, dependencies: [(Int, Int)] = [],
        priorities: [Int: Operation.QueuePriority] = [:]
    ) -> Box {
        var schedule = ReadySchedule(limit: limit)
        for _ in 0..<count { _ = schedule.addedChild() }
        for (child, dependency) in dependencies { schedule.table.addDependency(of: child, on: dependency) }
        for slot in 0..<count { schedule.registered(slot, priority: priorities[slot] ?? .normal) }
        schedule.started()
        return Box(schedule)
    }

    /// Begins and ends children one after the other, as one worker does with synchronous children.
    private func run(_ box: Box) -> [Int] {
        var order: [Int] = []
        while let slot = box.schedule.startNext() {
            order.append(box.schedule.table.records[slot].ordinal)
            box.schedule.ended(slot)
        }
        return order
    }

    @Test("Children start in the order of their addition") func order() {
        let box = make(children: 5)
        #expect(run(box) == [0, 1, 2, 3, 4])
        #expect(box.schedule.table.remaining == 0)
    }

    @Test("Priority comes before the order of addition") func priority() {
        let box = make(children: 5, priorities: [1: .veryLow, 2: .high, 4: .veryHigh])
        #expect(run(box) == [4, 2, 0, 3, 1])
    }

    @Test("A child waits for all that it depends on") func dependencies() {
        let box = make(children: 4, dependencies: [(0, 3), (0, 2), (2, 3)])
        #expect(run(box) == [1, 3, 2, 0])
    }

    @Test("Nothing starts before the composite, nor before a child is registered") func registration() {
        let box = Box(ReadySchedule(limit: -1))
        let first = box.schedule.addedChild()
        let second = box.schedule.addedChild()
        box.schedule.registered(first, priority: .normal)
        #expect(box { $0.startNext() } == nil)
        #expect(!box { $0.requestWorkerIfNeeded() })
        box.schedule.started()
        #expect(box { $0.startNext() } == first)
        #expect(box { $0.startNext() } == nil)
        box.schedule.registered(second, priority: .normal)
        #expect(box { $0.startNext() } == second)
    }

    @Test("The limit counts children that run") func limit() {
        let box = make(limit: 2, children: 4)
        let first = box.schedule.startNext()
        #expect(box { $0.startNext() } != nil)
        #expect(box { $0.startNext() } == nil)
        box.schedule.ended(first!)
        #expect(box { $0.startNext() } != nil)
        box.schedule.limitChanged(to: 3)
        #expect(box { $0.startNext() } != nil)
        #expect(box { $0.startNext() } == nil)
    }

    @Test(
        "As many workers are requested as have a place and work",
        arguments: [(-1, 100, 64), (-1, 3, 3), (2, 100, 2), (2, 1, 1), (0, 100, 0)])
    func workers(limit: Int, children: Int, workers: Int) {
        let box = make(limit: limit, children: children)
        var count = 0
        while box({ $0.requestWorkerIfNeeded() }) {
            // One at a time.
            #expect(!box { $0.requestWorkerIfNeeded() })
            box.schedule.workerStarted()
            #expect(box { $0.startNext() } != nil)
            count += 1
        }
        #expect(count == workers)
    }

    @Test("A detached child leaves its worker to others, but keeps its place") func detached() {
        let box = make(limit: 2, children: 4)
        #expect(box { $0.requestWorkerIfNeeded() })
        box.schedule.workerStarted()
        for _ in 0..<2 {
            let slot = box.schedule.startNext()!
            box.schedule.detached(slot)
        }
        #expect(box { $0.startNext() } == nil)
        box.schedule.workerLeft()
        #expect(!box { $0.requestWorkerIfNeeded() })
        // Where the queue begins children itself, those that run on count.
        #expect(box.schedule.queueSettings.limit == 2)
        box.schedule.ended(0)
        let third = box.schedule.startNext()!
        box.schedule.handedToQueue(third)
        #expect(box.schedule.queueSettings.limit == 1)
        box.schedule.ended(third)
        #expect(box.schedule.queueSettings.limit == 2)
    }

    @Test("A suspension keeps children and workers back") func suspension() {
        let box = make(children: 2)
        box.schedule.suspensionChanged(to: true)
        #expect(box { $0.startNext() } == nil)
        #expect(!box { $0.requestWorkerIfNeeded() })
        box.schedule.suspensionChanged(to: false)
        #expect(box { $0.requestWorkerIfNeeded() })
    }

    @Test("Cancelled children end, whatever they wait for") func cancelled() {
        let box = make(limit: 0, children: 3, dependencies: [(0, 1), (1, 2), (2, 0)])
        box.schedule.suspensionChanged(to: true)
        box.schedule.cancellationStarted()
        #expect(box.schedule.cancelsNewChildren)
        #expect(box { $0.startNext() } == nil)
        box.schedule.cancelled()
        #expect(box.schedule.queueSettings.limit == 1 && !box.schedule.queueSettings.isSuspended)
        #expect(box { $0.requestWorkerIfNeeded() })
        #expect(run(box) == [0, 1, 2])
    }

    @Test("Nothing starts while the children are being cancelled") func cancelling() {
        let box = make(children: 2)
        box.schedule.cancellationStarted()
        #expect(box { $0.startNext() } == nil)
        #expect(!box { $0.requestWorkerIfNeeded() })
        box.schedule.cancelled()
        #expect(run(box) == [0, 1])
    }

    @Test("A child that ignores its dependencies does not wait") func ignoredDependencies() {
        let box = make(children: 3, dependencies: [(1, 0), (2, 1)])
        let first = box.schedule.startNext()!
        #expect(box { $0.startNext() } == nil)
        box.schedule.ignoresDependencies(1)
        #expect(run(box) == [1, 2])
        box.schedule.ended(first)
        #expect(box.schedule.table.remaining == 0)
    }

    @Test("A slot is used again once nothing refers to it") func slotsAreUsedAgain() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box.schedule.cancellationStarted()
        box.schedule.cancelled()
        // The dependent ends first. What it depends on still knows its slot.
        let first = box.schedule.startNext()!
        let second = box.schedule.startNext()!
        box.schedule.ended(second)
        let third = box.schedule.addedChild()
        #expect(third != second && third != first)
        box.schedule.ended(first)
        #expect([first, second].contains(box { $0.addedChild() }))
        #expect(box.schedule.table.added == 4)
    }

    @Test("A composite that is fed forever uses few slots") func fewSlots() {
        let box = make(limit: 1, children: 1)
        for _ in 0..<1_000 {
            let running = box.schedule.startNext()!
            let next = box.schedule.addedChild()
            box.schedule.table.addDependency(of: next, on: running)
            box.schedule.registered(next, priority: .normal)
            box.schedule.ended(running)
            #expect(next < 3)
        }
    }

    @Test("A cycle is found wherever on it the search begins") func cycles() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 1), (4, 3), (5, 0)]
        for start in 0..<6 {
            let box = make(children: 6, dependencies: edges)
            let isOnCycle = [1, 2, 3].contains(start)
            let path = box.schedule.table.dependencyCycle(through: [start])
            #expect(path.map(Set.init) == (isOnCycle ? [1, 2, 3] : nil))
            #expect(box { $0.table.dependencyCycle(through: 0..<6) }.map(Set.init) == [1, 2, 3])
            if let path {
                for (child, next) in zip(path, path.dropFirst() + path.prefix(1)) {
                    #expect(edges.contains { $0 == (child, next) })
                }
            }
        }
    }

    @Test("A long chain has no cycle, and is searched without recursion") func longChain() {
        let count = 100_000
        let box = make(children: count, dependencies: (1..<count).map { ($0, $0 - 1) })
        #expect(box { $0.table.dependencyCycle(through: 0..<count) } == nil)
        box.schedule.table.addDependency(of: 0, on: count - 1)
        #expect(box { $0.table.dependencyCycle(through: [5]) }?.count == count)
    }

    @Test("A child waits for external dependencies") func externalDependency() {
        let box = Box(ReadySchedule(limit: -1))
        let first = box.schedule.addedChild()
        let external = box.schedule.addedExternal()
        box.schedule.table.addDependency(of: first, on: external)
        box.schedule.registered(first, priority: .normal)
        box.schedule.started()
        #expect(box.schedule.table.remaining == 1)
        #expect(box { $0.startNext() } == nil)
        box.schedule.externalEnded(external)
        #expect(run(box) == [0])
        #expect(box { $0.addedChild() } != box { $0.addedChild() })
    }

    @Test("An external dependency may become a child") func adoption() {
        let box = Box(ReadySchedule(limit: -1))
        let first = box.schedule.addedChild()
        let second = box.schedule.addedExternal()
        box.schedule.table.addDependency(of: first, on: second)
        box.schedule.adopted(second, .placeholder)
        box.schedule.table.addDependency(of: second, on: first)
        #expect(box { $0.table.dependencyCycle(through: [second]) }.map(Set.init) == [first, second])
        box.schedule.table.removeDependency(of: second, on: first)
        box.schedule.takenBack(second)
        box.schedule.registered(first, priority: .normal)
        box.schedule.started()
        #expect(box { $0.startNext() } == nil)
        box.schedule.externalEnded(second)
        #expect(run(box) == [0])
        #expect(box.schedule.table.added == 1 && box.schedule.table.remaining == 0)
    }

    @Test("Taking back a child leaves no trace") func takenBack() {
        let box = make(children: 2)
        let third = box.schedule.addedChild()
        box.schedule.table.addDependency(of: third, on: 0)
        box.schedule.table.removeDependency(of: third, on: 0)
        box.schedule.takenBack(third)
        #expect(box.schedule.table.added == 2)
        #expect(box { $0.addedChild() } == third)
        box.schedule.takenBack(third)
        #expect(run(box) == [0, 1])
    }

    @Test("Dependencies can be counted anew") func countedAnew() {
        let box = Box(ReadySchedule(limit: -1))
        for _ in 0..<3 { _ = box { $0.addedChild() } }
        let external = box { $0.addedExternal() }
        box.schedule.table.addDependency(of: 0, on: external)
        box.schedule.table.addDependency(of: 1, on: 0)
        box.schedule.table.removeDependencies()
        box.schedule.table.addDependency(of: 0, on: 2)
        for slot in 0..<3 { box.schedule.registered(slot, priority: .normal) }
        box.schedule.started()
        #expect(run(box) == [1, 2, 0])
    }

    @Test("A child that has started is on no cycle any more") func startedChildrenAndCycles() {
        // The second one was cancelled by itself, and runs though it waits for the first one.
        let box = make(children: 2, dependencies: [(1, 0), (0, 1)])
        #expect(box { $0.table.dependencyCycle(through: 0..<2)?.sorted() } == [0, 1])
        box.schedule.ignoresDependencies(1)
        #expect(box { $0.startNext() } == 1)
        box.schedule.detached(1)
        #expect(box { $0.table.dependencyCycle(through: [0]) } == nil)
    }

    @Test("A dependency that is not there cannot be taken back") func missingDependency() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box.schedule.table.removeDependency(of: 0, on: 1)
        #expect(run(box) == [0, 1])
    }

    @Test("A child whose dependencies do not matter any more starts, where there is no order to keep")
    func releasedChildren() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box { $0.ignoresDependencies(1) }
        #expect(box { $0.startNext() } == 0)
        #expect(box { $0.startNext() } == 1)
    }

    @Test("Where an order is kept, a child whose dependencies do not matter waits for its siblings, and only for these")
    func releasedSteps() {
        var schedule = ReadySchedule(limit: -1, keepsOrder: true)
        let slots = (0..<2).map { _ in schedule.addedChild() }
        let external = schedule.addedExternal()
        schedule.table.addDependency(of: slots[1], on: slots[0])
        schedule.table.addDependency(of: slots[1], on: external)
        for slot in slots { schedule.registered(slot, priority: .normal) }
        schedule.started()
        let box = Box(schedule)
        box { $0.ignoresDependencies(slots[1]) }
        #expect(box { $0.startNext() } == slots[0])
        #expect(box { $0.startNext() } == nil)
        box { _ = $0.ended(slots[0]) }
        #expect(box { $0.startNext() } == slots[1])
    }

    @Test("The slots of children that ended before what they depend on can be used again")
    func forgottenDependents() {
        let box = make(children: 1)
        let external = box { $0.addedExternal() }
        #expect(box { $0.startNext() } == 0)
        for _ in 0..<100 {
            let slot = box { $0.addedChild() }
            box {
                $0.table.addDependency(of: slot, on: external)
                $0.registered(slot, priority: .normal)
                $0.ignoresDependencies(slot)
            }
            #expect(box { $0.startNext() } == slot)
            box {
                $0.ended(slot)
                $0.table.removeEndedDependents(of: external)
            }
        }
        #expect(box.schedule.table.records.count == 3)
        box { $0.externalEnded(external) }
        box { _ = $0.ended(0) }
        #expect(box.schedule.table.remaining == 0)
    }

    @Test("Once all children have ended nothing is paused, so that a worker on its way arrives", arguments: [0, 1, -1])
    func settingsAfterTheEnd(limit: Int) {
        let box = make(limit: limit, children: 0)
        box { $0.suspensionChanged(to: true) }
        #expect(box.schedule.queueSettings.isSuspended)
        box { $0.finished() }
        #expect(!box.schedule.queueSettings.isSuspended && box.schedule.queueSettings.limit != 0)
    }
}

extension Operation {
    /// Stands for every child: the schedule does not look at its operations.
    fileprivate static let placeholder = Operation()
}

extension ReadySchedule {
    fileprivate mutating func addedChild() -> Int { added(.placeholder) }
}
