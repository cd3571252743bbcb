import Dispatch

/// What one operation requires, from the request to the end of the operation.
///
/// ```
/// idle ──requested──▶ requested ──all granted, circuits closed──▶ admitting ──permits used──▶ admitted
///   └──────────────────────┴─────────ended, refused, released─────────┴────────▶ over ◀─────────┘
/// ```
final class Admission: Preparation, HeldResources {
    private enum Phase { case idle, requested, admitting, admitted, over }

    private struct State: Sendable {
        var phase = Phase.idle
        weak var operation: AsyncOperation?
        var request: RequestID?
        /// Whether permits are given back one by one, if at all, and not with the request.
        var usesPermits = false
        var admitted = Admitted()
        var deadline: ArmedDeadline?
    }

    /// One for all, because very many operations may be released together. Nothing blocks on it.
    private static let releases = DispatchQueue.makeDedicated()

    let stage = PreparationStage.requirement
    let requirements: ResourceRequest
    private let state = Locked(State())

    init(_ requirements: ResourceRequest) {
        self.requirements = requirements
    }

    deinit {
        let (admitted, request, usesPermits) = state.withLock { ($0.admitted, $0.request, $0.usesPermits) }
        guard request != nil || !admitted.isEmpty else { return }
        // The operation was released, and the releasing thread may hold arbitrary locks. What it requires lasts until then.
        Admission.releases.performAsync { [requirements] in
            admitted.end(.cancellation, hasBegun: true)
            if let request { ResourceArbiter.shared.ended(request, givesBackPermits: !usesPermits).preparationEnded() }
            withExtendedLifetime(requirements) {}
        }
    }

    // MARK: - Requesting

    func prepare(_ operation: AsyncOperation) throws -> Bool {
        if let operation = operation as? any AttemptingOperation, operation.takeRequest(requirements) { return true }
        for circuitBreaker in requirements.circuitBreakers {
            if let answer = circuitBreaker.rejection() { throw circuitBreaker.error(answer, for: operation) }
        }
        operation.addAdmission(AdmittedPreparation(self))
        state.withLock { state in
            state.operation = operation
            if state.phase == .idle { state.phase = .requested }
        }
        if requirements.resources.isEmpty { return true }
        let answer = ResourceArbiter.shared.request(requirements.resources.map(\.resource.id), for: operation) {
            request in state.withLock { $0.request = request }
        }
        switch answer {
        case .granted, nil:
            return true
        case .waiting(let request):
            return try waitBegan(request, operation)
        case .tooManyWaiting(let id):
            let resource = requirements.resource(id)
            throw ResourceError.tooManyWaiting(
                operation: operation.displayName, resource: resource.name, maximum: resource.maximumWaiting)
        case .cycle(let waits):
            throw ResourceError.cycle(operation: operation.displayName, waits: waits)
        }
    }

    /// - Returns: `false`: it takes time.
    private func waitBegan(_ request: RequestID, _ operation: AsyncOperation) throws -> Bool {
        guard let shortest = requirements.shortest else { return false }
        if shortest.duration <= .zero {
            if let missing = ResourceArbiter.shared.expired(request) { throw timeout(of: operation, missing, shortest) }
            return false
        }
        let deadline = operation.timer.arm(for: self, after: shortest.duration) { $0.waitExpired() }
        // What is not stored is disarmed after unlocking.
        state.withLock { state in
            if state.phase == .requested { state.deadline = deadline }
        }
        return false
    }

    /// The operation has waited too long, unless everything has been granted meanwhile. Called with nothing locked.
    func waitExpired() {
        let (request, operation) = state.withLock { ($0.request, $0.operation) }
        guard let request, let operation, let shortest = requirements.shortest,
            let missing = ResourceArbiter.shared.expired(request)
        else { return }
        operation.preparationEnded(withError: timeout(of: operation, missing, shortest))
    }

    // At least one resource is missing.
    private func timeout(
        of operation: AsyncOperation, _ missing: [ResourceArbiter.MissingResource], _ shortest: ResourceRequest.Limit
    ) -> ResourceError {
        // All are granted together, so the one with the duration may be free.
        let entry = missing.first { $0.resource == shortest.resource.id } ?? missing[0]
        return .timedOut(
            operation: operation.displayName, resource: requirements.resource(entry.resource).name,
            duration: shortest.duration, holders: entry.holders)
    }

    // MARK: - Admitting

    /// Everything was granted. Called on the thread that calls `main()` next, unless the operation has ended.
    fileprivate func admit(_ operation: AsyncOperation) throws {
        let deadline = state.withLock { $0.deadline.take() }
        deadline?.disarm()
        var admitted = Admitted()
        for circuitBreaker in requirements.circuitBreakers {
            switch circuitBreaker.called() {
            case .admitted(let call):
                admitted.calls.append((circuitBreaker, call))
            case .rejected(let rejection):
                admitted.end(.cancellation, hasBegun: false)
                withdraw()
                throw circuitBreaker.error(rejection, for: operation)
            }
        }
        let isAdmitting = state.withLock { state in
            if state.phase == .over { return false }
            state.phase = .admitting
            state.usesPermits = true
            return true
        }
        // An operation that ends from here on leaves the permits to this thread.
        if isAdmitting {
            admitted.permits = requirements.resources.compactMap { entry in
                (entry.resource as? RateLimit).map { ($0, $0.use()) }
            }
        }
        let isOver = state.withLock { state in
            if state.phase == .over { return true }
            state.phase = .admitted
            state.admitted = admitted
            return false
        }
        if isOver { admitted.end(.cancellation, hasBegun: false) }
    }

    // MARK: - Ending

    func withdraw() {
        end(.cancellation, hasBegun: false)
        release().preparationEnded()
    }

    func workEnded(of operation: AsyncOperation, error: (any Error)?) {
        let hasBegun = operation.withState { $0.lifecycle.reachedMain }
        end(hasBegun ? .init(error) : .cancellation, hasBegun: hasBegun)
    }

    /// Ends what has not ended before, other than the request.
    private func end(_ outcome: Admitted.Outcome, hasBegun: Bool) {
        let (admitted, deadline) = state.withLock { state in
            state.phase = .over
            return (exchange(&state.admitted, with: Admitted()), state.deadline.take())
        }
        deadline?.disarm()
        admitted.end(outcome, hasBegun: hasBegun)
    }

    func release() -> [AsyncOperation] {
        let (request, usesPermits) = state.withLock { ($0.request.take(), $0.usesPermits) }
        guard let request else { return [] }
        return ResourceArbiter.shared.ended(request, givesBackPermits: !usesPermits)
    }

    // MARK: - Diagnostics

    var waitDescription: String? {
        guard let reason = waitReason, let request = state.withLock({ $0.request }) else { return nil }
        return reason + (ResourceArbiter.shared.isDeadlocked(request) ? ", which can never be granted" : "")
    }

    var waitReason: String? {
        guard let request = state.withLock({ $0.request }),
            let missing = ResourceArbiter.shared.missingResources(of: request), !missing.isEmpty
        else { return nil }
        let parts = missing.map { entry in
            let resource = requirements.resource(entry.resource)
            return resource.title + entry.remark(of: resource)
        }
        return "waiting for " + parts.joined(separator: ", and for ")
    }
}

extension ResourceArbiter.MissingResource {
    /// Which operations have the resource, if that says something: of the others, any may be the first to end.
    fileprivate func remark(of resource: OperationResource) -> String {
        if let first { return ", after “\(first)”" }
        guard resource is ExclusiveAccess, !holders.isEmpty else { return "" }
        return ", held by " + holders.map { "“\($0)”" }.joined(separator: " and ")
    }
}

/// What an operation that was admitted has of circuit breakers and rate limits, as a value.
private struct Admitted: Sendable {
    enum Outcome {
        case success, cancellation
        case failure(any Error)

        init(_ error: (any Error)?) {
            guard let error else {
                self = .success
                return
            }
            self = error.isCancellation ? .cancellation : .failure(error)
        }
    }

    var calls: [(circuitBreaker: CircuitBreaker, call: CircuitBreakerStateMachine.Call)] = []
    var permits: [(limit: RateLimit, permit: RatePermit)] = []

    var isEmpty: Bool { calls.isEmpty && permits.isEmpty }

    /// Ends the calls, and gives permits back. Called with nothing locked.
    ///
    /// - Parameters:
    ///   - outcome: The outcome of the work.
    ///   - hasBegun: Whether there was any, so that permits were used.
    func end(_ outcome: Outcome, hasBegun: Bool) {
        for (circuitBreaker, call) in calls {
            switch outcome {
            case .success: circuitBreaker.succeeded(call)
            case .failure(let error): circuitBreaker.failed(call, error)
            case .cancellation: circuitBreaker.cancelled(call)
            }
        }
        if !hasBegun {
            for (limit, permit) in permits { limit.giveBack(permit) }
        }
    }
}

/// Puts to use what was granted, right before the work.
private struct AdmittedPreparation: Preparation {
    let stage = PreparationStage.admission
    let admission: Admission

    init(_ admission: Admission) {
        self.admission = admission
    }

    func prepare(_ operation: AsyncOperation) throws -> Bool {
        try admission.admit(operation)
        return true
    }

    func withdraw() {
        admission.withdraw()
    }
}

extension AsyncOperation {
    /// Adds what follows the current preparation, unless the operation ends.
    fileprivate final func addAdmission(_ preparation: AdmittedPreparation) {
        withState { state in
            // If the end has passed by already, this was withdrawn before.
            state.preparations?.held = preparation.admission
            if state.lifecycle.isPreparing { state.preparations?.add(preparation) }
        }
    }

    /// The names of the resources that the operation has requested, until its end.
    final var heldResourceNames: [String] {
        let admission = withState { $0.preparations?.held } as? Admission
        return admission?.requirements.resources.map(\.resource.name) ?? []
    }
}
