import Dispatch

/// One run over a sequence: a ``SequenceStateMachine`` decides, a lock guards it, and what follows is performed after
/// unlocking.
///
/// The workers, and the completions of the units in flight, hold the driver. A unit holds no items when its place is given to
/// another one, and when the run is finished the driver holds neither the sequence nor the object that performs the items. So
/// a completion that a user keeps holds nothing else.
final class SequenceDriver: Sendable {
    typealias Completion = @Sendable (_ isCancelled: Bool) -> Void

    private struct State {
        var machine: SequenceStateMachine
        var completion: Completion?
        var lossQueue = LossQueue()
    }

    private let reader: any UnitReader
    private let typeName: String
    private let unitName: String
    private let cancellations = AtomicCounter()
    /// More than 0 once the machine is stopping, for the worker that reads without the lock.
    private let stops = AtomicCounter()
    private let state: Locked<State>

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - reader: The units.
    ///   - strategy: How they are performed.
    init<Item>(_ reader: any UnitReader, by strategy: CollectionStrategy<Item>) {
        self.reader = reader
        typeName = strategy.typeName
        unitName = strategy.unitName
        let machine = SequenceStateMachine(
            limit: strategy.limit, stopsAtFirstFailure: strategy.failurePolicy == .cancelRemaining)
        state = Locked(State(machine: machine))
    }

    /// Starts the run. To be called once.
    ///
    /// - Parameter completion: Called once, on the thread that found the end, with whether the run was cancelled before
    ///   that. The run holds nothing of the user's then.
    func start(completion: @escaping Completion) {
        let action = state.withLock { state in
            state.completion = completion
            return state.machine.started()
        }
        perform(action)
    }

    /// Stops taking items: none is taken after this has returned, apart from one whose turn has just come.
    ///
    /// Only sets a flag, so it may be called with arbitrary locks held. Workers look at it before they take an item,
    /// and the run does not finish before one has, unless the sequence has ended or a failure has stopped the run.
    func cancel() {
        cancellations.add(1)
    }

    private var isCancelled: Bool { cancellations.value > 0 }

    private func perform(_ action: SequenceStateMachine.Action?, for unit: SequenceUnit? = nil) {
        switch action {
        case nil:
            return
        case .requestWorker:
            UnitWorkers.queue.performAsync {
                let (workerAction, action) = self.state.withLock { $0.machine.workerStarted() }
                self.perform(action)
                self.work(workerAction)
            }
        case .requestDelivery:
            if let unit { UnitWorkers.queue.performAsync { self.work(self.deliverFailure(of: unit)) } }
        case .releaseUnit:
            if let unit { releaseDetached(unit) }
        case .finish(let isCancelled):
            // Release the sequence before the call: the receiver finds nothing held by the run.
            reader.close()
            state.withLock { $0.completion.take() }?(isCancelled)
        }
    }
}

// MARK: - Workers

extension SequenceDriver {
    /// What a worker does: it reads and performs one unit after the other.
    private func work(_ first: SequenceStateMachine.WorkerAction) {
        var next = first
        for _ in 0..<UnitWorkers.share {
            guard next == .read, let unit = readUnit() else { return }
            unit.start()
            let (workerAction, action) = report(unit) { $0.returned(&$1) }
            perform(action)
            next =
                switch workerAction {
                case .deliverFailure: deliverFailure(of: unit)
                case .release: release(unit)
                case .read, .perform, .stop: workerAction
                }
        }
        if next == .read { perform(state.withLock { $0.machine.workerYielded() }) }
    }

    /// - Returns: A unit that has to be performed. `nil` if the worker ends.
    private func readUnit() -> SequenceUnit? {
        var next = reader.read { isCancelled || stops.value > 0 }.map { SequenceUnit(self, $0) }
        let wasCancelled = isCancelled
        // Release a unit that is not performed while the run is not finished, because this worker reads.
        if wasCancelled { next = nil }
        guard let unit = next else {
            let (_, action) = state.withLock { wasCancelled ? $0.machine.cancelled() : $0.machine.sequenceEnded() }
            perform(action)
            return nil
        }
        let (workerAction, action) = report(unit) { $0.unitRead(&$1) }
        perform(action)
        if workerAction == .perform { return unit }
        // The run stops, and nothing more is read.
        _ = release(unit)
        return nil
    }

    private func deliverFailure(of unit: SequenceUnit) -> SequenceStateMachine.WorkerAction {
        unit.deliverFailure()
        unit.release()
        let (workerAction, action) = report(unit) { $0.failureDelivered(&$1) }
        perform(action)
        return workerAction
    }

    private func release(_ unit: SequenceUnit) -> SequenceStateMachine.WorkerAction {
        unit.release()
        let (workerAction, action) = report(unit) { $0.released(&$1) }
        perform(action)
        return workerAction
    }
}

// MARK: - Ends of units

extension SequenceDriver {
    fileprivate func ended(_ unit: SequenceUnit, _ error: (any Error)?, onAcceptance: () -> Void) -> Bool {
        // The error may be of a user's type, so read its `isCancellation` before locking.
        let outcome: SequenceStateMachine.Outcome =
            error.map { $0.isCancellation ? .cancellation : .failure } ?? .success
        let (isAccepted, action) = report(unit) { machine, progress in
            let answer = machine.ended(&progress, outcome)
            if answer.isAccepted {
                unit.error = error
                if machine.isStopping { stops.add(1) }
                onAcceptance()
            }
            return answer
        }
        perform(action, for: unit)
        return isAccepted
    }

    private func releaseDetached(_ unit: SequenceUnit) {
        unit.release()
        perform(report(unit) { $0.detachedUnitReleased(&$1) })
    }

    fileprivate func completionWasLost(_ unit: SequenceUnit) {
        guard state.withLock({ _ in unit.progress.isOpen }) else { return }
        let error = LostFinishError.unit(name: "\(unitName) \(unit.index)", type: typeName)
        let queue = state.withLock { $0.lossQueue.get(qos: .unspecified) }
        unit.endLostUnit(unit.index, error, on: queue) { self.isCancelled }
    }

    /// Tells the machine of an event of a unit.
    private func report<Answer>(
        _ unit: SequenceUnit, _ event: (inout SequenceStateMachine, inout SequenceStateMachine.Unit) -> Answer
    ) -> Answer {
        state.withLock { event(&$0.machine, &unit.progress) }
    }
}

/// A unit in flight, and what its completions report to.
///
/// The lock of the driver guards it. Only the worker that starts the unit, and later the thread that delivers its failure or
/// releases it, look at it without the lock: no other thread does then.
private final class SequenceUnit: UnitOwner, @unchecked Sendable {
    let index: Int
    var progress = SequenceStateMachine.Unit.onStack
    private var work: UnitWork?
    var error: (any Error)?
    private let driver: SequenceDriver

    init(_ driver: SequenceDriver, _ work: UnitWork) {
        self.driver = driver
        self.work = work
        index = work.index
    }

    func start() {
        work?.start(UnitToken(self, index).end)
    }

    func deliverFailure() {
        if let error = error.take() { work?.fail(error) }
    }

    /// Releases the items.
    func release() {
        work = nil
    }

    func ended(_ index: Int, _ error: (any Error)?, onAcceptance: () -> Void) -> Bool {
        driver.ended(self, error, onAcceptance: onAcceptance)
    }

    func completionWasLost(_ index: Int) {
        driver.completionWasLost(self)
    }
}

extension SequenceDriver {
    /// Performs all units, and suspends until that is done. Cancelling the task cancels the run.
    ///
    /// - Returns: Whether the run was cancelled before its end was found.
    static nonisolated(nonsending) func run<Item>(
        _ reader: any UnitReader, by strategy: CollectionStrategy<Item>
    ) async -> Bool {
        let driver = SequenceDriver(reader, by: strategy)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                driver.start { continuation.resume(returning: $0) }
            }
        } onCancel: {
            driver.cancel()
        }
    }
}
