#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation that releases a resource, and another one that requires it and is cancelled, finished or dropped, or has
/// waited too long, meanwhile.
@Suite("Interleavings of resources", .serialized, .takesTurns, .hangGuard) struct ResourceInterleavingTests {
    private static let scenes = ResourceSubject.Kind.allCases.flatMap { kind in
        ResourceSubject.Step.allCases.flatMap { step in
            [true, false].map { isWaiting in
                let request = isWaiting ? [] : [Role<ResourceSubject>("request") { $0.request() }]
                let steps = step == .none ? [] : [Role<ResourceSubject>("\(step)") { $0.take(step) }]
                return Scene(
                    "\(kind) \(isWaiting ? "that waits" : "that requests") a resource, \(step)",
                    [Role("release") { $0.release() }] + request + steps
                ) { ResourceSubject(kind, isWaiting: isWaiting) }
            }
        }
    }

    @Test(
        "An operation that waits for what is released, or requests it, gets it, and works or releases it if it is ended",
        arguments: scenes)
    private func everyScene(scene: Scene<ResourceSubject>) async { await scene.expectNoProblems(samples: (100, 50)) }
}

private final class ResourceSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable { case leaf, compound }
    enum Step: CaseIterable { case none, cancel, finish, expire, drop }

    private struct Record {
        var hasBegun = false
        var problems: [String] = []
    }

    private let record = Shared(Record())
    private let access = ExclusiveAccess("access")
    private let clock = ManualClock()
    private let rate: RateLimit
    private let holder: ScriptedOperation
    private let last: ScriptedOperation
    private let circuitBreaker: CircuitBreaker
    private let operation: Shared<AsyncOperation?>
    /// What its wait belongs to.
    private let lease: Shared<ResourceLease?>
    private let isDropped = Shared(false)

    /// The holder works, and the operation waits or has not started.
    init(_ kind: Kind, isWaiting: Bool) {
        rate = RateLimit("rate", 2, per: .seconds(1), clock: clock)
        circuitBreaker = CircuitBreaker("circuit", minimumCalls: 1, halfOpenCalls: 1, clock: clock)
        let (record, holder) = (record, ScriptedOperation.idle("holder"))
        self.holder = holder
        last = ScriptedOperation("last")
        let work = ScriptedOperation("work") { operation in
            let isReleased = VirtualThread.inOneStep { holder.isFinished }
            record.change { record in
                if record.hasBegun { record.problems.append("main() twice") }
                record.hasBegun = true
                if !isReleased { record.problems.append("granted before the release") }
            }
            VirtualThread.place("work")
            operation.finish()
        }
        let operation = kind == .leaf ? work : CompoundOperation(operations: [work])
        self.operation = Shared(operation)
        for (operation, label) in [(holder, "the holder"), (operation, "the operation"), (last, "the last one")] {
            operation.require(access)
            operation.require(rate)
            VirtualThread.expectRelease(of: operation, label)
        }
        // Half open, so that one call is let through at a time.
        circuitBreaker.fail()
        clock.advance(by: .seconds(60))
        operation.require(circuitBreaker)
        lease = Shared(nil)
        // The gate, without a change.
        operation.withState { state in
            _ = state.gates?.replace { (current: ResourceLease?) in
                lease.value = current
                return current ?? ResourceLease(ResourceRequest())
            }
        }
        holder.start()
        if isWaiting { operation.start() }
    }

    func request() { operation.value?.start() }

    func release() { holder.finish() }

    func take(_ step: Step) {
        switch step {
        case .none: break
        case .cancel: operation.value?.cancel()
        case .finish: operation.value?.finish(withError: TestError.first)
        case .expire: lease.value?.waitExpired()
        case .drop:
            // Nothing but the operation holds it any more.
            lease.value = nil
            let dropped = operation.change { $0.take() }
            isDropped.value = true
            withExtendedLifetime(dropped) {}
        }
    }

    /// Whether the operation has used its permit. The child of a compound may be cancelled after the beginning of the compound.
    private var hasBegun: Bool {
        record.value.hasBegun || operation.value?.withState { $0.lifecycle.reachedMain } == true
    }

    func endAll() {
        operation.value?.start()
        // Both permits are used if both have worked.
        if hasBegun { clock.advance(by: .seconds(1)) } else { last.start() }
    }

    func problems() -> [String] {
        let record = record.value
        var problems = record.problems
        if let operation = operation.value {
            if !operation.isFinished { problems.append("not finished: \(operation.debugDescription)") }
            if operation.error == nil, !record.hasBegun { problems.append("success without main()") }
            if operation.error is ResourceError, record.hasBegun { problems.append("expired at work") }
        } else if !isDropped.value {
            problems.append("gone")
        }
        if !hasBegun {
            if !last.isFinished { problems.append("not released: \(last.debugDescription)") }
            if (try? circuitBreaker.allow(last, begins: false)) == nil {
                problems.append("the place on trial is not released")
            }
        }
        if access.waitingCount > 0 || rate.waitingCount > 0 { problems.append("something waits") }
        return problems
    }
}

extension CircuitBreaker {
    /// Opens the circuit, which one failure is enough for.
    fileprivate func fail() {
        if let call = try? allow(AsyncOperation(), begins: true) { ended(call, with: TestError.first) }
    }
}
#endif
