/// A state machine that decides when the next unit of one run over a sequence is read, how many are in flight, and when
/// the run is finished. A unit is an item or a batch.
///
/// It is ``CollectionStateMachine`` for units whose number is not known, and of which nothing is kept once they have
/// ended. Workers read the units and perform them, one after the other. Each worker and each detached unit takes one
/// *place* of the limit, so there are never more units than places.
///
/// One worker reads at a time. A worker that would read while another one does ends, and the one that reads requests
/// the next worker when it has its unit. At most one worker is requested at any time.
///
/// A unit is in flight until the call that performs it has returned, its end was reported, its failure was delivered, and it
/// has been released: nothing of it is left when its place is free. A worker delivers the failure, and never the thread that
/// reports the end, which may hold a lock.
struct SequenceStateMachine {
    /// What a worker has to do.
    enum WorkerAction: Equatable {
        /// Read a unit, then report ``SequenceStateMachine/unitRead(_:)``, ``SequenceStateMachine/sequenceEnded()`` or
        /// ``SequenceStateMachine/cancelled()``.
        case read
        /// Perform the unit that was read, then report ``SequenceStateMachine/returned(_:)``.
        case perform
        /// Deliver the failure of the unit whose call has returned, and release the unit, then report
        /// ``SequenceStateMachine/failureDelivered(_:)``.
        case deliverFailure
        /// Release the unit, whose call has returned, or which is not performed, then report
        /// ``SequenceStateMachine/released(_:)``.
        case release
        /// Nothing more: the worker ends.
        case stop
    }

    /// What follows from an event, to be performed after unlocking. `nil` where nothing does.
    enum Action: Equatable {
        /// Start a worker. It reports ``SequenceStateMachine/workerStarted()``.
        case requestWorker
        /// Start a worker that delivers the failure of the unit that has ended, releases the unit, and then reports
        /// ``SequenceStateMachine/failureDelivered(_:)``.
        case requestDelivery
        /// Release the unit that has ended, then report ``SequenceStateMachine/detachedUnitReleased(_:)``.
        case releaseUnit
        /// Finish the run. Given once. Nothing is read or in flight then.
        case finish(isCancelled: Bool)
    }

    /// How far a unit has come. The driver keeps it for the machine, as long as anything refers to the unit.
    enum Unit: Equatable {
        /// The call that performs it is on the stack, and its end has not been reported.
        case onStack
        /// Its success was reported, the call that performs it has not returned.
        case succeededOnStack
        /// Its failure was reported, the call that performs it has not returned.
        case failedOnStack
        /// The call that performs it has returned, its end has not been reported.
        case detached
        /// The call that performs it has returned. A worker delivers its failure, and then releases it.
        case failing
        /// A worker releases it.
        case releasing
        /// The thread that has reported its end releases it.
        case releasingDetached
        case ended

        /// Whether its end has not been reported.
        var isOpen: Bool { self == .onStack || self == .detached }
    }

    /// How a unit ends.
    enum Outcome: Equatable {
        case success
        /// With an error that stands for a cancellation. It is delivered like a failure, and stops nothing.
        case cancellation
        case failure
    }

    private enum Stage: Equatable {
        case idle, running
        /// Nothing more is read, the units in flight are waited for.
        case stopping(isCancelled: Bool)
        case finished
    }

    private let limit: Int
    private let stopsAtFirstFailure: Bool
    private var stage = Stage.idle
    /// Workers that read, perform, deliver or release, with those that are requested.
    private var workers = 0
    private var isWorkerRequested = false
    private var isReading = false
    private var detachedCount = 0
    /// The number of units that have been read and have not ended.
    private(set) var inFlightCount = 0

    /// Whether nothing more is read, and units in flight are waited for.
    var isStopping: Bool {
        if case .stopping = stage { true } else { false }
    }

    /// - Parameters:
    ///   - limit: The maximum number of units in flight, at least 1.
    ///   - stopsAtFirstFailure: Whether no unit is read after the first failure.
    init(limit: Int, stopsAtFirstFailure: Bool) {
        precondition(limit >= 1, "OperationKit: a sequence cannot be run \(limit) at a time")
        self.limit = limit
        self.stopsAtFirstFailure = stopsAtFirstFailure
    }
}

// MARK: - Events of the run

extension SequenceStateMachine {
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
        return readNext()
    }

    /// The worker that was to read has ended instead, so that others get their turn.
    mutating func workerYielded() -> Action? {
        guard isReading else { impossible("workerYielded") }
        isReading = false
        return stopWorker().action
    }

    /// The worker has read a unit.
    mutating func unitRead(_ unit: inout Unit) -> (workerAction: WorkerAction, action: Action?) {
        guard isReading else { impossible("unitRead") }
        isReading = false
        inFlightCount += 1
        guard case .running = stage else {
            // Another unit has failed meanwhile.
            unit = .releasing
            return (.release, nil)
        }
        return (.perform, action())
    }

    /// The worker has found the end of the sequence.
    mutating func sequenceEnded() -> (workerAction: WorkerAction, action: Action?) {
        stopReading("sequenceEnded", isCancelled: false)
    }

    /// The worker has found the run cancelled, before it read or afterward.
    ///
    /// The cancellation itself is no event: whatever reads next finds it, and until then there is nothing to do.
    mutating func cancelled() -> (workerAction: WorkerAction, action: Action?) {
        stopReading("cancelled", isCancelled: true)
    }
}

// MARK: - Events of units

extension SequenceStateMachine {
    /// The call that performs a unit has returned to its worker.
    mutating func returned(_ unit: inout Unit) -> (workerAction: WorkerAction, action: Action?) {
        switch unit {
        case .onStack:
            unit = .detached
            detachedCount += 1
            return workers + detachedCount > limit ? stopWorker() : readNext()
        case .succeededOnStack:
            unit = .releasing
            return (.release, nil)
        case .failedOnStack:
            unit = .failing
            return (.deliverFailure, nil)
        case .detached, .failing, .releasing, .releasingDetached, .ended:
            impossible("returned(\(unit))")
        }
    }

    /// The end of a unit was reported. Only the first report counts.
    ///
    /// - Returns: Whether this was the first report, and what follows from it.
    mutating func ended(_ unit: inout Unit, _ outcome: Outcome) -> (isAccepted: Bool, action: Action?) {
        switch unit {
        case .onStack:
            unit = outcome == .success ? .succeededOnStack : .failedOnStack
        case .detached where outcome == .success:
            unit = .releasingDetached
        case .detached:
            // The unit has a place, so there is one for the worker.
            unit = .failing
            detachedCount -= 1
            workers += 1
        case .succeededOnStack, .failedOnStack, .failing, .releasing, .releasingDetached, .ended:
            return (false, nil)
        }
        // A failure replaces a cancellation that was found before.
        if outcome == .failure, stopsAtFirstFailure { stage = .stopping(isCancelled: false) }
        return switch unit {
        case .failing: (true, .requestDelivery)
        case .releasingDetached: (true, .releaseUnit)
        default: (true, nil)
        }
    }

    /// The worker has delivered the failure of a unit, and released the unit.
    mutating func failureDelivered(_ unit: inout Unit) -> (workerAction: WorkerAction, action: Action?) {
        end(&unit, .failing, "failureDelivered")
        return readNext()
    }

    /// The worker has released a unit.
    mutating func released(_ unit: inout Unit) -> (workerAction: WorkerAction, action: Action?) {
        end(&unit, .releasing, "released")
        return readNext()
    }

    /// The thread that has reported the end of a unit has released the unit.
    mutating func detachedUnitReleased(_ unit: inout Unit) -> Action? {
        end(&unit, .releasingDetached, "detachedUnitReleased")
        detachedCount -= 1
        return action()
    }
}

// MARK: - Decisions

extension SequenceStateMachine {
    private mutating func readNext() -> (workerAction: WorkerAction, action: Action?) {
        guard case .running = stage, !isReading else { return stopWorker() }
        isReading = true
        return (.read, nil)
    }

    private mutating func stopWorker() -> (workerAction: WorkerAction, action: Action?) {
        workers -= 1
        return (.stop, action())
    }

    private mutating func end(_ unit: inout Unit, _ last: Unit, _ event: String) {
        guard unit == last else { impossible("\(event)(\(unit))") }
        unit = .ended
        inFlightCount -= 1
    }

    private mutating func stopReading(
        _ event: String, isCancelled: Bool
    ) -> (workerAction: WorkerAction, action: Action?) {
        guard isReading else { impossible(event) }
        isReading = false
        if case .running = stage { stage = .stopping(isCancelled: isCancelled) }
        return stopWorker()
    }

    /// What follows from the state as it is.
    private mutating func action() -> Action? {
        switch stage {
        case .idle, .finished:
            return nil
        case .running:
            if isReading || isWorkerRequested || workers + detachedCount >= limit { return nil }
            workers += 1
            isWorkerRequested = true
            return .requestWorker
        case .stopping(let isCancelled):
            if isReading || inFlightCount > 0 { return nil }
            stage = .finished
            return .finish(isCancelled: isCancelled)
        }
    }

    private func impossible(_ event: String) -> Never {
        preconditionFailure("OperationKit: event \(event) is impossible in stage \(stage)")
    }
}
