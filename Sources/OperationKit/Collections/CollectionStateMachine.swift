/// A state machine that decides which item of a run starts next, how many are in flight, and when the run is finished. An
/// item is what one call performs: an element of a collection or sequence, or a batch of them.
///
/// Workers start the items, one after the other. Each worker and each detached item takes one *place* of the limit. An item
/// keeps its worker's place until the call that started it has returned and its end was reported, in whatever order. If the
/// call returns first, the item is detached, and the worker goes on if there is another place. So no item is started from
/// inside the report of an end, and items that end before their call returns cost no stack. At most one worker is requested
/// at any time: a worker that has an item requests the next one.
///
/// The items of an array are known by their number. Those of a sequence have to be read, which calls code of the user, so
/// one worker reads at a time, without the lock. An item of a sequence is *settled* when it has ended, which means that its
/// failure is delivered and the item is released. Only then is its place free, or the run finished.
struct CollectionStateMachine {
    /// What a worker has to do.
    enum Step: Equatable {
        /// Start this item, then report ``CollectionStateMachine/returned(_:)``.
        case start(Int)
        /// Read an item of the sequence, then report ``CollectionStateMachine/itemRead()`` or
        /// ``CollectionStateMachine/sequenceEnded()``.
        case read
        /// Settle the item that has ended, or was read in vain, then report ``CollectionStateMachine/itemSettled()``.
        case settle
        /// Nothing more: the worker ends.
        case stop
    }

    /// What follows from an event, to be performed after unlocking.
    enum Action: Equatable {
        /// Start a worker. It reports ``CollectionStateMachine/workerStarted()``.
        case requestWorker
        /// Settle the detached item that has ended, then report ``CollectionStateMachine/detachedItemSettled()``.
        case settle
        /// Cancel the items in flight, where they can be. Given once at most.
        case cancelItemsInFlight
        /// Finish the run. Given once, when no worker has an item, and none is detached.
        case finish(isCancelled: Bool)
    }

    /// What a worker has to do, and what else follows.
    typealias WorkerEffects = (step: Step, action: Action?)

    /// How far an item has come. The driver keeps it for the machine, as long as anything refers to the item.
    enum Item {
        /// The call that started it is on the stack, and its end has not been reported.
        case onStack
        /// Its end was reported, the call that started it has not returned.
        case endedOnStack
        /// The call that started it has returned, its end has not been reported.
        case detached
        case ended
    }

    private enum Stage {
        case idle, running
        /// No further item starts, those in flight are waited for.
        case stopping
        case finished
    }

    private let limit: Int
    private let stopsAtFirstFailure: Bool
    private let isSequence: Bool
    private var stage = Stage.idle
    /// The number of items that have started, which is the index of the next one.
    private(set) var startedCount = 0
    /// The number of items that are to start, as far as it is known.
    private var end: Int
    private(set) var endedCount = 0
    private var isCancelled = false
    /// Workers that have started and not stopped.
    private var workers = 0
    private var isWorkerRequested = false
    private var isReading = false
    private var detachedCount = 0

    /// - Parameters:
    ///   - count: The number of items. `nil` if they are read from a sequence.
    ///   - limit: The maximum number of items in flight, at least 1.
    ///   - stopsAtFirstFailure: Whether the first failure cancels the items in flight, and no item starts after it.
    init(count: Int?, limit: Int, stopsAtFirstFailure: Bool) {
        precondition(count ?? 0 >= 0 && limit >= 1, "OperationKit: a collection cannot be run \(limit) at a time")
        self.limit = limit
        self.stopsAtFirstFailure = stopsAtFirstFailure
        isSequence = count == nil
        end = count ?? .max
    }
}

// MARK: - Events of the run

extension CollectionStateMachine {
    /// The run was started. This happens once.
    mutating func started() -> Action? {
        expect(stage == .idle, "started")
        stage = .running
        return action()
    }

    /// The run was cancelled: no further item starts. Those in flight are cancelled, and waited for.
    mutating func cancelled() -> Action? {
        if startedCount < end { isCancelled = true }
        return stop()
    }

    /// The worker that was requested has started.
    mutating func workerStarted() -> WorkerEffects {
        expect(isWorkerRequested, "workerStarted")
        isWorkerRequested = false
        workers += 1
        return nextStep()
    }

    /// The worker has read an item.
    mutating func itemRead() -> WorkerEffects {
        expect(isReading, "itemRead")
        isReading = false
        // Where the run was stopped meanwhile, the item must not be performed.
        return startedCount < end ? startNext() : (.settle, nil)
    }

    /// The worker has found the end of the sequence, or has read no further because the run is stopping.
    mutating func sequenceEnded() -> WorkerEffects {
        expect(isReading, "sequenceEnded")
        isReading = false
        end = startedCount
        return stopWorker()
    }
}

// MARK: - Events of items

extension CollectionStateMachine {
    /// The call that started an item has returned to its worker.
    mutating func returned(_ item: inout Item) -> WorkerEffects {
        expect(item == .onStack || item == .endedOnStack, "returned")
        if item == .endedOnStack {
            item = .ended
            return isSequence ? (.settle, nil) : nextStep()
        }
        item = .detached
        detachedCount += 1
        return placesTaken > limit ? stopWorker() : nextStep()
    }

    /// The end of an item was reported. Only the first report counts. An error that stands for a cancellation is no failure.
    ///
    /// - Returns: Whether this was the first report, and what follows from it.
    mutating func ended(_ item: inout Item, isFailure: Bool) -> (isAccepted: Bool, action: Action?) {
        let wasDetached = item == .detached
        switch item {
        case .onStack: item = .endedOnStack
        case .detached: item = .ended
        default: return (false, nil)
        }
        endedCount += 1
        if wasDetached, !isSequence { detachedCount -= 1 }
        var action: Action?
        if isFailure, stopsAtFirstFailure {
            // A failure takes the place of a cancellation that came before.
            isCancelled = false
            action = stop()
        } else if wasDetached, !isSequence {
            action = self.action()
        }
        return (true, wasDetached && isSequence ? .settle : action)
    }

    /// The worker has settled its item.
    mutating func itemSettled() -> WorkerEffects {
        nextStep()
    }

    /// A detached item of a sequence was settled.
    mutating func detachedItemSettled() -> Action? {
        detachedCount -= 1
        return action()
    }
}

// MARK: - Decisions

extension CollectionStateMachine {
    /// Whether no further item starts, and items in flight are waited for.
    var isStopping: Bool { stage == .stopping }

    private var placesTaken: Int { workers + (isWorkerRequested ? 1 : 0) + detachedCount }

    private mutating func nextStep() -> WorkerEffects {
        guard startedCount < end, !isReading else { return stopWorker() }
        if !isSequence { return startNext() }
        isReading = true
        return (.read, nil)
    }

    private mutating func startNext() -> WorkerEffects {
        startedCount += 1
        return (.start(startedCount - 1), action())
    }

    private mutating func stopWorker() -> WorkerEffects {
        workers -= 1
        return (.stop, action())
    }

    private mutating func stop() -> Action? {
        end = startedCount
        guard stage == .running else { return action() }
        stage = .stopping
        return workers + detachedCount == 0 || isSequence ? action() : .cancelItemsInFlight
    }

    /// What follows from the state as it is.
    private mutating func action() -> Action? {
        if stage == .idle || stage == .finished { return nil }
        if startedCount < end {
            if isReading || isWorkerRequested || placesTaken >= limit { return nil }
            isWorkerRequested = true
            return .requestWorker
        }
        if workers + detachedCount > 0 { return nil }
        stage = .finished
        return .finish(isCancelled: isCancelled)
    }

    private func expect(_ isPossible: Bool, _ event: StaticString) {
        precondition(isPossible, "OperationKit: event \(event) is impossible in stage \(stage)")
    }
}
