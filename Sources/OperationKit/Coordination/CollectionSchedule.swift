/// What has begun and what has ended in one run over a collection, as a value: which unit is next, how many may be in
/// flight, and when it is all over. A unit is an item or a batch, known by its index.
///
/// Units are begun by workers. A worker begins one unit after the other, and the unit keeps the worker's place until the
/// call that began it has returned and its end was reported, in whatever order. If the call returns first, the unit is
/// parked, and the worker goes on as long as there are places. So workers and parked units together are never more than
/// the limit, nothing is ever begun from inside the report of an end, and units that end at once cost no stack.
///
/// At most one worker is on its way at any time. Whoever begins a unit sends for the next worker.
struct CollectionSchedule {
    enum Step: Equatable {
        /// Begin this unit, then report ``CollectionSchedule/returned(_:)``.
        case begin(Int)
        /// Go: the worker is not needed any more.
        case leave
    }

    /// What follows from an event, to be done after unlocking. `nil` where nothing does.
    enum Order {
        /// Send for a worker. It reports ``CollectionSchedule/workerCame()``.
        case sendForWorker
        /// End the run, with these errors. Given once.
        case end([(any Error)?])
    }

    private enum Stage { case idle, running, over }

    /// Where a unit is that has begun.
    private enum Unit: UInt8 {
        case notBegun
        /// The call that began it is on the stack, and its end has not been reported.
        case onStack
        /// Its end was reported, the call that began it has not returned.
        case endedOnStack
        /// The call that began it has returned, its end has not been reported.
        case parked
        case ended
    }

    private let limit: Int
    private let stopsAtFirstFailure: Bool
    private var stage = Stage.idle
    private var units: [Unit]
    private var errors: [(any Error)?]
    /// The next unit to begin.
    private var next = 0
    /// Where beginning stops: the end, or where the run was cancelled.
    private var end: Int
    /// Those in the loop, with the one that is on its way.
    private var workers = 0
    private var isWorkerOnItsWay = false
    private var parked = 0
    /// Begun, and not reported as ended.
    private(set) var inFlight = 0
    /// How many units have ended.
    private(set) var endedCount = 0

    /// - Parameters:
    ///   - count: How many units there are.
    ///   - limit: How many may be in flight, at least 1.
    ///   - stopsAtFirstFailure: Whether no unit is begun once one has failed. `CancellationError` is no failure.
    init(count: Int, limit: Int, stopsAtFirstFailure: Bool) {
        precondition(count >= 0 && limit >= 1, "OperationKit: \(count) units cannot be run \(limit) at a time")
        self.limit = limit
        self.stopsAtFirstFailure = stopsAtFirstFailure
        end = count
        units = Array(repeating: .notBegun, count: count)
        errors = Array(repeating: nil, count: count)
    }
}

// The events.
extension CollectionSchedule {
    /// The run was started. This happens once.
    mutating func started() -> Order? {
        guard case .idle = stage else { impossible("started") }
        stage = .running
        return order()
    }

    /// A worker that was sent for is there.
    mutating func workerCame() -> (step: Step, order: Order?) {
        guard isWorkerOnItsWay else { impossible("workerCame") }
        isWorkerOnItsWay = false
        return nextStep()
    }

    /// The call that began a unit has returned to its worker.
    mutating func returned(_ index: Int) -> (step: Step, order: Order?) {
        if case .over = stage { return leave() }
        switch units[index] {
        case .onStack:
            units[index] = .parked
            parked += 1
            return workers + parked > limit ? leave() : nextStep()
        case .endedOnStack:
            units[index] = .ended
            return nextStep()
        case .notBegun, .parked, .ended:
            impossible("returned(\(index)) in \(units[index])")
        }
    }

    /// The end of a unit was reported. Only the first report counts.
    mutating func ended(_ index: Int, error: (any Error)?) -> (isAccepted: Bool, order: Order?) {
        if case .over = stage { return (false, nil) }
        switch units[index] {
        case .onStack:
            units[index] = .endedOnStack
        case .parked:
            units[index] = .ended
            parked -= 1
        case .endedOnStack, .ended:
            return (false, nil)
        case .notBegun:
            impossible("ended(\(index)) in \(units[index])")
        }
        inFlight -= 1
        endedCount += 1
        if let error {
            errors[index] = error
            if stopsAtFirstFailure, !(error is CancellationError) { end = next }
        }
        return (true, order())
    }

    /// No further unit is to begin. Those that have begun are waited for.
    mutating func cancelled() -> Order? {
        switch stage {
        case .idle:
            end = 0
            return nil
        case .running:
            end = next
            return order()
        case .over:
            return nil
        }
    }
}

extension CollectionSchedule {
    private mutating func nextStep() -> (step: Step, order: Order?) {
        guard next < end else { return leave() }
        let index = next
        next += 1
        units[index] = .onStack
        inFlight += 1
        return (.begin(index), order())
    }

    private mutating func leave() -> (step: Step, order: Order?) {
        workers -= 1
        return (.leave, order())
    }

    /// What follows from the state as it is.
    private mutating func order() -> Order? {
        guard case .running = stage else { return nil }
        if next < end {
            if isWorkerOnItsWay || workers + parked >= limit { return nil }
            workers += 1
            isWorkerOnItsWay = true
            return .sendForWorker
        }
        return inFlight > 0 ? nil : .end(over())
    }

    private mutating func over() -> [(any Error)?] {
        stage = .over
        for index in next..<max(next, errors.count) { errors[index] = CancellationError() }
        var result: [(any Error)?] = []
        swap(&result, &errors)
        units = []
        return result
    }

    private func impossible(_ event: String) -> Never {
        preconditionFailure("OperationKit: event \(event) is impossible in stage \(stage)")
    }
}
