import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What must not happen before the private queue has a lower limit that another thread is about to set.
@Suite("Held by the settings of the private queue") struct HeldBySettingsTests {
    private final class Scene {
        private var machine = ChildStateMachine(
            limit: 2, failureRules: .init(policy: .continueAll, countsCancellations: false))
        private let compound = CompoundOperation()
        private let operations = (0..<4).map { _ in AsyncOperation() }
        private let scheduler = ChildScheduler(limit: 2, failurePolicy: .continueAll)

        init() {
            _ = machine.composite.attach(to: compound, CompositeHandlers(start: {}, finished: { _, _ in }))
            _ = machine.addedInitially(operations)
            let (_, slots, isCancelled) = machine.prepared()
            let children = machine.schedule.table.children(in: slots)
            _ = machine.registered(children.map { ChildRegistration($0, isCancelled: isCancelled) })
            _ = machine.started()
        }

        func callAsFunction<Answer>(_ event: (inout ChildStateMachine) -> Answer) -> Answer { event(&machine) }

        func worker() -> ChildWorker { ChildWorker(scheduler, priority: .normal) }
    }

    @Test("A worker whose child goes on leaves after the queue has its lower limit, if that starts children itself")
    func leavingWorker() throws {
        let scene = Scene()
        let first = try #require(scene { $0.workerStarted() }.next)
        let second = try #require(scene { $0.workerStarted() }.next)
        let handed = scene { $0.handedToQueue(second, turn: .leaves) }
        #expect(handed.queued?.operation === second.operation)
        let settings = try #require(scene { $0.limitChanged(to: 3) }.settings)
        let detached = scene { $0.detached(first, turn: .leaves) }
        #expect(detached.settings == nil)
        let worker = scene.worker()
        let leaves = scene { $0.workerLeaves(worker) }
        #expect(!leaves)
        let (next, held) = scene { $0.settingsApplied(settings) }
        #expect(next == QueueSettings(limit: 2, isSuspended: false) && held.leavingWorkers.isEmpty)
        let following = try #require(next)
        let answer = scene { $0.settingsApplied(following) }
        #expect(answer.next == nil && answer.held.leavingWorkers.count == 1)
        #expect(answer.held.leavingWorkers.first === worker)
        let other = scene.worker()
        let otherLeaves = scene { $0.workerLeaves(other) }
        #expect(otherLeaves)
    }

    @Test("A worker leaves although the queue is given its settings, if all children are started by workers")
    func workerWithoutQueuedChildren() throws {
        let scene = Scene()
        let child = try #require(scene { $0.workerStarted() }.next)
        let changed = scene { $0.limitChanged(to: 3) }
        #expect(changed.settings != nil)
        _ = scene { $0.detached(child, turn: .leaves) }
        let worker = scene.worker()
        let leaves = scene { $0.workerLeaves(worker) }
        #expect(leaves)
    }

    @Test("A child is handed to the queue after the queue has its lower limit") func queuedChild() throws {
        let scene = Scene()
        let child = try #require(scene { $0.workerStarted() }.next)
        let settings = try #require(scene { $0.limitChanged(to: 3) }.settings)
        let handed = scene { $0.handedToQueue(child, turn: .leaves) }
        #expect(handed.queued == nil)
        let answer = scene { $0.settingsApplied(settings) }
        #expect(answer.next == nil && answer.held.queued.map(\.operation) == [child.operation])
        let again = scene { $0.settingsApplied(settings) }
        #expect(again.held.queued.isEmpty)
    }
}
