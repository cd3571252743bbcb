import OperationKitTestSupport

@testable import OperationKit

@Suite("Child state machine") struct ChildStateMachineTests {
    private typealias Effects = ChildStateMachine.Effects

    private final class Scene {
        var machine: ChildStateMachine
        let compound = CompoundOperation()
        let operations: [Operation]

        /// With these operations as children, or else so many asynchronous ones.
        init(
            children count: Int = 0, of operations: [Operation]? = nil, limit: Int = 1,
            isProgressObserved: Bool = false, isStarted: Bool = false
        ) {
            self.operations = operations ?? (0..<count).map { _ in AsyncOperation() }
            machine = ChildStateMachine(limit: limit, failurePolicy: .continueAll)
            if isProgressObserved { _ = machine.progressObserved() }
            _ = machine.attached(to: compound, CompositeHandlers(start: {}, finished: { _, _ in }))
            _ = machine.addedInitially(self.operations)
            if isStarted { _ = start() }
        }

        func callAsFunction<Answer>(_ event: (inout ChildStateMachine) -> Answer) -> Answer { event(&machine) }

        func start() -> Effects {
            let (_, _, slots, isCancelled) = machine.prepared()
            let children = slots.compactMap { machine.readiness.table.child(in: $0) }
            _ = machine.registered(children.map { ChildRegistration($0, isCancelled: isCancelled) })
            return machine.started()
        }

        func next() -> ChildReference? { machine.workerStarted().next }

        func end(_ child: ChildReference?, step: WorkerStep = .continues) -> Effects {
            guard let child else { return Effects() }
            return machine.childEnded(ChildEnd(child: child, failure: nil, step: step))
        }
    }

    @Test("Progress is reported before the next child starts, with the event that follows") func progress() throws {
        let scene = Scene(children: 2, isProgressObserved: true)
        _ = scene.start()
        let first = scene.next()
        let ended = scene.end(first)
        let report = try #require(ended.progress)
        #expect(report.composite === scene.compound && report.fraction == 0.5)
        #expect(ended.next == nil && !ended.requestsWorker)
        // It keeps its place, and what it reports now counts no more.
        #expect(scene { $0.limitChanged(to: 1) }.requestsWorker == false)
        #expect(scene.machine.childProgressed(scene.operations[0], to: 0.9) == nil)
        let end = try #require(report.end)
        #expect(scene { $0.progressReported(end) }.next?.operation === scene.operations[1])
    }

    @Test("A change of the progress that is far smaller than its unit is not reported") func smallChange() {
        let scene = Scene(children: 1, isProgressObserved: true, isStarted: true)
        let fractions = [1e-13, 0.5, 0.5 + 1e-13, 0.5 + 1e-9].map {
            scene.machine.childProgressed(scene.operations[0], to: $0)?.fraction
        }
        #expect(fractions == [nil, 0.5, nil, 0.5 + 1e-9])
    }

    @Test("The second end of a child has no effect but for its worker", arguments: [true, false])
    func secondEnd(isProgressObserved: Bool) throws {
        let scene = Scene(children: 2, limit: 2, isProgressObserved: isProgressObserved)
        _ = scene.start()
        let first = scene.next()
        _ = scene.end(first, step: .none)
        let again = scene.end(first)
        #expect(again.next?.operation === scene.operations[1])
        #expect(again.progress == nil && again.finished == nil)
    }

    @Test("A child that ends while its worker leaves it gives its place back, also if its progress is reported first")
    func endWhileWorkerLeaves() throws {
        let scene = Scene(children: 1, isProgressObserved: true)
        _ = scene.start()
        let arrived = scene { $0.workerStarted() }
        let child = try #require(arrived.next)
        let end = try #require(scene.end(child, step: .none).progress?.end)
        #expect(scene { $0.detached(child, step: .continues) }.next == nil)
        #expect(scene.machine.readiness.places.detachedCount == 1)
        #expect(scene { $0.progressReported(end) }.finished != nil)
        let places = scene.machine.readiness.places
        #expect(places.started == 0 && places.detachedCount == 0 && places.active == 0)
    }

    @Test("The queue is told of a limit while it keeps one, and of changes by the thread that tells it")
    func settings() throws {
        let scene = Scene(children: 1, isStarted: true)
        #expect(scene { $0.limitChanged(to: 2) }.settings == nil)
        let child = try #require(scene.next())
        #expect(scene { $0.handedToQueue(child, step: .leaves) }.settings == nil)
        let first = try #require(scene { $0.waitsOnQueue(child) }.settings)
        #expect(first == QueueSettings(limit: 2, isSuspended: false))
        #expect(scene { $0.suspensionChanged(to: true) }.settings == nil)
        let second = scene.machine.settingsApplied(first).next
        #expect(second == QueueSettings(limit: 2, isSuspended: true))
        #expect(scene.machine.settingsApplied(try #require(second)).next == nil)
        // A worker may be on its way.
        #expect(scene.end(child, step: .none).settings == .immediate)
    }

    @Test("A worker that was on its way before the queue keeps the limit takes no child, and the next one does")
    func earlyWorker() throws {
        let scene = Scene(children: 3, limit: 2)
        #expect(scene.start().requestsWorker)
        let arrived = scene { $0.workerStarted() }
        #expect(arrived.requestsWorker)
        let child = try #require(arrived.next)
        #expect(scene { $0.handedToQueue(child, step: .continues) }.next?.operation === scene.operations[1])
        // The queue may begin the child in its place before it is told of the limit.
        let settings = try #require(scene { $0.waitsOnQueue(child) }.settings)
        let early = scene { $0.workerStarted() }
        #expect(early.next == nil && !early.requestsWorker)
        #expect(scene.machine.settingsApplied(settings).next == nil)
        #expect(scene { $0.effects() }.requestsWorker)
        #expect(scene.next()?.operation === scene.operations[2])
    }

    @Test("A child that is being added keeps the composite from ending, and does not start before it is committed")
    func additionWhileTheLastChildEnds() throws {
        let scene = Scene(children: 1)
        _ = scene.start()
        let first = scene.next()
        var registrations = [ChildRegistration(ChildReference(slot: -1, operation: AsyncOperation()), weight: 1)]
        #expect(scene { $0.adding(&registrations) }.rejection == nil)
        let ended = scene.end(first)
        #expect(ended.finished == nil && ended.next == nil)
        #expect(scene { $0.committed(registrations) }.requestsWorker)
    }

    @Test("A child that was expected takes its place in the progress in one step") func expectedChild() {
        let scene = Scene(children: 1)
        _ = scene { $0.workChanged { $0.added(9) } }
        var registrations = [ChildRegistration(ChildReference(slot: -1, operation: AsyncOperation()), weight: 9)]
        _ = scene { $0.adding(&registrations, inPlaceOf: 9) }
        #expect(scene.machine.ledger.units?.total == 10)
    }

    private let scheduler = ChildScheduler(limit: 2, failurePolicy: .continueAll)

    @Test("A worker whose child goes on leaves after the queue has its lower limit, if that starts children itself")
    func leavingWorker() throws {
        let scene = Scene(children: 4, limit: 2, isStarted: true)
        let (first, second) = (try #require(scene.next()), try #require(scene.next()))
        #expect(scene { $0.handedToQueue(second, step: .leaves) }.queued?.operation === second.operation)
        let kept = try #require(scene { $0.waitsOnQueue(second) }.settings)
        _ = scene.machine.settingsApplied(kept)
        let settings = try #require(scene { $0.limitChanged(to: 3) }.settings)
        #expect(scene { $0.detached(first, step: .leaves) }.settings == nil)
        let worker = ChildWorker(scheduler, priority: .normal)
        #expect(!scene { $0.workerLeaves(worker) })
        let applied = scene { $0.settingsApplied(settings) }
        #expect(applied.next == QueueSettings(limit: 2, isSuspended: false) && applied.held.isEmpty)
        let following = try #require(applied.next)
        let answer = scene { $0.settingsApplied(following) }
        #expect(answer.next == following && answer.held.leavingWorkers.count == 1)
        #expect(answer.held.leavingWorkers.first === worker)
        let last = scene { $0.settingsApplied(following) }
        #expect(last.next == nil && last.held.leavingWorkers.isEmpty)
        #expect(scene { $0.workerLeaves(ChildWorker(scheduler, priority: .normal)) })
    }

    @Test("A worker leaves although the queue is given its settings, if that starts no children itself")
    func workerWithoutQueuedChildren() throws {
        let scene = Scene(children: 1, limit: 2, isStarted: true)
        let child = try #require(scene.next())
        _ = scene { $0.handedToQueue(child, step: .leaves) }
        _ = scene.machine.settingsApplied(try #require(scene { $0.waitsOnQueue(child) }.settings))
        #expect(scene.end(child, step: .none).settings == .immediate)
        #expect(scene { $0.workerLeaves(ChildWorker(scheduler, priority: .normal)) })
    }

    @Test("A child is handed to the queue after the queue has its lower limit") func queuedChild() throws {
        let scene = Scene(children: 5, limit: 3, isStarted: true)
        let (first, second, third) = (
            try #require(scene.next()), try #require(scene.next()), try #require(scene.next())
        )
        _ = scene { $0.handedToQueue(first, step: .leaves) }
        let settings = try #require(scene { $0.waitsOnQueue(first) }.settings)
        let handed = scene { $0.handedToQueue(second, step: .leaves) }
        #expect(handed.queued == nil && !handed.requestsWorker)
        let answer = scene { $0.settingsApplied(settings) }
        #expect(answer.next == settings && answer.held.queued.map(\.operation) == [second.operation])
        #expect(scene { $0.handedToQueue(third, step: .leaves) }.queued == nil)
        let again = scene { $0.settingsApplied(settings) }
        #expect(again.next == settings && again.held.queued.map(\.operation) == [third.operation])
        let last = scene { $0.settingsApplied(settings) }
        #expect(last.next == nil && last.held.queued.isEmpty)
    }

    @Test("A synchronous child needs no worker, unless another thread has started it") func synchronousChild() throws {
        let scene = Scene(of: [BlockOperation {}, BlockOperation {}, AsyncOperation()])
        let started = scene.start()
        let first = try #require(started.queued)
        #expect(first.operation === scene.operations[0] && !started.requestsWorker)
        let back = scene { $0.handedBack(first) }
        #expect(back.requestsWorker && back.queued == nil && back.settings == nil)
        let again = try #require(scene.next())
        #expect(again.operation === first.operation)
        let handed = scene { $0.handedToQueue(again, step: .continues) }
        #expect(handed.queued != nil && handed.next == nil)
        let second = scene.end(again, step: .none)
        #expect(second.queued?.operation === scene.operations[1] && second.settings == nil)
        // The worker comes when the child that has ended is off the queue, and its dependents are told.
        let last = scene.end(second.queued, step: .none)
        #expect(last.requestsWorker && last.queued == nil)
        let settings = try #require(last.settings)
        #expect(settings == QueueSettings(limit: 1, isSuspended: false))
        _ = scene.machine.settingsApplied(settings)
        // The queue starts nothing any more.
        let arrived = scene { $0.workerStarted() }
        #expect(arrived.next?.operation === scene.operations[2] && arrived.settings == .immediate)
    }

    @Test("A worker that comes after the end of the last child gets through a paused queue") func lateWorker() throws {
        let scene = Scene(of: [BlockOperation {}, AsyncOperation(), AsyncOperation()], limit: 2)
        let child = try #require(scene.start().queued)
        let second = scene.next()
        let kept = scene.end(child, step: .none)
        #expect(kept.requestsWorker && kept.settings == QueueSettings(limit: 2, isSuspended: false))
        _ = scene.machine.settingsApplied(QueueSettings(limit: 2, isSuspended: false))
        let third = scene.end(second).next
        let paused = try #require(scene { $0.suspensionChanged(to: true) }.settings)
        _ = scene.machine.settingsApplied(paused)
        let last = scene.end(third)
        #expect(last.finished != nil && last.settings == QueueSettings(limit: 2, isSuspended: false))
    }

    @Test("A child that waits on the queue gives its place to others, and the queue keeps the limit")
    func lateDependency() throws {
        let scene = Scene(of: [BlockOperation {}, AsyncOperation(), BlockOperation {}])
        let child = try #require(scene.start().queued)
        let waits = scene { $0.waitsOnQueue(child) }
        #expect(waits.requestsWorker && waits.settings == QueueSettings(limit: 1, isSuspended: false))
        _ = scene.machine.settingsApplied(QueueSettings(limit: 1, isSuspended: false))
        let second = scene.next()
        #expect(second?.operation === scene.operations[1])
        // While it does, a worker looks at all of them.
        let ended = scene.end(second, step: .leaves)
        #expect(ended.queued == nil && ended.requestsWorker)
        #expect(scene.end(child, step: .none).settings == .immediate)
        // It has ended: it waits no more.
        #expect(scene { $0.waitsOnQueue(child) }.settings == nil)
    }

    @Test("A child that is given a dependency when its turn has come leaves its place") func putBack() throws {
        let scene = Scene(of: [AsyncOperation(), AsyncOperation()], limit: 1)
        _ = scene.start()
        let child = try #require(scene.next())
        child.operation.addDependency(Operation())
        let next = scene { $0.putBack(ChildRegistration(child), step: .continues) }.next
        #expect(next?.operation === scene.operations[1])
    }

    @Test("The queue keeps the limit for cancelled children that it has to end") func cancelled() throws {
        let scene = Scene(of: [BlockOperation {}, BlockOperation {}])
        let child = try #require(scene.start().queued)
        let thread = ObjectIdentifier(Thread.current)
        _ = scene { $0.cancellationStarted(by: thread) }
        #expect(scene.end(child, step: .none).queued == nil)
        #expect(scene { $0.childrenCancelled(by: thread) }.requestsWorker)
        let second = try #require(scene.next())
        let handed = scene { $0.handedToQueue(second, step: .continues) }
        #expect(handed.settings == QueueSettings(limit: 1, isSuspended: false))
        _ = scene.machine.settingsApplied(QueueSettings(limit: 1, isSuspended: false))
        #expect(scene.end(second, step: .none).settings == nil)
    }
}

extension ChildStateMachine.Effects {
    fileprivate var requestsWorker: Bool { worker != nil }
    fileprivate var progress: ChildStateMachine.ProgressReport? { others?.value.progress }
    fileprivate var rejection: ChildStateMachine.Rejection? { others?.value.rejection }
    fileprivate var finished: ChildStateMachine.Completion? { others?.value.finished }
}

@Suite("Ready queue") struct ReadyQueueTests {
    @Test("Children come out by priority and order, in whatever order they became ready") func everyOrder() {
        var random = SplitMix64(seed: 7)
        let priorities: [Operation.QueuePriority] = [.veryHigh, .normal, .low]
        for count in 1...40 {
            var queue = ReadyQueue()
            var ordinals = (0..<count).map { $0 }
            let late = ordinals.removeLast()
            for ordinal in ordinals.shuffled(using: &random) {
                queue.insert((ordinal, ordinal), priority: priorities[ordinal % 3])
            }
            let first = queue.popFirst()
            #expect(first == (count == 1 ? nil : 0))
            queue.insert((late, late), priority: priorities[late % 3])
            var order: [Int] = []
            while let ordinal = queue.popFirst() { order.append(ordinal) }
            let expected = (0..<count).dropFirst(count == 1 ? 0 : 1).sorted { ($0 % 3, $0) < ($1 % 3, $1) }
            #expect(order == expected && queue.isEmpty)
        }
    }
}

/// The body of a composite on the thread of a worker, which is to go on with the children when the body waits.
@Suite("Bodies on threads of workers", .hangGuard) struct CompositeBodyTests {
    @Test("A worker that was to run the body first is needed again when that does not wait") func request() async {
        let body = CompositeBody()
        let child = ObjectIdentifier(body)
        await withCheckedContinuation { continuation in
            body.stay(asWorker: true)
            #expect(!body.takesWorkerRequest(), "It may compute for long.")
            #expect(body.beganWait(for: child, continuation) && body.takesWorkerRequest())
            #expect(body.childEnded(child) && !body.childEnded(child))
            #expect(!body.takesWorkerRequest() && !body.run())
        }
    }

    @Test("A child that is added just before the end of a wait begins") func addedBeforeTheEnd() async throws {
        let hasRun = Gate()
        let add = Shared<@Sendable () throws -> Void>({})
        let workflow = WorkflowOperation { flow in
            // The body goes on on the thread of this one.
            try await flow.run(ThrowingBlockOperation {})
            let id = ObjectIdentifier(hasRun)
            await withCheckedContinuation { continuation in
                #expect(flow.children.body?.beganWait(for: id, continuation) == true)
                expectNoError { try add.value() }
                flow.children.tellBody(ofEnd: id)
                block(until: hasRun)
            }
        }
        add.change {
            $0 = { [unowned workflow] in try workflow.addOperation(ThrowingBlockOperation { hasRun.open() }) }
        }
        OperationQueue().addOperation(workflow)
        try await workflow.finished()
    }
}
