/// A state machine that decides which unit of one run over a collection starts next, how many are in flight, and when the
/// run is finished. A unit is an item or a batch, known by its index.
///
/// Workers start the units, one after the other. Each worker and each detached unit takes one *place* of the limit. A
/// unit keeps its worker's place until the call that started it has returned and its end was reported, in whatever
/// order. If the call returns first, the unit is detached, and the worker goes on if there is another place. So workers
/// and detached units together are never more than the limit, no unit is started from inside the report of an end, and
/// units that end before their call returns cost no stack.
///
/// At most one worker is requested at any time. A worker that starts a unit requests the next one.
struct CollectionStateMachine {
    /// What a worker has to do.
    enum WorkerAction: Equatable {
        /// Start this unit, then report ``CollectionStateMachine/returned(_:)``.
        case start(Int)
        /// Nothing more: the worker ends.
        case stop
    }

    /// What follows from an event, to be performed after unlocking. `nil` where nothing does.
    enum Action {
        /// Start a worker. It reports ``CollectionStateMachine/workerStarted()``.
        case requestWorker
        /// Cancel the units in flight, where they can be. Given once at most.
        case cancelUnitsInFlight
        /// Finish the run, with these errors. Given once.
        case finish([(any Error)?])
    }

    private enum Stage {
        case idle, running
        /// No further unit starts, those in flight are waited for.
        case stopping
        case finished
    }

    private enum Unit: UInt8 {
        case notStarted
        /// The call that started it is on the stack, and its end has not been reported.
        case onStack
        /// Its end was reported, the call that started it has not returned.
        case endedOnStack
        /// The call that started it has returned, its end has not been reported.
        case detached
        case ended
    }

    private let limit: Int
    private let stopsAtFirstFailure: Bool
    private var stage = Stage.idle
    private var units: [Unit]
    private var errors: [(any Error)?]
    /// The next unit to start.
    private var next = 0
    /// The first unit that is not going to start: the end, or where the run was cancelled.
    private var end: Int
    /// Workers that start units, with the one that is requested.
    private var workers = 0
    private var isWorkerRequested = false
    private var detachedCount = 0
    /// The number of units that have started and not ended.
    private(set) var inFlightCount = 0
    private(set) var endedCount = 0

    /// - Parameters:
    ///   - count: The number of units.
    ///   - limit: The maximum number of units in flight, at least 1.
    ///   - stopsAtFirstFailure: Whether the first failure cancels the units in flight, and no unit starts after it.
    ///     A unit that was cancelled has not failed.
    init(count: Int, limit: Int, stopsAtFirstFailure: Bool) {
        precondition(count >= 0 && limit >= 1, "OperationKit: \(count) units cannot be run \(limit) at a time")
        self.limit = limit
        self.stopsAtFirstFailure = stopsAtFirstFailure
        end = count
        units = Array(repeating: .notStarted, count: count)
        errors = Array(repeating: nil, count: count)
    }
}

// MARK: - Events

extension CollectionStateMachine {
    /// The run was started. This happens once.
    mutating func started() -> Action? {
        guard case .idle = stage else { impossible("started") }
        stage = .running
        return action()
    }

    /// The worker that was requested has started.
    mutating func workerStarted() -> (workerAction: WorkerAction, action: Action?) {
        guard isWorkerRequested else { impossible("workerStarted") }
        isWorkerRequested = false
        return startNext()
    }

    /// The call that started a unit has returned to its worker.
    mutating func returned(_ index: Int) -> (workerAction: WorkerAction, action: Action?) {
        if case .finished = stage { return stopWorker() }
        switch units[index] {
        case .onStack:
            units[index] = .detached
            detachedCount += 1
            return workers + detachedCount > limit ? stopWorker() : startNext()
        case .endedOnStack:
            units[index] = .ended
            return startNext()
        case .notStarted, .detached, .ended:
            impossible("returned(\(index)) in \(units[index])")
        }
    }

    /// The end of a unit was reported. Only the first report counts.
    ///
    /// - Parameters:
    ///   - index: The unit.
    ///   - error: Its error.
    ///   - isCancellation: Whether the error stands for a cancellation, and so is no failure.
    /// - Returns: Whether this was the first report, and what follows from it.
    mutating func ended(
        _ index: Int, error: (any Error)?, isCancellation: Bool = false
    ) -> (isAccepted: Bool, action: Action?) {
        if case .finished = stage { return (false, nil) }
        switch units[index] {
        case .onStack:
            units[index] = .endedOnStack
        case .detached:
            units[index] = .ended
            detachedCount -= 1
        case .endedOnStack, .ended:
            return (false, nil)
        case .notStarted:
            impossible("ended(\(index)) in \(units[index])")
        }
        inFlightCount -= 1
        endedCount += 1
        if let error {
            errors[index] = error
            if stopsAtFirstFailure, !isCancellation { return (true, stop()) }
        }
        return (true, action())
    }

    /// Whether a unit has started, and its end was not reported.
    func isInFlight(_ index: Int) -> Bool {
        if case .finished = stage { return false }
        return units[index] == .onStack || units[index] == .detached
    }

    /// The run was cancelled: no further unit starts. Those in flight are cancelled, and waited for.
    mutating func cancelled() -> Action? {
        switch stage {
        case .idle:
            end = 0
            return nil
        case .running, .stopping:
            return stop()
        case .finished:
            return nil
        }
    }
}

// MARK: - Decisions

extension CollectionStateMachine {
    private mutating func startNext() -> (workerAction: WorkerAction, action: Action?) {
        guard next < end else { return stopWorker() }
        let index = next
        next += 1
        units[index] = .onStack
        inFlightCount += 1
        return (.start(index), action())
    }

    private mutating func stopWorker() -> (workerAction: WorkerAction, action: Action?) {
        workers -= 1
        return (.stop, action())
    }

    /// Ends the starts. This happens once.
    private mutating func stop() -> Action? {
        guard case .running = stage else { return action() }
        stage = .stopping
        end = next
        return inFlightCount > 0 ? .cancelUnitsInFlight : action()
    }

    /// What follows from the state as it is.
    private mutating func action() -> Action? {
        switch stage {
        case .idle, .finished: return nil
        case .running, .stopping: break
        }
        if next < end {
            if isWorkerRequested || workers + detachedCount >= limit { return nil }
            workers += 1
            isWorkerRequested = true
            return .requestWorker
        }
        return inFlightCount > 0 ? nil : .finish(takeErrors())
    }

    private mutating func takeErrors() -> [(any Error)?] {
        stage = .finished
        for index in next..<max(next, errors.count) { errors[index] = CancellationError() }
        units = []
        return exchange(&errors, with: [])
    }

    private func impossible(_ event: String) -> Never {
        preconditionFailure("OperationKit: event \(event) is impossible in stage \(stage)")
    }
}
