import Foundation
import Testing

@testable import OperationKit

/// The pure part of the scheduler, one rule at a time, without a thread.
@Suite("Child schedule") struct ChildScheduleTests {
    /// Holds the value, because an expectation cannot change a variable.
    private final class Box {
        var schedule: ChildSchedule
        init(_ schedule: ChildSchedule) { self.schedule = schedule }
        func callAsFunction<Answer>(_ event: (inout ChildSchedule) -> Answer) -> Answer { event(&schedule) }
    }

    private func make(
        limit: Int = -1, children count: Int, dependencies: [(Int, Int)] = [],
        priorities: [Int: Operation.QueuePriority] = [:]
    ) -> Box {
        var schedule = ChildSchedule(limit: limit)
        for _ in 0..<count { _ = schedule.addedChild() }
        for (child, dependency) in dependencies { schedule.depends(child, on: dependency) }
        for slot in 0..<count { schedule.known(slot, priority: priorities[slot] ?? .normal) }
        schedule.began()
        return Box(schedule)
    }

    /// Begins and ends children one after the other, as one worker does with synchronous children.
    private func run(_ box: Box) -> [Int] {
        var order: [Int] = []
        while let slot = box.schedule.next() {
            order.append(box.schedule.ordinal(of: slot))
            box.schedule.ended(slot)
        }
        return order
    }

    @Test func childrenBeginInTheOrderOfTheirAddition() {
        let box = make(children: 5)
        #expect(run(box) == [0, 1, 2, 3, 4])
        #expect(box.schedule.remaining == 0)
    }

    @Test func priorityComesBeforeTheOrderOfAddition() {
        let box = make(children: 5, priorities: [1: .veryLow, 2: .high, 4: .veryHigh])
        #expect(run(box) == [4, 2, 0, 3, 1])
    }

    @Test func aChildWaitsForAllItDependsOn() {
        let box = make(children: 4, dependencies: [(0, 3), (0, 2), (2, 3)])
        #expect(run(box) == [1, 3, 2, 0])
    }

    @Test func nothingBeginsBeforeTheCompoundNorBeforeAChildIsKnown() {
        let box = Box(ChildSchedule(limit: -1))
        let first = box.schedule.addedChild()
        let second = box.schedule.addedChild()
        box.schedule.known(first, priority: .normal)
        #expect(box { $0.next() } == nil)
        #expect(!box { $0.sendsForWorker() })
        box.schedule.began()
        #expect(box { $0.next() } == first)
        #expect(box { $0.next() } == nil)
        box.schedule.known(second, priority: .normal)
        #expect(box { $0.next() } == second)
    }

    @Test func theLimitCountsChildrenThatRun() {
        let box = make(limit: 2, children: 4)
        let first = box.schedule.next()
        #expect(box { $0.next() } != nil)
        #expect(box { $0.next() } == nil)
        box.schedule.ended(first!)
        #expect(box { $0.next() } != nil)
        box.schedule.limit = 3
        #expect(box { $0.next() } != nil)
        #expect(box { $0.next() } == nil)
    }

    @Test(arguments: [(-1, 100, 64), (-1, 3, 3), (2, 100, 2), (2, 1, 1), (0, 100, 0)])
    func asManyWorkersAreSentForAsHavePlaceAndWork(limit: Int, children: Int, workers: Int) {
        let box = make(limit: limit, children: children)
        var count = 0
        while box({ $0.sendsForWorker() }) {
            // One at a time.
            #expect(!box { $0.sendsForWorker() })
            box.schedule.workerCame()
            #expect(box { $0.next() } != nil)
            count += 1
        }
        #expect(count == workers)
    }

    @Test func aChildThatRunsOnLeavesItsWorkerToOthersButKeepsItsPlace() {
        let box = make(limit: 2, children: 4)
        #expect(box { $0.sendsForWorker() })
        box.schedule.workerCame()
        for _ in 0..<2 {
            let slot = box.schedule.next()!
            box.schedule.wentOn(slot)
        }
        #expect(box { $0.next() } == nil)
        box.schedule.workerLeft()
        #expect(!box { $0.sendsForWorker() })
        // Where the queue begins children itself, those that run on count.
        #expect(box.schedule.limitInForce == 2)
        box.schedule.ended(0)
        let third = box.schedule.next()!
        box.schedule.handedToQueue(third)
        #expect(box.schedule.limitInForce == 1)
        box.schedule.ended(third)
        #expect(box.schedule.limitInForce == 2)
    }

    @Test func suspensionKeepsChildrenAndWorkersBack() {
        let box = make(children: 2)
        box.schedule.isSuspended = true
        #expect(box { $0.next() } == nil)
        #expect(!box { $0.sendsForWorker() })
        box.schedule.isSuspended = false
        #expect(box { $0.sendsForWorker() })
    }

    @Test func cancelledChildrenEndWhateverTheyWaitFor() {
        let box = make(limit: 0, children: 3, dependencies: [(0, 1), (1, 2), (2, 0)])
        box.schedule.isSuspended = true
        box.schedule.cancelling()
        #expect(box.schedule.cancelsNewChildren)
        #expect(box { $0.next() } == nil)
        box.schedule.cancelled()
        #expect(box.schedule.limitInForce == 1 && !box.schedule.isSuspendedInForce)
        #expect(box { $0.sendsForWorker() })
        #expect(run(box) == [0, 1, 2])
    }

    @Test func nothingBeginsWhileTheChildrenAreBeingCancelled() {
        let box = make(children: 2)
        box.schedule.cancelling()
        #expect(box { $0.next() } == nil)
        #expect(!box { $0.sendsForWorker() })
        box.schedule.cancelled()
        #expect(run(box) == [0, 1])
    }

    @Test func aChildThatIsReleasedDoesNotWait() {
        let box = make(children: 3, dependencies: [(1, 0), (2, 1)])
        let first = box.schedule.next()!
        #expect(box { $0.next() } == nil)
        box.schedule.released(1)
        #expect(run(box) == [1, 2])
        box.schedule.ended(first)
        #expect(box.schedule.remaining == 0)
    }

    @Test func aSlotIsUsedAgainOnceNobodyKnowsIt() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box.schedule.cancelling()
        box.schedule.cancelled()
        // The dependent ends first. What it depends on still knows its slot.
        let first = box.schedule.next()!
        let second = box.schedule.next()!
        box.schedule.ended(second)
        let third = box.schedule.addedChild()
        #expect(third != second && third != first)
        box.schedule.ended(first)
        #expect([first, second].contains(box { $0.addedChild() }))
        #expect(box.schedule.added == 4)
    }

    @Test func aCompoundThatIsFedForEverUsesFewSlots() {
        let box = make(limit: 1, children: 1)
        for _ in 0..<1_000 {
            let running = box.schedule.next()!
            let next = box.schedule.addedChild()
            box.schedule.depends(next, on: running)
            box.schedule.known(next, priority: .normal)
            box.schedule.ended(running)
            #expect(next < 3)
        }
    }

    @Test func aCircleIsFoundWhereverTheSearchBegins() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 1), (4, 3), (5, 0)]
        for start in 0..<6 {
            let box = make(children: 6, dependencies: edges)
            let isOnCircle = [1, 2, 3].contains(start)
            let path = box.schedule.cycle(through: [start])
            #expect(path.map(Set.init) == (isOnCircle ? [1, 2, 3] : nil))
            #expect(box { $0.cycle(through: 0..<6) }.map(Set.init) == [1, 2, 3])
            if let path {
                for (child, next) in zip(path, path.dropFirst() + path.prefix(1)) {
                    #expect(edges.contains { $0 == (child, next) })
                }
            }
        }
    }

    @Test func aLongChainHasNoCircleAndIsSearchedWithoutRecursion() {
        let count = 100_000
        let box = make(children: count, dependencies: (1..<count).map { ($0, $0 - 1) })
        #expect(box { $0.cycle(through: 0..<count) } == nil)
        box.schedule.depends(0, on: count - 1)
        #expect(box { $0.cycle(through: [5]) }?.count == count)
    }

    @Test func aChildWaitsForOperationsOutside() {
        let box = Box(ChildSchedule(limit: -1))
        let first = box.schedule.addedChild()
        let outside = box.schedule.addedOutside()
        box.schedule.depends(first, on: outside)
        box.schedule.known(first, priority: .normal)
        box.schedule.began()
        #expect(box.schedule.remaining == 1)
        #expect(box { $0.next() } == nil)
        box.schedule.outsideEnded(outside)
        #expect(run(box) == [0])
        #expect(box { $0.addedChild() } != box { $0.addedChild() })
    }

    @Test func anOperationOutsideMayBecomeAChild() {
        let box = Box(ChildSchedule(limit: -1))
        let first = box.schedule.addedChild()
        let second = box.schedule.addedOutside()
        box.schedule.depends(first, on: second)
        box.schedule.adopted(second)
        box.schedule.depends(second, on: first)
        #expect(box { $0.cycle(through: [second]) }.map(Set.init) == [first, second])
        box.schedule.dependsNoMore(second, on: first)
        box.schedule.removed(second)
        box.schedule.known(first, priority: .normal)
        box.schedule.began()
        #expect(box { $0.next() } == nil)
        box.schedule.outsideEnded(second)
        #expect(run(box) == [0])
        #expect(box.schedule.added == 1 && box.schedule.remaining == 0)
    }

    @Test func takingBackAChildLeavesNoTrace() {
        let box = make(children: 2)
        let third = box.schedule.addedChild()
        box.schedule.depends(third, on: 0)
        box.schedule.dependsNoMore(third, on: 0)
        box.schedule.removed(third)
        #expect(box.schedule.added == 2)
        #expect(box { $0.addedChild() } == third)
        box.schedule.removed(third)
        #expect(run(box) == [0, 1])
    }

    @Test func dependenciesCanBeCountedAnew() {
        let box = Box(ChildSchedule(limit: -1))
        for _ in 0..<3 { _ = box { $0.addedChild() } }
        let outside = box { $0.addedOutside() }
        box.schedule.depends(0, on: outside)
        box.schedule.depends(1, on: 0)
        box.schedule.forgetDependencies()
        box.schedule.depends(0, on: 2)
        for slot in 0..<3 { box.schedule.known(slot, priority: .normal) }
        box.schedule.began()
        #expect(run(box) == [1, 2, 0])
    }

    @Test func whoHasBegunIsOnNoCircleAnyMore() {
        // The second one was cancelled by itself, and runs though it waits for the first one.
        let box = make(children: 2, dependencies: [(1, 0), (0, 1)])
        #expect(box { $0.cycle(through: 0..<2)?.sorted() } == [0, 1])
        box.schedule.released(1)
        #expect(box { $0.next() } == 1)
        box.schedule.wentOn(1)
        #expect(box { $0.cycle(through: [0]) } == nil)
    }

    @Test func aDependencyThatIsNotThereCannotBeTakenBack() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box.schedule.dependsNoMore(0, on: 1)
        #expect(run(box) == [0, 1])
    }

    @Test("A child whose dependencies do not matter any more begins, where there is no order to keep")
    func releasedChildren() {
        let box = make(children: 2, dependencies: [(1, 0)])
        box { $0.released(1) }
        #expect(box { $0.next() } == 0)
        #expect(box { $0.next() } == 1)
    }

    @Test("Where an order is kept, a child whose dependencies do not matter waits for its siblings, and only for these")
    func releasedSteps() {
        var schedule = ChildSchedule(limit: -1, keepsOrder: true)
        let slots = (0..<2).map { _ in schedule.addedChild() }
        let outside = schedule.addedOutside()
        schedule.depends(slots[1], on: slots[0])
        schedule.depends(slots[1], on: outside)
        for slot in slots { schedule.known(slot, priority: .normal) }
        schedule.began()
        let box = Box(schedule)
        box { $0.released(slots[1]) }
        #expect(box { $0.next() } == slots[0])
        #expect(box { $0.next() } == nil)
        box { $0.ended(slots[0]) }
        #expect(box { $0.next() } == slots[1])
    }

    @Test("The slots of children that ended before what they depend on can be used again")
    func forgottenDependents() {
        let box = make(children: 1)
        let outside = box { $0.addedOutside() }
        #expect(box { $0.next() } == 0)
        for _ in 0..<100 {
            let slot = box { $0.addedChild() }
            box {
                $0.depends(slot, on: outside)
                $0.known(slot, priority: .normal)
                $0.released(slot)
            }
            #expect(box { $0.next() } == slot)
            box {
                $0.ended(slot)
                $0.forgetEndedDependents(of: outside)
            }
        }
        #expect(box.schedule.records.count == 3)
        box { $0.outsideEnded(outside) }
        box { $0.ended(0) }
        #expect(box.schedule.remaining == 0)
    }

    @Test("Once all children have ended nothing is paused, so that a worker on its way arrives", arguments: [0, 1, -1])
    func settingsAfterTheEnd(limit: Int) {
        let box = make(limit: limit, children: 0)
        box { $0.isSuspended = true }
        #expect(box.schedule.isSuspendedInForce)
        box { $0.finished() }
        #expect(!box.schedule.isSuspendedInForce && box.schedule.limitInForce != 0)
    }
}
