import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Circuit breakers that operations require.
@Suite("Circuit breakers of operations", .hangGuard) struct CircuitBreakerUseTests {
    private let clock = ManualClock()
    private let log = EventLog()

    private func makeCircuit(minimumCalls: Int = 2, halfOpenCalls: Int = 1) -> CircuitBreaker {
        CircuitBreaker(
            "service", minimumCalls: minimumCalls, openDuration: .seconds(30), halfOpenCalls: halfOpenCalls,
            clock: clock)
    }

    /// An operation that ends with an outcome, or is left executing.
    private func call(
        _ circuit: CircuitBreaker, _ outcome: Result<Void, any Error>? = .success(())
    ) -> ScriptedOperation {
        let operation = ScriptedOperation(
            "call",
            main: { [log] operation in
                log.add("call")
                switch outcome {
                case .success: operation.finish()
                case .failure(let error): operation.finish(withError: error)
                case nil: break
                }
            }, didCancel: { $0.finish(withError: CancellationError()) })
        operation.require(circuit)
        return operation
    }

    private func open(_ circuit: CircuitBreaker) {
        for _ in 0..<2 { call(circuit, .failure(TestError.first)).start() }
        #expect(circuit.state == .open)
    }

    @Test("When enough operations have failed, others end with an error that says for how long, and without their work")
    func opens() {
        let circuit = makeCircuit(minimumCalls: 4)
        for outcome in [.success(()), .failure(TestError.first), .success(())] as [Result<Void, any Error>] {
            call(circuit, outcome).start()
        }
        #expect(circuit.state == .closed)
        call(circuit, .failure(TestError.second)).start()
        #expect(circuit.state == .open)
        clock.advance(by: .seconds(12))
        let rejected = call(circuit)
        rejected.start()
        #expect(
            rejected.error as? CircuitOpenError
                == CircuitOpenError(operation: "call", circuit: "service", retryAfter: .seconds(18)))
        #expect(log.events.count == 4 && rejected.isFinished)
    }

    @Test("When its time is over, an open circuit lets operations through on trial, and closes if they succeed")
    func halfOpen() {
        let circuit = makeCircuit(halfOpenCalls: 2)
        open(circuit)
        clock.advance(by: .seconds(30))
        #expect(circuit.state == .halfOpen)
        let trials = [call(circuit, nil), call(circuit, nil)]
        for trial in trials { trial.start() }
        let rejected = call(circuit)
        rejected.start()
        #expect((rejected.error as? CircuitOpenError)?.retryAfter == nil && rejected.error != nil)
        trials[0].finish()
        #expect(circuit.state == .halfOpen)
        trials[1].finish()
        #expect(circuit.state == .closed)
    }

    @Test(
        "A trial that fails opens the circuit again, and one that is cancelled or released leaves its place to another")
    func trialsThatDoNotSucceed() async {
        let circuit = makeCircuit()
        open(circuit)
        clock.advance(by: .seconds(30))
        let cancelled = call(circuit, nil)
        cancelled.start()
        cancelled.cancel()
        #expect(cancelled.isFinished && circuit.state == .halfOpen)
        call(circuit, nil).start()
        await eventually("the place is taken") { circuit.rejection() == nil }
        call(circuit, .failure(TestError.first)).start()
        #expect(circuit.state == .open)
    }

    @Test("Cancellations do not count, timeouts do") func outcomes() async throws {
        let circuit = makeCircuit()
        for _ in 0..<9 {
            let operation = call(circuit, nil)
            operation.start()
            operation.cancel()
            call(circuit, .failure(CancellationError())).start()
        }
        #expect(circuit.state == .closed)
        let late = [call(circuit, nil), call(circuit, nil)]
        for operation in late {
            operation.clock = clock
            operation.timeout = .seconds(5)
            operation.start()
        }
        await clock.pass(.seconds(5))
        for operation in late { try await operation.waitForFinish() }
        #expect(circuit.state == .open)
    }

    @Test("Errors that are no failures of the service count as successes") func classification() {
        let circuit = CircuitBreaker("service", minimumCalls: 3, clock: clock) { $0 as? TestError == .first }
        for _ in 0..<4 { call(circuit, .failure(TestError.second)).start() }
        for _ in 0..<3 { call(circuit, .failure(TestError.first)).start() }
        #expect(circuit.state == .closed)
        call(circuit, .failure(TestError.first)).start()
        #expect(circuit.state == .open)
    }

    @Test(
        "It is asked before anything is waited for, and again at the grant, when everything is given back immediately")
    func askedTwice() async throws {
        let circuit = makeCircuit()
        let (database, api) = (ExclusiveAccess("database"), RateLimit("api", 2, per: .seconds(10), clock: clock))
        let holder = ScriptedOperation.idle("holder")
        holder.require(database)
        holder.start()
        let (waiting, completed) = (call(circuit), Gate())
        let isFree = Shared(false)
        for resource in [database, api] as [OperationResource] { waiting.require(resource) }
        let next = ScriptedOperation("next") { [log] operation in
            log.add("next")
            operation.finish()
        }
        for resource in [database, api] as [OperationResource] { next.require(resource) }
        waiting.asyncCompletionBlock = { _ in
            isFree.value = database.waitingCount == 0
            completed.open()
        }
        waiting.start()
        next.start()
        open(circuit)
        let rejected = call(circuit)
        rejected.require(database)
        rejected.start()
        #expect(rejected.error is CircuitOpenError && database.waitingCount == 2)
        holder.finish()
        await completed.opened()
        await eventually("next does not run") { log.events.last == "next" }
        #expect(isFree.value && waiting.error is CircuitOpenError)
        #expect(clock.deadlines.count <= 1)
        let last = ScriptedOperation("last")
        last.require(api)
        last.start()
        #expect(last.error == nil && last.isFinished)
    }

    @Test("An operation that two circuit breakers guard is rejected if one of them is open, and leaves no trial behind")
    func two() {
        let (first, second) = (makeCircuit(), makeCircuit())
        open(first)
        clock.advance(by: .seconds(30))
        let operation = call(first)
        operation.require(second)
        let gate = HeldGate()
        operation.addGate(gate)
        open(second)
        operation.start()
        gate.open()
        operation.waitUntilFinished()
        #expect((operation.error as? CircuitOpenError)?.circuit == "service" && first.rejection() == nil)
    }

    @Test("The outcome of a compound and of operations that never began counts as that of others") func compounds()
        async throws
    {
        let circuit = makeCircuit(minimumCalls: 1)
        let skipped = call(circuit)
        skipped.addStartHandler(.last) { _ in throw TestError.first }
        skipped.start()
        #expect(skipped.error as? TestError == .first && circuit.state == .closed)
        let compound = CompoundOperation(operations: [
            ScriptedOperation { $0.finish(withError: TestError.second) }
        ])
        compound.require(circuit)
        compound.start()
        try await compound.waitForFinish()
        #expect(circuit.state == .open)
    }
}
