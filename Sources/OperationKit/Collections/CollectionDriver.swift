import Dispatch

/// One run over a collection: a ``CollectionStateMachine`` decides, a lock guards it, and what follows is performed after
/// unlocking.
///
/// The workers, and the completions of the units in flight, hold the driver. It holds the work, and with it the object
/// that does it, until the run is finished. Afterward it is empty, so a completion that a user keeps holds nothing
/// else.
final class CollectionDriver: UnitOwner {
    typealias Completion = @Sendable ([(any Error)?]) -> Void

    private struct State {
        var machine: CollectionStateMachine
        var units: CollectionUnits?
        var completion: Completion?
        var isCancelled = false
        var lossQueue = LossQueue()
    }

    private let qos: DispatchQoS
    private let state: Locked<State>
    private let unitEnded: (@Sendable () -> Void)?

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - units: The work.
    ///   - qos: The quality of service of the workers.
    ///   - unitEnded: Called after each end of a unit but before the end of the run, on the thread that reported it.
    ///   - completion: Called once, on the thread that reported the last end.
    init(
        _ units: CollectionUnits, qos: DispatchQoS = .unspecified, unitEnded: (@Sendable () -> Void)? = nil,
        completion: @escaping Completion
    ) {
        self.qos = qos
        self.unitEnded = unitEnded
        let machine = CollectionStateMachine(
            count: units.count, limit: units.limit, stopsAtFirstFailure: units.failurePolicy == .cancelRemaining)
        state = Locked(State(machine: machine, units: units, completion: completion))
    }

    /// The number of units that have ended.
    var endedCount: Int { state.withLock { $0.machine.endedCount } }

    /// Where units end whose completions were lost.
    var lossQueue: DispatchQueue { state.withLock { $0.lossQueue.get(qos: qos) } }

    /// Starts the run. To be called once.
    func start() {
        perform(state.withLock { $0.machine.started() })
    }

    /// Stops starting new units, and cancels the tasks of those in flight; units in flight run to completion.
    func cancel() {
        let action = state.withLock { state in
            state.isCancelled = true
            return state.machine.cancelled()
        }
        perform(action)
    }

    private func perform(_ action: CollectionStateMachine.Action?) {
        switch action {
        case nil:
            return
        case .requestWorker:
            UnitWorkers.queue.performAsync(qos: qos) {
                let (workerAction, action) = self.state.withLock { $0.machine.workerStarted() }
                self.perform(action)
                self.work(workerAction)
            }
        case .cancelUnitsInFlight:
            state.withLock { $0.units }?.cancelRunning?()
        case .finish(let errors):
            finish(errors)
        }
    }

    /// What a worker does: it starts one unit after the other.
    private func work(_ first: CollectionStateMachine.WorkerAction) {
        // Take the units, not their `start` closure: reading that one would wrap it twice for each call.
        guard let units = state.withLock({ $0.units }) else { return }
        var next = first
        for _ in 0..<UnitWorkers.share {
            guard case .start(let index) = next else { return }
            units.start(index, UnitToken(self, index).end)
            let (workerAction, action) = state.withLock { $0.machine.returned(index) }
            perform(action)
            next = workerAction
        }
        if next != .stop { UnitWorkers.queue.performAsync(qos: qos) { [next] in self.work(next) } }
    }

    @discardableResult
    func ended(_ index: Int, _ error: (any Error)?, onAcceptance: () -> Void) -> Bool {
        // The error may be of a user's type, so read its `isCancellation` before locking.
        let isCancellation = error?.isCancellation ?? false
        let (isAccepted, action) = state.withLock { state in
            let answer = state.machine.ended(index, error: error, isCancellation: isCancellation)
            if answer.isAccepted { onAcceptance() }
            return answer
        }
        if isAccepted { unitEnded?() }
        perform(action)
        return isAccepted
    }

    func completionWasLost(_ index: Int) {
        guard let units = state.withLock({ $0.machine.isInFlight(index) ? $0.units : nil }) else { return }
        let error = LostFinishError.unit(name: units.name(of: index), type: units.typeName)
        endLostUnit(index, error, on: lossQueue) { self.state.withLock(\.isCancelled) }
    }

    private func finish(_ errors: [(any Error)?]) {
        // Release the work after unlocking and before the call: the receiver finds nothing held by the run.
        _ = state.withLock { $0.units.take() }
        state.withLock { $0.completion.take() }?(errors)
    }
}

extension CollectionDriver {
    /// Performs the only unit of a run, and returns its error.
    static func error(of units: CollectionUnits) async -> (any Error)? {
        await withCheckedContinuation { continuation in
            CollectionDriver(units) { continuation.resume(returning: $0[0]) }.start()
        }
    }
}
