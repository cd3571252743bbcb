import OperationKitTestSupport

@testable import OperationKit

@Suite("Circuit breakers of operations", .hangGuard) struct CircuitBreakerTests {
    /// A clock that calls a closure when it is asked for the time.
    private struct TellingClock: Clock {
        typealias Instant = ManualClock.Instant
        let clock = ManualClock()
        let body = Shared<(@Sendable () -> Void)?>(nil)

        var now: Instant {
            body.change { $0.take() }?()
            return clock.now
        }
        var minimumResolution: Duration { clock.minimumResolution }
        func sleep(until deadline: Instant, tolerance: Duration?) async throws {
            try await clock.sleep(until: deadline, tolerance: tolerance)
        }
    }

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
        let operation = ScriptedOperation.stoppable("call") { [log] operation in
            log.add("call")
            switch outcome {
            case .success: operation.finish()
            case .failure(let error): operation.finish(withError: error)
            case nil: break
            }
        }
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

    @Test("A trial that fails opens the circuit again, one that is cancelled or released leaves its place to another")
    func trialsThatDoNotSucceed() async {
        let circuit = makeCircuit()
        open(circuit)
        clock.advance(by: .seconds(30))
        let cancelled = call(circuit, nil)
        cancelled.start()
        cancelled.cancel()
        #expect(cancelled.isFinished && circuit.state == .halfOpen)
        call(circuit, nil).start()
        await eventually("the place is taken") { (try? circuit.allow(AsyncOperation(), begins: false)) != nil }
        call(circuit, .failure(TestError.first)).start()
        #expect(circuit.state == .open)
    }

    @Test("A retry waits as long as the circuit that it requires is open, whatever its backoff")
    func retry() async throws {
        let backoff = Backoff.linear(.seconds(1), increment: .zero, maximum: .seconds(1))
        let retry = RetryOperation(RetryPolicy(maximumAttempts: 4, backoff: backoff, jitter: .none)) { attempt in
            TaskOperation { if attempt < 4 { throw TestError.numbered(attempt) } }
        }
        retry.require(makeCircuit())
        retry.clock = clock
        retry.start()
        for second in [1, 1, 29] { await clock.pass(.seconds(second)) }
        try await retry.finished()
        #expect(clock.now.offset == .seconds(31))
        #expect(
            retry.attempts.map { $0.error as? TestError } == [.numbered(1), .numbered(2), nil, nil]
                && (retry.attempts[2].error as? CircuitOpenError)?.retryAfter == .seconds(29))
    }

    @Test("Cancellations do not count, timeouts do") func outcomes() async throws {
        let circuit = makeCircuit()
        for _ in 0..<9 {
            let operation = call(circuit, nil)
            operation.start()
            operation.cancel()
            call(circuit, .failure(CancellationError())).start()
        }
        let whole = CompoundOperation(operations: [call(circuit, nil), call(circuit, nil)])
        whole.start()
        await eventually("they do not work") { log.events.count == 20 }
        whole.cancel(withError: TestError.reason)
        try await whole.waitForFinish()
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

    @Test("It is asked before anything is waited for, and at the grant, when everything is given back immediately")
    func askedTwice() async throws {
        let (trial, circuit) = (makeCircuit(), makeCircuit())
        open(trial)
        clock.advance(by: .seconds(30))
        let (database, api) = (ExclusiveAccess("database"), RateLimit("api", 2, per: .seconds(10), clock: clock))
        let holder = log.held("holder", database)
        holder.start()
        let (waiting, completed) = (call(trial), Gate())
        waiting.require(circuit)
        let isFree = Shared(false)
        for resource in [database, api] as [OperationResource] { waiting.require(resource) }
        let next = ScriptedOperation.named("next", in: log, requiring: [database, api])
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
        #expect(isFree.value && waiting.error is CircuitOpenError && circuit.state == .open)
        #expect(clock.deadlines.count <= 1)
        let last = ScriptedOperation.named("last", in: log, requiring: [api])
        last.start()
        #expect(last.error == nil && last.isFinished)
        call(trial).start()
        #expect(trial.state == .closed)
    }

    @Test("An operation that ends while its circuit breaker is asked uses no permit, and its work does not begin")
    func endedWhileAsked() {
        let clock = TellingClock()
        let (api, server) = (
            RateLimit("api", 1, per: .seconds(10), clock: clock), CircuitBreaker("server", clock: clock)
        )
        let operation = ScriptedOperation("first") { [log] _ in log.add("first") }
        operation.require(server)
        operation.require(api)
        // It is asked before the request, and when that is granted.
        clock.body.value = { [body = clock.body] in
            body.value = { operation.finish(withError: TestError.first) }
        }
        operation.start()
        #expect(operation.isFinished && text(operation.error) == "first" && log.events.isEmpty)
        let next = ScriptedOperation.named("next", in: log, requiring: [api])
        next.start()
        #expect(next.isFinished && log.events == ["next"])
    }

    @Test("The outcome of a compound, and of a closure that other code ends, counts, and not of what never began")
    func compounds() async throws {
        let (circuit, other, begun, end) = (makeCircuit(minimumCalls: 1), makeCircuit(minimumCalls: 1), Gate(), Gate())
        let load = TaskOperation(name: "load", retry: RetryPolicy(maximumAttempts: 1)) {
            begun.open()
            await end.opened()
        }
        load.require(other)
        load.start()
        await begun.opened()
        load.finish(withError: TestError.first)
        #expect(other.state == .open)
        end.open()
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

@Suite("CircuitBreaker") struct CircuitBreakerDecisionTests {
    private typealias Machine = CircuitBreakerStateMachine

    private static let configuration = Machine.Configuration(
        failureRatio: 0.5, minimumCalls: 4, window: .seconds(10), openDuration: .seconds(30), trialCount: 2)

    /// A machine, with what happens to it in one line each.
    private struct Circuit {
        var machine = Machine(configuration)
        var now = Duration.zero

        mutating func call() -> Int? {
            guard case .allowed(let call) = machine.called(at: now) else { return nil }
            return call
        }

        mutating func end(_ call: Int?, _ outcome: Machine.Outcome) {
            if let call { machine.ended(call, outcome, at: now) }
        }

        /// Lets calls through that end immediately.
        mutating func calls(_ outcomes: Machine.Outcome...) {
            for outcome in outcomes { end(call(), outcome) }
        }

        /// A circuit that opened just now.
        static var open: Circuit {
            var circuit = Circuit()
            circuit.calls(.failure, .failure, .failure, .failure)
            return circuit
        }

        /// A circuit that lets calls through on trial.
        static var ready: Circuit {
            var circuit = open
            circuit.now += .seconds(30)
            return circuit
        }
    }

    @Test("A success may be the call that was missing for the circuit to open") func success() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure, .success)
        #expect(circuit.machine.state == .open(until: .seconds(30)))
    }

    @Test("A part of the calls is what it says, without rounding errors", arguments: [0.07, 0.14, 0.29, 0.56, 0.57])
    func ratio(ratio: Double) {
        var configuration = CircuitBreakerDecisionTests.configuration
        (configuration.failureRatio, configuration.minimumCalls) = (ratio, 100)
        let count = Int((ratio * 100).rounded())
        for failures in [count - 1, count] {
            var circuit = Circuit(machine: Machine(configuration))
            for call in 0..<100 { circuit.calls(call < failures ? .failure : .success) }
            #expect((circuit.machine.state != .closed) == (failures == count))
        }
    }

    @Test("Calls that are no longer in the window do not count") func window() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure)
        circuit.now = .seconds(11)
        circuit.calls(.failure)
        #expect(circuit.machine.state == .closed)
    }

    @Test("A call that was let through in an earlier state has no effect") func lateOutcomes() {
        var circuit = Circuit()
        let (early, late, cancelled) = (circuit.call(), circuit.call(), circuit.call())
        circuit.calls(.failure, .failure, .failure, .failure)
        circuit.end(early, .success)
        #expect(circuit.machine.state == .open(until: .seconds(30)))
        circuit.now = .seconds(30)
        circuit.calls(.success)
        circuit.end(late, .success)
        circuit.end(cancelled, .cancellation)
        #expect(circuit.machine.state == .halfOpen(inFlight: 0, succeeded: 1))
    }

    @Test("A circuit that closes again forgets the failures before") func closedAgain() {
        var configuration = Self.configuration
        configuration.openDuration = .seconds(1)
        var circuit = Circuit(machine: Machine(configuration))
        circuit.calls(.failure, .failure, .failure, .failure)
        // They are still in the window.
        circuit.now = .seconds(1)
        circuit.calls(.success, .success)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.failure, .failure, .failure)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.failure)
        #expect(circuit.machine.state == .open(until: .seconds(2)))
    }

    @Test("What is wrong with a configuration is said") func problems() {
        func problem(_ change: (inout Machine.Configuration) -> Void) -> String? {
            var configuration = Self.configuration
            change(&configuration)
            return configuration.problem
        }
        #expect(problem { _ in } == nil)
        #expect(problem { $0.failureRatio = 1 } == nil)
        for ratio in [0, -1, 1.1, .nan, .infinity] {
            #expect(problem { $0.failureRatio = ratio } == "a failure ratio of \(ratio)")
        }
        #expect(problem { $0.minimumCalls = 0 } == "a minimum of 0 calls")
        #expect(problem { $0.window = .zero }?.hasPrefix("a window of") == true)
        #expect(problem { $0.openDuration = .seconds(-1) }?.hasPrefix("an open duration of") == true)
        #expect(problem { $0.trialCount = 0 } == "0 calls when it is half open")
    }
}
