import Foundation
import OperationKit
import OperationKitTestSupport

/// What the operations of a program require.
final class ProgramResources: Sendable {
    private let resources: [StressResource: OperationResource]
    let circuit: CircuitBreaker

    init(_ clock: ManualClock, _ tracker: LeakTracker) {
        resources = [
            .first: ExclusiveAccess("first"), .second: ExclusiveAccess("second"), .pair: ConcurrencyLimit("pair", 2),
            .rate: RateLimit("rate", 2, per: .seconds(StressResource.rateDuration), clock: clock),
        ]
        circuit = CircuitBreaker(
            "circuit", minimumCalls: 2, openDuration: .seconds(3), halfOpenCalls: 1, clock: clock)
        for (key, resource) in resources { tracker.track(resource, "the resource \(key)") }
        tracker.track(circuit, "the circuit")
    }

    func require(_ resource: StressResource, within patience: Int? = nil, for operation: AsyncOperation) {
        guard let resource = resources[resource] else { return }
        operation.require(resource, within: patience.map { .seconds($0) })
    }
}

// Resources and attempts.
extension ProgramRun {
    func requireResources(of node: StressNode, for operation: AsyncOperation) {
        guard let resources = resources.value else { return }
        for (index, resource) in node.policies.resources.enumerated() {
            resources.require(resource, within: index == 0 ? node.policies.patience : nil, for: operation)
        }
        if node.policies.hasCircuit { operation.require(resources.circuit) }
    }

    /// Runs an operation that requires all resources, and two that have the one for two at the same time.
    ///
    /// - Returns: Whether they have ended, in time.
    @available(*, noasync)
    func useResourcesAgain(before deadline: Date) -> Bool {
        guard let resources = resources.value else { return true }
        let last = AsyncBlockOperation { finish in finish() }
        for resource in StressResource.allCases { resources.require(resource, for: last) }
        let handles = Shared<[FinishHandle<Void>]>([])
        let pair = (0..<2).map { _ in
            let operation = AsyncBlockOperation { finish in
                let both = handles.change { handles in
                    handles.append(finish)
                    return handles.count == 2 ? exchange(&handles, with: []) : []
                }
                for finish in both { finish() }
            }
            resources.require(.pair, for: operation)
            return operation
        }
        for operation in [last] + pair {
            log.opened()
            operation.completionBlock = { [log] in log.closed() }
            operation.start()
        }
        return waitUntilEnd(before: deadline)
    }

    func make(_ retry: StressRetry, _ node: StressNode) -> Operation {
        let attempt: @Sendable (Int) -> AsyncOperation = { [self] number in self.attempt(number, retry, node) }
        switch retry.form {
        case .retry:
            var policy = RetryPolicy(
                maximumAttempts: retry.maximum, backoff: .constant(.seconds(retry.delay)), jitter: .none)
            if retry.areStuck { policy.attemptTimeout = .seconds(StressRetry.attemptTimeout) }
            return RetryOperation<Void, Void>(policy, makeOperation: attempt)
        case .repetition:
            return RepeatOperation<Void, Void>(
                every: .seconds(max(retry.delay, 1)), maximumCount: retry.maximum, continuesAfterFailure: true,
                until: { true }, makeOperation: attempt)
        case .hedging:
            return HedgedOperation<Void, Void>(
                after: .seconds(retry.delay), maximumAttempts: retry.maximum, makeOperation: attempt)
        }
    }

    private func attempt(_ number: Int, _ retry: StressRetry, _ node: StressNode) -> AsyncOperation {
        let operation = AsyncBlockOperation(name: "\(node.name) attempt \(number)") { [self] finish in
            log.add(.unitBegan(node.id, unit: number))
            let end: @Sendable (_ error: (any Error)?) -> Void = { [self] error in
                log.add(.unitEnded(node.id, unit: number))
                finish(error)
            }
            let fails = number <= retry.failures
            if fails, retry.areStuck { return finish.onCancel { end(CancellationError()) } }
            let error = fails ? StressError.unit(number) : nil
            if retry.hops { hop { end(error) } } else { end(error) }
        }
        operation.clock = clock
        if let resource = retry.resource { resources.value?.require(resource, for: operation) }
        return tracker.track(operation, "attempt \(number) of \(node.name)")
    }
}
