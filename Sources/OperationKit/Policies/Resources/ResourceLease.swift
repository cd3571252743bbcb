import Foundation

/// What one operation requires, from the request to the end of the operation.
///
/// ```
/// idle ──requested──▶ waiting ──granted──▶ granted ──circuits closed──▶ allowed
///   │                    └────refused, time is over────▶ refused            │
///   └──────────────────────────ended, released──────────────────▶ over ◀────┘
/// ```
final class ResourceLease: StartGate, StartLease {
    private enum Phase {
        case idle, waiting, granted, allowed, over
        case refused(any Error)
    }

    private struct State {
        var phase = Phase.idle
        weak var operation: AsyncOperation?
        var request: RequestID?
        /// The request of a composite around the operation, if that became known before there was a request.
        var holder: RequestID?
        /// Whether the operation is to be notified.
        var isAwaited = false
        /// Whether permits were used, so that they are not given back with the request.
        var hasBegun = false
        var calls: [(circuitBreaker: CircuitBreaker, call: Int)] = []
        var deadline: ArmedDeadline?
    }

    /// One for all, because very many operations may be released together. Nothing blocks on it, and it gets a thread although
    /// operations block all of those of the global queues.
    private static let releases = DispatchQueue(label: "OperationKit.releases", qos: .userInitiated)

    let order = GateOrder.leases
    let request: ResourceRequest
    private let state = Locked(State())

    init(_ request: ResourceRequest) {
        self.request = request
    }

    deinit {
        let state = state.withLock { $0 }
        guard state.request != nil || !state.calls.isEmpty else { return }
        // The operation was released, and the releasing thread may hold arbitrary locks. What it requires lasts until then.
        ResourceLease.releases.performAsync { [request] in
            for (circuitBreaker, call) in state.calls { circuitBreaker.ended(call, with: CancellationError()) }
            if let id = state.request {
                for lease in ResourcePool.shared.ended(id, givesBackPermits: !state.hasBegun) { lease.granted() }
            }
            withExtendedLifetime(request) {}
        }
    }

    /// The request, as long as there is one.
    var requestID: RequestID? { state.withLock { $0.request } }

    var operation: AsyncOperation? { state.withLock { $0.operation } }

    // MARK: - Requesting

    func enter(_ operation: AsyncOperation) throws -> Bool {
        switch state.withLock(\.phase) {
        case .idle: try submit(operation)
        case .waiting: false
        case .granted: try allow(operation)
        case .refused(let error): throw error
        case .allowed, .over: true
        }
    }

    private func submit(_ operation: AsyncOperation) throws -> Bool {
        if operation.passesRequestToChildren {
            operation.withState { $0.gates?.lease = self }
            return true
        }
        for circuitBreaker in request.circuitBreakers { try circuitBreaker.allow(operation, begins: false) }
        state.withLock { $0.operation = operation }
        operation.withState { $0.gates?.lease = self }
        if request.resources.isEmpty { return try allow(operation) }
        // May be overridden.
        let priority = operation.queuePriority.rawValue
        // After the operation knows this, and those around it do, so that one of two threads sees that it comes inside meanwhile.
        operation.partHasStarted()
        let holder = ResourcePool.shared.holder(around: operation)
        var cameLate = false
        let answer = state.withLock { state -> ResourceStateMachine.Answer? in
            guard case .idle = state.phase else { return nil }
            cameLate = state.holder != nil
            let answer = ResourcePool.shared.requested(
                request.resources.map(\.resource.id), for: self, priority: priority,
                isComposite: operation.isComposite, inside: state.holder ?? holder)
            switch answer {
            case .granted(let id): (state.phase, state.request) = (.granted, id)
            case .waiting(let id): (state.phase, state.request) = (.waiting, id)
            case .tooManyWaiting, .refused: break
            }
            return answer
        }
        // Another thread may have stored an older one of two holders meanwhile.
        if cameLate { surroundingsChanged(of: operation) }
        switch answer {
        case .granted: return try allow(operation)
        case nil: return true
        case .waiting:
            guard let shortest = request.shortest else { return false }
            if shortest.duration <= .zero {
                waitExpired()
                return try enter(operation)
            }
            // Before observers know of the wait. If all was granted meanwhile, it does nothing.
            let deadline = operation.timer.arm(for: self, after: shortest.duration) {
                ($0 as? ResourceLease)?.waitExpired()
            }
            state.withLock { $0.deadline = deadline }
            return false
        case .tooManyWaiting(let id):
            let resource = request.resource(id)
            throw ResourceError.tooManyWaiting(
                operation: operation.displayName, resource: resource.name, maximum: resource.maximumWaiting)
        case .refused(let refusal): throw error(refusal, for: operation)
        }
    }

    func wait(_ operation: AsyncOperation) {
        let isWaiting = state.withLock { state in
            guard case .waiting = state.phase else { return false }
            state.isAwaited = true
            return true
        }
        // Otherwise it has its answer already.
        if !isWaiting { operation.gateOpened() }
    }

    func granted() {
        answered(.granted)
    }

    /// The wait has an answer, unless it has ended. Called with nothing locked.
    private func answered(_ phase: Phase) {
        // The deadline is disarmed after unlocking.
        let (operation, _) = state.withLock { state -> (AsyncOperation?, ArmedDeadline?) in
            guard case .waiting = state.phase else { return (nil, nil) }
            state.phase = phase
            return (state.isAwaited ? state.operation : nil, state.deadline.take())
        }
        operation?.gateOpened()
    }

    /// The operation has waited too long, unless everything has been granted meanwhile. Called with nothing locked.
    func waitExpired() {
        let (id, operation) = state.withLock { ($0.request, $0.operation) }
        // Asked before, because the holders are known now.
        guard let id, let operation, let shortest = request.shortest,
            let missing = ResourcePool.shared.missingResources(for: id), !missing.isEmpty
        else { return }
        // All are granted together, so the one with the duration may be free.
        let entry = missing.first { $0.resource == shortest.resource.id } ?? missing[0]
        let error = ResourceError.timedOut(
            operation: operation.displayName, resource: request.resource(entry.resource).name,
            duration: shortest.duration, holders: entry.holders.map(\.displayName).sorted())
        guard let others = ResourcePool.shared.expired(id) else { return }
        for lease in others { lease.granted() }
        answered(.refused(error))
    }

    func surroundingsChanged(of operation: AsyncOperation) {
        guard let holder = ResourcePool.shared.holder(around: operation) else { return }
        let (refusal, others) = state.withLock { state in
            if let id = state.request { return ResourcePool.shared.enclosed(id, by: holder) }
            state.holder = holder
            return (nil, [])
        }
        for lease in others { lease.granted() }
        if let refusal { answered(.refused(error(refusal, for: operation))) }
    }

    private func error(_ refusal: ResourceStateMachine.Refusal, for operation: AsyncOperation) -> ResourceError {
        .heldByComposite(
            operation: operation.displayName, resource: request.resource(refusal.resource).name,
            composite: ResourcePool.shared.operation(of: refusal.holder)?.displayName ?? "")
    }

    // MARK: - Working

    /// Everything was granted. Called on the thread that goes on with the operation.
    ///
    /// - Returns: `true`: it passes.
    private func allow(_ operation: AsyncOperation) throws -> Bool {
        var calls: [(circuitBreaker: CircuitBreaker, call: Int)] = []
        let result = Result {
            for circuitBreaker in request.circuitBreakers {
                calls.append((circuitBreaker, try circuitBreaker.allow(operation, begins: true)))
            }
        }
        let isOver = state.withLock { state in
            state.calls = calls
            if case .over = state.phase { return true }
            state.phase = .allowed
            return false
        }
        if isOver { end(with: CancellationError()) }
        if case .failure(let error) = result {
            withdraw()
            throw error
        }
        if operation.withState({ $0.gates?.hasStartedParts == true }) {
            operation.surroundingsChanged(includingSelf: false)
        }
        return true
    }

    func workBegins() {
        // The request of an operation that makes attempts is theirs.
        guard state.withLock({ $0.request != nil && !exchange(&$0.hasBegun, with: true) }) else { return }
        for entry in request.resources { (entry.resource as? RateLimit)?.use() }
    }

    func workEnded(of operation: AsyncOperation, error: (any Error)?) {
        guard operation.hasReachedMain else { return end(with: CancellationError()) }
        // Another thread is about to call `main()`, and may not have come to this.
        workBegins()
        guard error?.isCancellation == true else { return end(with: error) }
        end(with: error) { circuitBreaker in
            // An attempt ends for the reason for which the operation was cancelled that has handed this one to it.
            operation.surroundingOperations.prefix {
                $0.requestOfAttempts?.circuitBreakers.contains { $0 === circuitBreaker } == true
            }.compactMap(\.cancellationReason).first
        }
    }

    func withdraw() {
        end(with: CancellationError())
        for lease in release() { lease.granted() }
    }

    /// Ends what has not ended before, other than the request.
    private func end(with error: (any Error)?, reason: (CircuitBreaker) -> (any Error)? = { _ in nil }) {
        // The deadline is disarmed after unlocking.
        let (calls, _) = state.withLock { state in
            state.phase = .over
            return (exchange(&state.calls, with: []), state.deadline.take())
        }
        for (circuitBreaker, call) in calls { circuitBreaker.ended(call, with: reason(circuitBreaker) ?? error) }
    }

    func release() -> [any StartLease] {
        let (id, hasBegun) = state.withLock { ($0.request.take(), $0.hasBegun) }
        return id.map { ResourcePool.shared.ended($0, givesBackPermits: !hasBegun) } ?? []
    }

    // MARK: - Diagnostics

    func waitDescription(namesHolders: Bool) -> String? {
        guard let id = requestID, let missing = ResourcePool.shared.missingResources(for: id), !missing.isEmpty else {
            return nil
        }
        let parts = missing.map { entry in
            request.resource(entry.resource).title + (namesHolders ? entry.remark : "")
        }
        return "waiting for " + parts.joined(separator: ", and for ")
    }
}

extension MissingResource<AsyncOperation> {
    /// Which operations have the resource: of three at most. Permits of a rate limit are used, and nothing has them.
    fileprivate var remark: String {
        if let first { return ", after “\(first.displayName)”" }
        return holders.isEmpty ? "" : ", held by " + list(holders.map(\.displayName).sorted())
    }
}

extension AsyncOperation {
    /// What has requested the resources of the operation, until its end.
    var resourceLease: ResourceLease? { withState { $0.gates?.lease } as? ResourceLease }

    /// The names of the resources that the operation has requested, until its end, without rate limits: it does not give
    /// these back.
    package var leasedResourceNames: [String] {
        guard let lease = resourceLease, lease.requestID != nil else { return [] }
        return lease.request.resources.compactMap { $0.resource is RateLimit ? nil : $0.resource.name }
    }
}
