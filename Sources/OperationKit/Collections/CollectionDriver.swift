import Dispatch

/// What a run has to do.
struct CollectionWork {
    let source: any ItemSource
    /// What errors call the items.
    let names: ItemNames
    /// The maximum number of items in flight, at least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    /// The tasks of the items in flight, if they are performed in tasks.
    var tasks: InFlightTasks?
}

/// One run over a collection or a sequence whose items have a completion: a ``CollectionStateMachine`` decides, a lock
/// guards it, and what follows is performed after unlocking.
///
/// The workers, and the completions of the items in flight, hold the driver. It holds the source, and with it the object
/// that performs the items, until the run is finished. Afterward it is empty, so a completion that a user keeps holds
/// nothing else.
final class CollectionDriver: Sendable {
    /// Receives the outcome of a run: a slot for each item of an array, or whether the run over a sequence was cancelled
    /// before its end was found.
    typealias Completion = @Sendable (_ slots: [(any Error)?], _ isCancelled: Bool) -> Void

    private typealias Effects = CollectionStateMachine.WorkerEffects

    private struct State {
        var machine: CollectionStateMachine
        var source: (any ItemSource)?
        var completion: Completion?
        var slots: [(any Error)?]
        var isCancelled = false
    }

    /// Where items start. Each block drains its autorelease pool, so that a long run of quick items does not fill one.
    static let queue = DispatchQueue(
        label: "OperationKit.Coordination", attributes: .concurrent, autoreleaseFrequency: .workItem)

    /// After how many items a worker goes to the end of the queue, so that others get their turn.
    private static let share = 256

    private let names: ItemNames
    private let tasks: InFlightTasks?
    private let qos: DispatchQoS
    /// More than 0 once the run is stopping, for the worker that reads without the lock.
    private let stops = AtomicCounter()
    private let state: Locked<State>
    private let itemEnded: (@Sendable () -> Void)?

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - work: The items.
    ///   - qos: The quality of service of the workers.
    ///   - itemEnded: Called after each end of an item, on the thread that reported it; for the last ones perhaps after the
    ///     end of the run.
    init(_ work: CollectionWork, qos: DispatchQoS = .unspecified, itemEnded: (@Sendable () -> Void)? = nil) {
        let source = work.source
        names = work.names
        tasks = work.tasks
        self.qos = qos
        self.itemEnded = itemEnded
        let machine = CollectionStateMachine(
            count: source.count, limit: work.limit, stopsAtFirstFailure: work.failurePolicy == .cancelRemaining)
        state = Locked(State(machine: machine, source: source, slots: Array(repeating: nil, count: source.count ?? 0)))
    }

    /// The number of items that have ended.
    var endedCount: Int { state.withLock { $0.machine.endedCount } }

    /// Starts the run. To be called once.
    ///
    /// - Parameter completion: Called once, on the thread on which the last item ended, or another one if that was in a task. The
    ///   run holds nothing of the user's then.
    func start(completion: @escaping Completion) {
        perform(
            state.withLock { state in
                state.completion = completion
                return state.machine.started()
            })
    }

    /// Runs to the end. If the current task is cancelled, no further items start.
    nonisolated(nonsending) func run() async -> (slots: [(any Error)?], isCancelled: Bool) {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in start { continuation.resume(returning: ($0, $1)) } }
        } onCancel: {
            cancelSoon()
        }
    }

    /// Stops starting items, and cancels the tasks of those in flight; items in flight run to completion.
    func cancel() {
        perform(stop())
    }

    /// Stops starting items, from a place where nothing may be called: what follows is left to another thread.
    func cancelSoon() {
        let action = stop()
        CollectionDriver.queue.performAsync { self.perform(action) }
    }

    private func stop() -> CollectionStateMachine.Action? {
        state.withLock { state in
            state.isCancelled = true
            let action = state.machine.cancelled()
            // After that: a worker that reads no further would tell the machine that the sequence has ended.
            stops.add(1)
            return action
        }
    }

    @inline(__always)
    private func perform(_ action: CollectionStateMachine.Action?, for item: WorkItem? = nil) {
        if let action { follow(action, for: item) }
    }

    private func follow(_ action: CollectionStateMachine.Action, for item: WorkItem?) {
        switch action {
        case .requestWorker:
            CollectionDriver.queue.performAsync(qos: qos) { self.work { $0.workerStarted() } }
        case .settle:
            guard let item else { return }
            // A failure is not delivered by the thread that reports it, which may hold a lock.
            if item.error == nil { return settleDetached(item) }
            CollectionDriver.queue.performAsync(qos: qos) { self.settleDetached(item) }
        case .cancelItemsInFlight:
            tasks?.cancel()
        case .finish(let isCancelled):
            finish(isCancelled: isCancelled)
        }
    }

    private func finish(isCancelled: Bool) {
        let (source, completion, slots) = state.withLock { state in
            for index in state.slots.indices.dropFirst(state.machine.startedCount) {
                state.slots[index] = CancellationError()
            }
            return (state.source.take(), state.completion.take(), exchange(&state.slots, with: []))
        }
        // Released before the call: the receiver finds nothing held by the run.
        _ = consume source
        completion?(slots, isCancelled)
    }
}

// MARK: - Workers

extension CollectionDriver {
    /// What a worker does: it starts one item after the other.
    private func work(_ event: (inout CollectionStateMachine) -> Effects) {
        let effects = startItems(report(event))
        if effects.step == .stop { return perform(effects.action) }
        // Others get their turn.
        CollectionDriver.queue.performAsync(qos: qos) { self.work { _ in effects } }
    }

    /// - Returns: What the worker has to do next.
    private func startItems(_ first: Effects) -> Effects {
        // Where it starts nothing, another thread may finish the run, whose source must not be held.
        if first.step == .stop { return first }
        var effects = first
        // Not retained: the state of the driver does, until all workers have stopped. Then another thread may finish the run, which
        // must hold nothing any more, while this one has not returned yet.
        unowned(unsafe) let source = state.withLock(\.source)
        var item = WorkItem(self, -1)
        for _ in 0..<CollectionDriver.share {
            switch effects.step {
            case .start(let index):
                perform(effects.action)
                if item.index != index { item = WorkItem(self, index) }
            case .read:
                _ = consume item
                var contents = unsafe source?.read { stops.value > 0 }
                if contents == nil { return report { $0.sequenceEnded() } }
                effects = report { $0.itemRead() }
                guard case .start(let index) = effects.step else {
                    contents = nil
                    return report { $0.itemSettled() }
                }
                perform(effects.action)
                item = WorkItem(self, index, contents)
            case .settle, .stop:
                return effects
            }
            unsafe source?.start(item)
            effects = report { machine in
                let effects = machine.returned(&item.state)
                // What nothing else refers to any more becomes the next item of an array.
                if case .start(let next) = effects.step, item.state == .ended, isKnownUniquelyReferenced(&item) {
                    (item.index, item.state) = (next, .onStack)
                }
                return effects
            }
            if effects.step == .settle {
                item.settle()
                effects = report { $0.itemSettled() }
            }
        }
        return effects
    }

    /// Tells the machine of an event of a worker.
    @inline(__always)
    private func report(_ event: (inout CollectionStateMachine) -> Effects) -> Effects {
        state.withLock { event(&$0.machine) }
    }

    private func settleDetached(_ item: WorkItem) {
        item.settle()
        perform(state.withLock { $0.machine.detachedItemSettled() })
    }
}

// MARK: - Ends of items

extension CollectionDriver {
    /// Ends an item.
    ///
    /// - Returns: Whether this is the first report of its end.
    @discardableResult
    fileprivate func ended(_ item: WorkItem, _ error: (any Error)?) -> Bool {
        // The error may be of a user's type, so read its `isCancellation` before locking.
        let isFailure = error?.isCancellation == false
        let (isAccepted, action) = state.withLock { state in
            let answer = state.machine.ended(&item.state, isFailure: isFailure)
            guard answer.isAccepted, let error else { return answer }
            // Those of a sequence have contents, and no slots.
            if item.contents == nil { state.slots[item.index] = error } else { item.error = error }
            if state.machine.isStopping { stops.add(1) }
            return answer
        }
        if isAccepted { itemEnded?() }
        if tasks != nil, case .finish = action {
            // Not by the task that performed the item: the completion may block.
            CollectionDriver.queue.performAsync(qos: qos) { self.perform(action) }
        } else {
            perform(action, for: item)
        }
        return isAccepted
    }

    /// Ends an item soon, because nothing else can: the last copy of its completion was released.
    fileprivate func completionWasLost(of item: WorkItem) {
        let error = LostFinishError.unit(name: names.name(of: item.index), type: names.type)
        // The releasing thread may hold arbitrary locks.
        DedicatedThreads.callbacks.performAsync {
            if self.state.withLock(\.isCancelled) {
                self.ended(item, CancellationError())
            } else if self.ended(item, error) {
                ExecutionRecording.report(.lostFinish(error, operation: nil))
            }
        }
    }
}

/// An item in flight, and what all copies of its completion share.
///
/// The lock of the driver guards it. Only the worker that starts the item, and later the thread that settles it or releases
/// it last, look at it without the lock: no other thread does then.
final class WorkItem: @unchecked Sendable {
    fileprivate(set) var index: Int
    fileprivate var state = CollectionStateMachine.Item.onStack
    /// The failure of an item of a sequence, until it is delivered.
    fileprivate var error: (any Error)?
    /// What is performed, if the item was read from a sequence.
    private(set) var contents: ItemContents?
    private let driver: CollectionDriver

    fileprivate init(_ driver: CollectionDriver, _ index: Int, _ contents: ItemContents? = nil) {
        self.driver = driver
        self.index = index
        self.contents = contents
    }

    deinit {
        // The worker refers to it, too, until it is detached.
        guard state == .detached else { return }
        let item = WorkItem(driver, index, contents)
        item.state = .detached
        driver.completionWasLost(of: item)
    }

    /// The completion.
    @Sendable func end(_ error: (any Error)?) {
        driver.ended(self, error)
    }

    /// Delivers the failure, if there is one, and releases the contents.
    fileprivate func settle() {
        if let error = error.take() { contents?.fail(error, index) }
        contents = nil
    }
}
