import OperationKitTestSupport

@testable import OperationKit

@Suite("Circuit breakers of operations", .hangGuard) struct CircuitBreakerTests {
    private let clock = ManualClock()
    private let log = EventLog()

    private func makeCircuit(minimumCalls: Int = 2, halfOpenCalls: Int = 1) -> CircuitBreaker {
        CircuitBreaker(
            "service", minimumCalls: minimumCalls, openDuration: .seconds(30), halfOpenCalls: halfOpenCalls,
            clock: clock)
    }

    /// An operation that ends with an outcome, or is left executing.
    private func call(_ circuit: CircuitBreaker, _ error: (any Error)? = nil, ends: Bool = true) -> ScriptedOperation {
        let operation = ScriptedOperation.stoppable("call") { [log] in
            log.add("call")
            if ends { $0.finish(withError: error) }
        }
        operation.require(circuit)
        return operation
    }

    private func open(_ circuit: CircuitBreaker) {
        for _ in 0..<2 { call(circuit, TestError.first).start() }
        #expect(circuit.state == .open)
    }

    @Test("When enough have failed, others end without their work, until trials succeed") func opens() {
        let circuit = makeCircuit(minimumCalls: 4, halfOpenCalls: 2)
        for error in [nil, TestError.first, nil] { call(circuit, error).start() }
        #expect(circuit.state == .closed)
        call(circuit, TestError.second).start()
        #expect(circuit.state == .open)
        let trials = [call(circuit, ends: false), call(circuit, ends: false)]
        for (time, duration) in [(12, .seconds(18)), (18, nil)] as [(Int, Duration?)] {
            clock.advance(by: .seconds(time))
            if duration == nil {
                #expect(circuit.state == .halfOpen)
                for trial in trials { trial.start() }
            }
            let rejected = call(circuit)
            rejected.start()
            let error = CircuitOpenError(operation: "call", circuit: "service", retryAfter: duration)
            #expect(rejected.error as? CircuitOpenError == error)
        }
        #expect(log.events.count == 6)
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
        let cancelled = call(circuit, ends: false)
        cancelled.start()
        cancelled.cancel()
        #expect(cancelled.isFinished && circuit.state == .halfOpen)
        call(circuit, ends: false).start()
        await eventually("the place is taken") { (try? circuit.allow(AsyncOperation(), begins: false)) != nil }
        call(circuit, TestError.first).start()
        #expect(circuit.state == .open)
    }

    @Test("A retry waits as long as the circuit that it requires is open") func retry() async throws {
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

    @Test("Cancellations do not count, timeouts do, and what is no failure is a success") func outcomes() async throws {
        let circuit = makeCircuit()
        for _ in 0..<9 {
            let operation = call(circuit, ends: false)
            operation.start()
            operation.cancel()
            call(circuit, CancellationError()).start()
        }
        let children = [call(circuit, ends: false), call(circuit, ends: false)]
        let whole = CompoundOperation(operations: children)
        await whole.start(until: children[0], children[1])
        whole.cancel(withError: TestError.reason)
        try await whole.waitForFinish()
        #expect(circuit.state == .closed)
        let late = [call(circuit, ends: false), call(circuit, ends: false)]
        for operation in late {
            operation.clock = clock
            operation.timeout = .seconds(5)
            operation.start()
        }
        await clock.pass(.seconds(5))
        for operation in late { try await operation.waitForFinish() }
        #expect(circuit.state == .open)
        let other = CircuitBreaker("service", minimumCalls: 3, clock: clock) { $0 as? TestError == .first }
        for error in [TestError.second, .second, .second, .second] { call(other, error).start() }
        for _ in 0..<3 { call(other, TestError.first).start() }
        #expect(other.state == .closed)
        call(other, TestError.first).start()
        #expect(other.state == .open)
    }

    @Test("It is asked before any wait, and at the grant, which gives all back") func askedTwice() async throws {
        let (trial, circuit) = (makeCircuit(), makeCircuit())
        open(trial)
        clock.advance(by: .seconds(30))
        let (database, api) = (ExclusiveAccess("database"), RateLimit("api", 2, per: .seconds(10), clock: clock))
        let holder = log.held("holder", database)
        holder.start()
        let (waiting, isFree) = (call(trial), Shared<Bool?>(nil))
        waiting.require(circuit)
        for resource in [database, api] as [OperationResource] { waiting.require(resource) }
        waiting.asyncCompletionBlock = { _ in isFree.value = database.waitingCount == 0 }
        let next = ScriptedOperation.named("next", in: log, requiring: [database, api])
        waiting.start()
        next.start()
        open(circuit)
        let rejected = call(circuit)
        rejected.require(database)
        rejected.start()
        #expect(rejected.error is CircuitOpenError && database.waitingCount == 2)
        holder.finish()
        await eventually("next does not run") { log.events.last == "next" && isFree.value != nil }
        #expect(isFree.value == true && waiting.error is CircuitOpenError && circuit.state == .open)
        #expect(clock.deadlines.count <= 1)
        let last = ScriptedOperation.named("last", in: log, requiring: [api])
        last.start()
        #expect(last.error == nil && last.isFinished)
        call(trial).start()
        #expect(trial.state == .closed)
    }

    #if DEBUG
    @Test("What ends while its circuit breaker is asked, or later, uses no permit if its work does not begin")
    func endedWhileAsked() {
        for place in 0..<Interruption.bound {
            let (api, log) = (RateLimit("api", 1, per: .seconds(10), clock: clock), EventLog())
            let operation = ScriptedOperation.named("first", in: log, requiring: [api])
            operation.require(makeCircuit())
            let interruption = Interruption(at: place) { operation.finish(withError: TestError.first) }
            SchedulingProbe.observed(by: interruption) { operation.start() }
            let next = ScriptedOperation.named("next", in: log, requiring: [api])
            next.start()
            #expect(operation.isFinished && next.isFinished != log.events.contains("first"), "at \(place)")
            next.cancel()
            if !interruption.hasRun { return }
        }
        Issue.record("There are more places")
    }
    #endif

    @Test("A compound's outcome counts, an early end too, and not what never began") func compounds() async throws {
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
        let compound = CompoundOperation(operations: [ThrowingBlockOperation { throw TestError.second }])
        compound.require(circuit)
        await Start.byHand(compound)
        #expect(circuit.state == .open)
    }
}

@Suite("CircuitBreaker") struct CircuitBreakerDecisionTests {
    private typealias Machine = CircuitBreakerStateMachine

    private static let configuration = Machine.Configuration(
        failureRatio: 0.5, minimumCalls: 4, window: .seconds(10), openDuration: .seconds(1), trialCount: 2)

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

        mutating func calls(_ outcomes: Machine.Outcome...) {
            for outcome in outcomes { end(call(), outcome) }
        }
    }

    @Test("A part of the calls is what it says, without rounding errors", arguments: [0.07, 0.14, 0.29, 0.56, 0.57])
    func ratio(ratio: Double) {
        var configuration = Self.configuration
        (configuration.failureRatio, configuration.minimumCalls) = (ratio, 100)
        let count = Int((ratio * 100).rounded())
        for failures in [count - 1, count] {
            var circuit = Circuit(machine: Machine(configuration))
            for call in 0..<100 { circuit.calls(call < failures ? .failure : .success) }
            #expect((circuit.machine.state != .closed) == (failures == count))
        }
    }

    @Test("Only calls in the window count, and a success may be the one that was missing") func window() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure)
        circuit.now = .seconds(11)
        circuit.calls(.failure, .failure, .failure)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.success)
        #expect(circuit.machine.state == .open(until: .seconds(12)))
    }

    @Test("Calls of an earlier state, and failures before it closed, do not count") func earlierStates() {
        var circuit = Circuit()
        let (early, late, cancelled) = (circuit.call(), circuit.call(), circuit.call())
        circuit.calls(.failure, .failure, .failure, .failure)
        circuit.end(early, .success)
        #expect(circuit.machine.state == .open(until: .seconds(1)))
        circuit.now = .seconds(1)
        circuit.calls(.success)
        circuit.end(late, .success)
        circuit.end(cancelled, .cancellation)
        #expect(circuit.machine.state == .halfOpen(inFlight: 0, succeeded: 1))
        circuit.calls(.success, .failure, .failure, .failure)
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
