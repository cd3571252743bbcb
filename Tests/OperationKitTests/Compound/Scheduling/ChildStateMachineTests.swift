import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What follows from each event, without a thread.
@Suite("Child state machine") struct ChildStateMachineTests {
    private typealias Effects = ChildStateMachine.Effects

    private final class Scene {
        var machine: ChildStateMachine
        let compound = CompoundOperation()
        let operations: [Operation]

        init(
            children count: Int, limit: Int = 1, policy: FailurePolicy = .continueAll,
            isProgressObserved: Bool = false
        ) {
            operations = (0..<count).map { _ in AsyncOperation() }
            machine = ChildStateMachine(limit: limit, failureRules: .init(policy: policy, countsCancellations: false))
            if isProgressObserved { _ = machine.progressObserved() }
            _ = machine.composite.attach(
                to: compound, CompositeHandlers(start: {}, finished: { _, _ in }))
            _ = machine.addedInitially(operations)
        }

        func callAsFunction(_ event: (inout ChildStateMachine) -> Effects) -> Effects { event(&machine) }

        /// - Returns: What follows from the start.
        func start() -> Effects {
            let (_, slots, isCancelled) = machine.prepared()
            let children = machine.schedule.table.children(in: slots)
            _ = machine.registered(children.map { ChildRegistration($0, isCancelled: isCancelled) })
            return machine.started()
        }

        func add(_ operations: [Operation]) -> (added: Effects, committed: Effects?) {
            var registrations = operations.map { ChildRegistration(adding: $0, weight: 1) }
            let added = machine.adding(&registrations)
            return (added, added.rejection == nil ? machine.committed(registrations) : nil)
        }

        func end(_ child: ChildReference?, error: (any Error)? = nil, turn: WorkerStep = .continues) -> Effects {
            guard let child else { return Effects() }
            let failure = error.map {
                ChildFailure(
                    SuboperationError(name: "child", index: machine.ordinal(of: child), error: $0),
                    of: child.operation, isCancellation: $0.isCancellation)
            }
            return machine.childEnded(ChildEnd(child: child, failure: failure, turn: turn))
        }
    }

    @Test("The start requests a worker, which starts child after child, and the last end completes the composite")
    func life() throws {
        let scene = Scene(children: 2)
        #expect(scene.start().requestsWorker)
        let first = scene { $0.workerStarted() }
        #expect(first.next?.operation === scene.operations[0] && !first.requestsWorker)
        let second = scene.end(first.next)
        #expect(second.next?.operation === scene.operations[1] && second.finished == nil)
        let last = scene.end(second.next)
        #expect(last.next == nil)
        let completion = try #require(last.finished)
        #expect(completion.composite === scene.compound && completion.failures.errors.isEmpty)
    }

    @Test("A composite without children is complete when it starts, and lets go of itself")
    func empty() {
        let scene = Scene(children: 0)
        #expect(scene.start().finished?.composite === scene.compound)
        let changed = scene { $0.limitChanged(to: 3) }
        #expect(changed.finished == nil)
    }

    @Test("Progress is reported before the next child starts, which the following event returns")
    func progress() throws {
        let scene = Scene(children: 2, isProgressObserved: true)
        _ = scene.start()
        let first = scene { $0.workerStarted() }.next
        let ended = scene.end(first)
        let report = try #require(ended.progress)
        #expect(report.composite === scene.compound && report.fraction == 0.5)
        #expect(ended.next == nil && !ended.requestsWorker)
        // It keeps its place, and what it reports now counts no more.
        let changed = scene { $0.limitChanged(to: 1) }
        #expect(changed.requestsWorker == false)
        #expect(scene.machine.childProgressed(scene.operations[0], to: 0.9) == nil)
        let end = try #require(report.end)
        let reported = scene { $0.progressReported(end) }
        #expect(reported.next?.operation === scene.operations[1])
    }

    @Test("The second end of a child has no effect but for its worker", arguments: [true, false])
    func secondEnd(isProgressObserved: Bool) throws {
        let scene = Scene(children: 2, limit: 2, isProgressObserved: isProgressObserved)
        _ = scene.start()
        let first = scene { $0.workerStarted() }.next
        _ = scene.end(first, turn: .none)
        let again = scene.end(first)
        #expect(again.next?.operation === scene.operations[1])
        #expect(again.progress == nil && again.ended == nil && again.finished == nil)
    }

    @Test("A child that ends while its worker leaves it gives its place back, also if its progress is reported first")
    func endWhileWorkerLeaves() throws {
        let scene = Scene(children: 1, isProgressObserved: true)
        _ = scene.start()
        let arrived = scene { $0.workerStarted() }
        let child = try #require(arrived.next)
        let end = try #require(scene.end(child, turn: .none).progress?.end)
        let detached = scene { $0.detached(child, turn: .continues) }
        #expect(detached.next == nil)
        #expect(scene.machine.schedule.places.detachedCount == 1)
        let reported = scene { $0.progressReported(end) }
        #expect(reported.finished != nil)
        let places = scene.machine.schedule.places
        #expect(places.started == 0 && places.detachedCount == 0 && places.active == 0)
    }

    @Test("The first failure has the others cancelled, and none starts meanwhile")
    func failure() throws {
        let scene = Scene(children: 3, policy: .cancelRemaining)
        _ = scene.start()
        let first = scene { $0.workerStarted() }.next
        let ended = scene.end(first, error: TestError.first)
        #expect(ended.cancelsChildren && ended.next == nil)
        let thread = ObjectIdentifier(Thread.current)
        let effects = scene { $0.cancellationStarted(by: thread) }
        let requests = try #require(effects.requests)
        #expect(requests.cancel.count == 2 && requests.cancellingThread == thread)
        // From a hook of one of them.
        let again = scene { $0.cancellationStarted(by: thread) }
        #expect(again.requests == nil)
        let cancelled = scene { $0.childrenCancelled(by: thread) }
        #expect(cancelled.requestsWorker)
        let second = scene { $0.workerStarted() }
        let completion = try #require(scene.end(scene.end(second.next).next).finished)
        #expect(completion.failures.errors.map(\.index) == [0])
    }

    @Test("A child that is handed to the queue is started by it, and its worker goes on where there is room")
    func handedToQueue() throws {
        let scene = Scene(children: 2, limit: 1)
        _ = scene.start()
        let arrived = scene { $0.workerStarted() }
        let first = try #require(arrived.next)
        let effects = scene { $0.handedToQueue(first, turn: .continues) }
        #expect(effects.queued?.operation === first.operation && effects.next == nil)
        #expect(effects.requestsWorker)
    }

    @Test("The queue is told of a limit once, and what has changed meanwhile is told by the thread that tells it")
    func settings() throws {
        let scene = Scene(children: 1)
        let unchanged = scene { $0.limitChanged(to: 1) }
        #expect(unchanged.settings == nil)
        let effects = scene { $0.limitChanged(to: 2) }
        let first = try #require(effects.settings)
        #expect(first == QueueSettings(limit: 2, isSuspended: false))
        let suspended = scene { $0.suspensionChanged(to: true) }
        #expect(suspended.settings == nil)
        let second = scene.machine.settingsApplied(first).next
        #expect(second == QueueSettings(limit: 2, isSuspended: true))
        #expect(scene.machine.settingsApplied(try #require(second)).next == nil)
    }

    @Test("When the last child has ended, the queue is not paused any more: a worker may be on its way")
    func settingsAtTheEnd() {
        let scene = Scene(children: 1)
        _ = scene.start()
        let child = scene { $0.workerStarted() }.next
        _ = scene { $0.suspensionChanged(to: true) }.settings.map { scene.machine.settingsApplied($0) }
        #expect(scene.end(child).settings == QueueSettings(limit: 1, isSuspended: false))
    }

    @Test("A child that is added while the children are cancelled is cancelled before it can start")
    func additionToCancelled() {
        let scene = Scene(children: 1)
        _ = scene.start()
        _ = scene { $0.cancellationStarted(by: ObjectIdentifier(Thread.current)) }
        let child = AsyncOperation()
        let (added, committed) = scene.add([child])
        #expect(added.requests?.cancel == [child] && added.requests?.cancellingThread == nil)
        #expect(committed?.requests == nil)
    }

    @Test("Of children that are added while progress is observed, theirs is observed, too")
    func additionToObserved() {
        let scene = Scene(children: 0, isProgressObserved: true)
        let child = AsyncOperation()
        let requests = scene.add([child]).added.requests
        #expect(requests?.reportProgress == [child] && requests?.cancel == [])
    }

    @Test("Children are rejected together, and leave no trace")
    func rejections() throws {
        let scene = Scene(children: 1)
        let pair = [AsyncOperation(), AsyncOperation()]
        guard case .duplicate(let twice) = scene.add([pair[0], pair[0]]).added.rejection else {
            Issue.record("A child that is there twice is added.")
            return
        }
        #expect(twice === pair[0])
        pair[0].addDependency(pair[1])
        pair[1].addDependency(pair[0])
        // Operations in a cycle hold each other.
        defer { pair[0].removeDependency(pair[1]) }
        guard case .cycle(let cycle) = scene.add(pair).added.rejection else {
            Issue.record("A cycle is added.")
            return
        }
        #expect(Set(cycle.map(\.index)) == [1, 2])
        #expect(scene.machine.operations == scene.operations)
        _ = scene.start()
        let arrived = scene { $0.workerStarted() }
        #expect(scene.end(arrived.next).finished != nil)
        guard case .finished = scene.add([AsyncOperation()]).added.rejection else {
            Issue.record("A child is added to a composite that has finished.")
            return
        }
    }

    @Test("A child that is being added keeps the composite from ending, and does not start before it is committed")
    func additionWhileTheLastChildEnds() throws {
        let scene = Scene(children: 1)
        _ = scene.start()
        let first = scene { $0.workerStarted() }.next
        var registrations = [ChildRegistration(adding: AsyncOperation(), weight: 1)]
        let added = scene { $0.adding(&registrations) }
        #expect(added.rejection == nil)
        let ended = scene.end(first)
        #expect(ended.finished == nil && ended.next == nil)
        let committed = scene { $0.committed(registrations) }
        #expect(committed.requestsWorker)
    }

    @Test("A child that was expected takes its place in the progress in one step") func expectedChild() {
        let scene = Scene(children: 1)
        _ = scene { $0.workChanged { $0.added(9) } }
        var registrations = [ChildRegistration(adding: AsyncOperation(), weight: 9)]
        _ = scene { $0.adding(&registrations, inPlaceOf: 9) }
        #expect(scene.machine.ledger.units?.total == 10)
    }

    @Test("A child that was cancelled by itself starts before what it depends on has ended")
    func cancelledChild() {
        let scene = Scene(children: 2, limit: 2)
        scene.operations[1].addDependency(scene.operations[0])
        _ = scene.start()
        let arrived = scene { $0.workerStarted() }
        #expect(arrived.next?.operation === scene.operations[0])
        let cancelled = scene { $0.childCancelled(scene.operations[1]) }
        #expect(cancelled.requestsWorker)
        let unknown = scene { $0.childCancelled(Operation()) }
        #expect(!unknown.requestsWorker)
    }

    @Test("An external dependency is observed when the children start, and its end makes a child ready")
    func externalDependency() {
        let scene = Scene(children: 1)
        let external = AsyncOperation()
        scene.operations[0].addDependency(external)
        let started = scene.start()
        #expect(started.externals?.toObserve == [external] && !started.requestsWorker)
        let finished = scene { $0.externalDependencyFinished(external) }
        #expect(finished.requestsWorker)
    }

    @Test("A child that may have dependencies has to release them when it has ended")
    func dependencies() {
        let scene = Scene(children: 2)
        scene.operations[1].addDependency(scene.operations[0])
        _ = scene.start()
        let first = scene { $0.workerStarted() }
        let second = scene.end(first.next)
        #expect(second.ended == nil)
        #expect(scene.end(second.next).ended === scene.operations[1])
    }
}

extension ChildStateMachine.Effects {
    fileprivate var progress: ChildStateMachine.ProgressReport? { others?.progress }
    fileprivate var externals: ExternalDependencies.Changes? { others?.externals }
    fileprivate var requests: ChildStateMachine.ChildRequests? { others?.requests }
    fileprivate var rejection: ChildStateMachine.Rejection? { others?.rejection }
    fileprivate var finished: ChildStateMachine.Completion? { others?.finished }
}
