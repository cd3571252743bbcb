import Foundation

/// Runs the children of one composite on its private queue.
///
/// ``ChildStateMachine`` decides, a lock guards it, and its effects are performed after unlocking: see ``update(_:)``. Ready
/// `AsyncOperation`s are started by workers, operations of the private queue each of which calls `start()` on one child after
/// the other. So inside a child the current queue is the private one, and a thousand quick children cost one operation of
/// the queue, not a thousand.
///
/// How other children are started depends on whether they are asynchronous, as Foundation defines that:
///
/// - A synchronous one has Foundation's own `start()`, which traps if the operation is given a dependency at that
///   moment, except where a queue calls it. So the private queue is handed it, by the thread that makes a place for it or by a
///   worker.
/// - An asynchronous one has a `start()` of its own, and may finish at any moment: inside its `cancel()`, for example. A
///   queue that it is on would trap, or go on using it once it is freed. So a worker starts it, as an `AsyncOperation`.
///
/// An `AsyncOperation` that was given a dependency late waits again when its turn comes, as others do. Any other child that is not
/// ready in its turn, because its class overrides `isReady`, for example, is handed to the private queue, too. On Linux, an
/// asynchronous one of another library has a ``ForeignChildStarter`` there instead.
///
/// An `AsyncOperation` reports its end itself. Other children have an ``EndDependent``, and external dependencies
/// a ``FinishObserver``: see ``ExternalDependencies``.
final class ChildScheduler: Sendable {
    /// After how many children a worker goes to the end of the queue, so that others get their turn.
    static let batch = 256

    let failurePolicy: FailurePolicy

    let machine: Locked<ChildStateMachine>
    /// What descriptions call the children.
    let noun: String
    /// Whether a child that was cancelled counts as one that failed.
    let countsCancellations: Bool
    /// The `async` body of the composite, if it has one.
    let body: CompositeBody?

    /// - Parameters:
    ///   - limit: How many children may run at the same time; negative for as many as the system likes.
    ///   - failurePolicy: What the first failure of a child means for the others.
    ///   - countsCancellations: Whether a child that was cancelled counts as one that failed, as long as the others are not
    ///     cancelled. Failures come in the order in which they happened then.
    ///   - noun: What descriptions call the children.
    ///   - body: The `async` body of the composite, if it has one.
    init(
        limit: Int = OperationQueue.defaultMaxConcurrentOperationCount, failurePolicy: FailurePolicy = .continueAll,
        countsCancellations: Bool = false, noun: String = "children", body: CompositeBody? = nil
    ) {
        self.noun = noun
        self.body = body
        self.failurePolicy = failurePolicy
        self.countsCancellations = countsCancellations
        var machine = ChildStateMachine(
            limit: limit, failurePolicy: failurePolicy, countsCancellations: countsCancellations)
        machine.queue = SchedulingProbe.observer?.makeQueue()
        self.machine = Locked(machine)
    }

    deinit {
        // Another composite finds it as it was when it was created.
        machine.withLock { $0.settings.latest == .immediate ? $0.queue.take() : nil }?.retire()
        var (operations, changes) = machine.withLock { machine in
            machine.externals.removeAll()
            return (machine.readiness.table.removeAll(), machine.externals.takeChanges(isStarted: true))
        }
        operations += exchange(&changes, with: nil)?.released ?? []
        if !operations.isEmpty { DependencyRelease.release(&operations) }
    }

    /// The private queue, which is created when it is first needed.
    var queue: CompositeQueue {
        if let queue = machine.withLock(\.queue) { return queue }
        let new = CompositeQueue.make()
        // Released after unlocking, if another thread was quicker.
        defer { withExtendedLifetime(new) {} }
        return machine.withLock { machine in
            let queue = machine.queue ?? new
            machine.queue = queue
            return queue
        }
    }

    /// Runs an event of the machine with the lock held, then performs its effects.
    ///
    /// - Returns: The next child for the worker, if it is a worker that calls this.
    @discardableResult
    func update(_ event: (inout ChildStateMachine) -> ChildStateMachine.Effects) -> ChildReference? {
        Trampoline.run { update(&$0, event) }
    }

    /// Runs an event of the machine, then performs its effects. What follows for other operations is left in the list.
    @discardableResult
    func update(
        _ list: inout Trampoline, _ event: (inout ChildStateMachine) -> ChildStateMachine.Effects
    ) -> ChildReference? {
        perform(machine.withLock(event), &list)
    }

    private func perform(_ effects: ChildStateMachine.Effects, _ list: inout Trampoline) -> ChildReference? {
        let others = effects.others?.value
        if let report = others?.progress {
            report.composite.progressed(to: report.fraction)
            guard let end = report.end else { return nil }
            return update(&list) { $0.progressReported(end) }
        }
        if let settings = effects.settings { apply(settings) }
        // The queue gets the child before the next worker, so that it can start in its turn.
        if let child = effects.queued { enqueue(child) }
        if let priority = effects.worker, body?.takesWorkerRequest() != true { sendWorker(priority: priority) }
        if let changes = others?.externals {
            for operation in changes.toObserve { observe(operation) }
            for observer in changes.staleObservers { observer.end() }
        }
        // The list performs first what is added last.
        if let completion = others?.finished {
            list.add { completion.handlers?.finished(completion.failures, &$0) }
        }
        if effects.cancelsChildren { list.add { self.cancelAll(&$0) } }
        if let requests = others?.requests { perform(requests, &list) }
        return effects.next
    }

    func sendWorker(priority: Operation.QueuePriority) {
        queue.addChild(ChildWorker(self, priority: priority))
    }

    private func perform(_ requests: ChildStateMachine.ChildRequests, _ list: inout Trampoline) {
        if let thread = requests.cancellingThread {
            stopStarting(inside: requests.cancel)
            // Once all that is inside is cancelled.
            list.add { self.update(&$0) { $0.childrenCancelled(by: thread) } }
        }
        for operation in requests.cancel {
            if let operation = operation as? AsyncOperation { operation.cancel(&list) } else { operation.cancel() }
        }
        for operation in requests.reportProgress { operation.startReportingProgress() }
    }

    /// Keeps children at any depth from starting, before the first operation is cancelled: one of them may wait for another
    /// one to end, and would start before its turn to be cancelled comes.
    ///
    /// A group that has been stopped returns no children, because all that is inside it was stopped, too. So each is
    /// visited once.
    private func stopStarting(inside operations: [Operation]) {
        var open = operations
        while let operation = open.popLast() {
            if let group = operation.ownChildren { open += group.stopStarting() }
        }
    }

    /// Sets the limit of the private queue, and whether it is suspended. If these change meanwhile, this thread sets
    /// them again.
    private func apply(_ settings: QueueSettings) {
        var next: QueueSettings? = settings
        while let settings = next {
            queue.childSettings = (settings.limit, settings.isSuspended)
            let answer = machine.withLock { $0.settingsApplied(settings) }
            next = answer.next
            for child in answer.held.queued { enqueue(child) }
            #if !canImport(ObjectiveC)
            for worker in answer.held.leavingWorkers { worker.end() }
            #endif
        }
        // Workers may be sent again, which would have overtaken what had to wait for the settings.
        update { $0.effects() }
    }

    /// Observes the end of an external dependency.
    private func observe(_ operation: Operation) {
        let observer = FinishObserver(operation) { self.update { $0.externalDependencyFinished(operation) } }
        update { $0.externalDependencyObserved(operation, by: observer) }
    }
}

// MARK: - For the composite

extension ChildScheduler {
    /// How many children may run at the same time; negative for as many as the system likes.
    var limit: Int {
        get { machine.withLock { $0.readiness.places.limit } }
        set { update { $0.limitChanged(to: newValue) } }
    }

    var isSuspended: Bool {
        get { machine.withLock { $0.readiness.places.isSuspended } }
        set { update { $0.suspensionChanged(to: newValue) } }
    }

    /// Whether children that are added from now on are cancelled immediately.
    var cancelsNewChildren: Bool { machine.withLock { $0.readiness.cancelsNewChildren } }

    /// Cancels all children, and those that are added from now on. When it returns, all of them are cancelled, except that a
    /// call from a hook of a child that the same thread is cancelling here returns immediately.
    func cancelAll(_ list: inout Trampoline) {
        body?.cancel()
        let thread = ObjectIdentifier(Thread.current)
        update(&list) { $0.cancellationStarted(by: thread) }
    }

    func bodyEnded() {
        body?.ended()
        update { $0.bodyEnded() }
    }

    func stopStarting() -> [Operation] {
        machine.withLock { $0.startingStopped() }
    }

    /// A child was cancelled, by the composite or by itself.
    func childWasCancelled(_ child: Operation) {
        update { $0.childCancelled(child) }
    }

    /// How far the children have come, from 0 to 1.
    var fraction: Double { machine.withLock { $0.ledger.fraction } }

    func startReportingProgress() -> [Operation] {
        machine.withLock { $0.progressObserved() }
    }

    /// A child reports how far it has come.
    func childProgressed(_ child: AsyncOperation, to fraction: Double) -> CompositeFraction? {
        machine.withLock { $0.childProgressed(child, to: fraction) }.map { ($0.composite, $0.fraction) }
    }

    /// Changes what is known of the progress, and reports it if it is observed.
    func changeProgress(_ change: (inout ProgressLedger) -> Void) {
        update { $0.workChanged(change) }
    }

    /// Makes an operation a composite of the children, in its initializer.
    func attach(to composite: AsyncOperation, _ handlers: CompositeHandlers) {
        composite.becomeComposite(of: self)
        _ = machine.withLock { $0.attached(to: composite, handlers) }
    }

    /// Takes the children away from their composite. They stay together, for another one to take.
    func detach() {
        machine.withLock { $0.composite = nil }
    }
}

extension ChildScheduler: ChildGroup {
    var operation: AsyncOperation? { machine.withLock { $0.composite } }

    private var handlers: CompositeHandlers? { machine.withLock { $0.handlers } }

    var unitCount: Int64 { OperationProgress.fineUnitCount }

    var weightedUnits: OperationProgress.Units? { machine.withLock { $0.ledger.units } }

    /// How many children have ended, and how many were added.
    var count: (finished: Int, total: Int) {
        machine.withLock { ($0.readiness.table.ended, $0.readiness.table.added) }
    }

    var progressDescription: String? {
        guard handlers?.countsChildren == true else { return nil }
        let (finished, total) = count
        return "\(finished) of \(total) \(total == 1 ? "operation has" : "operations have") finished"
    }

    /// The children are not to run. The first reason counts.
    ///
    /// - Parameter refusal: Makes the error of the composite from its name.
    func refuse(_ refusal: @escaping @Sendable (String) -> any Error) {
        machine.withLock { if $0.refusal == nil { $0.refusal = refusal } }
    }

    func problem(of composite: AsyncOperation) -> (any Error)? {
        machine.withLock(\.refusal)?(composite.displayName)
    }

    func start() {
        guard let operation, let problem = problem(of: operation) else { return handlers?.start() ?? () }
        operation.finish(withError: problem)
        run()
    }

    func drain() {
        Trampoline.run { cancelAll(&$0) }
        run()
    }

    func snapshot(atMost count: Int) -> ChildSnapshot? {
        var (snapshot, handlers) = machine.withLock { machine in
            (ChildSnapshot(of: machine.readiness, atMost: count, noun: noun), machine.handlers)
        }
        handlers?.describer?.describe(&snapshot)
        return snapshot
    }

    func dependencies(of composite: AsyncOperation, recording: Bool) -> CompositeDependencies? {
        machine.withLock { $0.dependencies(of: composite, recording: recording) }
    }

    func operations(atMost limit: Int) -> [Operation]? {
        machine.withLock { $0.readiness.table.records.count <= limit ? $0.operations : nil }
    }
}
