import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What children wait for that is no child, and when it has to be observed.
@Suite("External dependencies") struct ExternalDependenciesTests {
    /// A child that waits for one operation, in a composite that runs.
    private struct Scene {
        var schedule = ReadySchedule(limit: -1)
        var externals = ExternalDependencies()
        let operation = Operation()
        private(set) var children: [ChildReference] = []

        init(children count: Int = 1) {
            schedule.started()
            for _ in 0..<count { add() }
        }

        mutating func add() {
            let child = Operation()
            let slot = schedule.added(child)
            children.append(ChildReference(slot: slot, operation: child))
            externals.awaited(operation, by: slot, in: &schedule)
            schedule.registered(slot, priority: .normal)
        }

        mutating func end(_ child: Int) {
            schedule.ended(children[child].slot)
            externals.childEnded(children[child].slot, in: &schedule)
        }

        mutating func changes() -> ExternalDependencies.Changes? { externals.takeChanges(isStarted: true) }
    }

    @Test("What several children wait for is observed once, and not before they may start")
    func observedOnce() {
        var scene = Scene(children: 3)
        let changes = scene.externals.takeChanges(isStarted: false)
        #expect(changes == nil)
        let changes2 = scene.changes()
        #expect(changes2?.toObserve == [scene.operation])
        let changes3 = scene.changes()
        #expect(changes3 == nil)
    }

    @Test("Its end makes the children ready, and is noticed once")
    func end() {
        var scene = Scene(children: 2)
        let next = scene.schedule.startNext()
        #expect(next == nil)
        scene.externals.finished(scene.operation, in: &scene.schedule)
        scene.externals.finished(scene.operation, in: &scene.schedule)
        let next2 = scene.schedule.startNext()
        #expect(next2 == scene.children[0].slot)
        let next3 = scene.schedule.startNext()
        #expect(next3 == scene.children[1].slot)
    }

    @Test("When the last child that waits for it has ended, its observer is stale")
    func lastChildEnds() {
        var scene = Scene(children: 2)
        _ = scene.changes()
        let observer = FinishObserver(scene.operation) {}
        scene.externals.observed(scene.operation, by: observer)
        let unchanged = scene.changes()
        #expect(unchanged == nil)
        scene.end(0)
        let unchanged2 = scene.changes()
        #expect(unchanged2 == nil)
        scene.end(1)
        let changes = scene.changes()
        #expect(changes?.staleObservers.first === observer)
        changes?.staleObservers.first?.end()
        let later = scene.changes()
        #expect(later == nil)
    }

    @Test("An observer that comes too late, or second, is stale immediately")
    func lateObserver() {
        var scene = Scene()
        let observers = (0..<3).map { _ in FinishObserver(scene.operation) {} }
        scene.externals.observed(scene.operation, by: observers[0])
        scene.externals.observed(scene.operation, by: observers[1])
        let changes = scene.changes()
        #expect(changes?.staleObservers.first === observers[1])
        scene.externals.finished(scene.operation, in: &scene.schedule)
        let changes2 = scene.changes()
        #expect(changes2?.staleObservers.first === observers[0])
        scene.externals.observed(scene.operation, by: observers[2])
        let changes3 = scene.changes()
        #expect(changes3?.staleObservers.first === observers[2])
        for observer in observers { observer.end() }
    }

    @Test("What becomes a child is no external dependency any more, and keeps its slot")
    func adoption() {
        var scene = Scene()
        let slot = scene.schedule.table.records.firstIndex { $0.phase == .external }
        let adopted = scene.externals.adopted(scene.operation)
        #expect(adopted == slot)
        let again = scene.externals.adopted(scene.operation)
        #expect(again == nil)
        let unknown = scene.externals.adopted(Operation())
        #expect(unknown == nil)
    }

    @Test("Slots of children that end without having waited are used again")
    func abandoned() {
        var scene = Scene()
        for child in 1...100 {
            scene.add()
            scene.end(child)
        }
        #expect(scene.schedule.table.records.count <= 5)
    }

    @Test("What a child that is taken back waited for is not observed")
    func takenBack() {
        var scene = Scene()
        let slot = scene.schedule.added(Operation())
        let other = Operation()
        scene.externals.awaited(other, by: slot, in: &scene.schedule)
        scene.externals.notAwaited(other, by: slot, in: &scene.schedule)
        scene.externals.removeUnobservedThatAreNotAwaited()
        let changes = scene.changes()
        #expect(changes?.toObserve == [scene.operation])
    }
}
