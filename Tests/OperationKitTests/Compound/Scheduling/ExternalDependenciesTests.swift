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
            let slot = schedule.table.insert(child)
            children.append(ChildReference(slot: slot, operation: child))
            externals.awaited(operation, by: slot, in: &schedule)
            schedule.registered(slot, priority: .normal)
        }

        mutating func changes() -> ExternalDependencies.Changes? { externals.takeChanges(isStarted: true) }
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

    @Test("What a child that is taken back waited for is not observed")
    func takenBack() {
        var scene = Scene()
        let slot = scene.schedule.table.insert(Operation())
        let other = Operation()
        scene.externals.awaited(other, by: slot, in: &scene.schedule)
        scene.externals.notAwaited(other, by: slot, in: &scene.schedule)
        scene.externals.removeUnobservedThatAreNotAwaited()
        let changes = scene.changes()
        #expect(changes?.toObserve == [scene.operation])
    }
}
