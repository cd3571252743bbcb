import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("CircuitBreaker") struct CircuitBreakerTests {
    private typealias Machine = CircuitBreakerStateMachine

    private static let configuration = Machine.Configuration(
        failureRatio: 0.5, minimumCalls: 4, window: .seconds(10), openDuration: .seconds(30), trialCount: 2)

    /// A machine, with what happens to it in one line each.
    private struct Circuit {
        var machine = Machine(configuration)
        var now = Duration.zero

        mutating func call() -> Machine.Call? {
            guard case .admitted(let call) = machine.called(at: now) else { return nil }
            return call
        }

        mutating func end(_ call: Machine.Call?, _ outcome: Machine.Outcome) {
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

    @Test("The circuit opens when enough calls were made, and the part of failures is reached") func opening() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.failure)
        #expect(circuit.machine.state == .open(until: .seconds(30)))

        circuit = Circuit()
        circuit.calls(.success, .success, .success, .failure, .failure)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.failure)
        #expect(circuit.machine.state == .open(until: .seconds(30)))
    }

    @Test("Cancellations count neither as calls nor as failures") func cancellations() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure, .cancellation, .cancellation, .cancellation)
        #expect(circuit.machine.state == .closed)
        circuit.calls(.failure)
        #expect(circuit.machine.state != .closed)
    }

    @Test("A success may be the call that was missing for the circuit to open") func success() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure, .success)
        #expect(circuit.machine.state == .open(until: .seconds(30)))
    }

    @Test("A part of the calls is what it says, without rounding errors", arguments: [0.07, 0.14, 0.29, 0.56, 0.57])
    func ratio(ratio: Double) {
        var configuration = CircuitBreakerTests.configuration
        (configuration.failureRatio, configuration.minimumCalls) = (ratio, 100)
        let count = Int((ratio * 100).rounded())
        for failures in [count - 1, count] {
            var circuit = Circuit(machine: Machine(configuration))
            for call in 0..<100 { circuit.calls(call < failures ? .failure : .success) }
            #expect((circuit.machine.state != .closed) == (failures == count))
        }
    }

    @Test("No time of a clock is too long to count", arguments: [1, -1] as [Int64])
    func longTimes(sign: Int64) {
        var configuration = CircuitBreakerTests.configuration
        configuration.window = .nanoseconds(1)
        var circuit = Circuit(machine: Machine(configuration))
        circuit.calls(.failure)
        circuit.now = .seconds(sign * (Int64.max / 4))
        circuit.calls(.failure, .failure, .failure, .failure)
        #expect(circuit.machine.state != .closed)
    }

    @Test("Calls that are no longer in the window do not count") func window() {
        var circuit = Circuit()
        circuit.calls(.failure, .failure, .failure)
        circuit.now = .seconds(11)
        circuit.calls(.failure)
        #expect(circuit.machine.state == .closed)
    }

    @Test("An open circuit rejects all calls, and says for how long") func rejection() {
        var circuit = Circuit.open
        circuit.now = .seconds(12)
        #expect(circuit.machine.called(at: circuit.now) == .rejected(.init(retryAfter: .seconds(18))))
        #expect(circuit.machine.rejection(at: circuit.now) == .init(retryAfter: .seconds(18)))
    }

    @Test("When its time is over, an open circuit lets a fixed number of calls through") func trials() {
        var circuit = Circuit.ready
        #expect(circuit.machine.rejection(at: circuit.now) == nil)
        #expect(circuit.machine.state == .open(until: .seconds(30)))
        let (first, second) = (circuit.call(), circuit.call())
        #expect(circuit.machine.state == .halfOpen(inFlight: 2, succeeded: 0))
        #expect(circuit.machine.called(at: circuit.now) == .rejected(.init(retryAfter: nil)))
        circuit.end(first, .success)
        #expect(circuit.call() == nil)
        circuit.end(second, .success)
        #expect(circuit.machine.state == .closed)
    }

    @Test("A trial that fails opens the circuit again, for the same time") func failedTrial() {
        var circuit = Circuit.ready
        let (first, second) = (circuit.call(), circuit.call())
        circuit.now += .seconds(5)
        circuit.end(first, .failure)
        #expect(circuit.machine.state == .open(until: .seconds(65)))
        circuit.end(second, .failure)
        #expect(circuit.machine.state == .open(until: .seconds(65)))
    }

    @Test("A trial that is cancelled makes way for another one") func cancelledTrial() {
        var circuit = Circuit.ready
        let (first, second) = (circuit.call(), circuit.call())
        #expect(circuit.call() == nil)
        circuit.end(first, .cancellation)
        let third = circuit.call()
        #expect(third != nil)
        circuit.end(second, .success)
        circuit.end(third, .success)
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

    @Test("An open duration beyond all measure does not overflow") func hugeDuration() {
        var configuration = Self.configuration
        configuration.openDuration = .longest
        var circuit = Circuit(machine: Machine(configuration))
        circuit.calls(.failure, .failure, .failure, .failure)
        #expect(circuit.machine.state == .open(until: .century))
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

    @Test("Every history keeps the rules", arguments: 1...30 as ClosedRange<UInt64>) func histories(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var circuit = Circuit()
        var inFlight: [Machine.Call] = []
        var opened = 0
        for _ in 0..<3_000 {
            let before = circuit.machine.state
            if random.next() % 2 == 0 {
                let isRejected = circuit.machine.rejection(at: circuit.now) != nil
                let call = circuit.call()
                #expect((call == nil) == isRejected)
                if let call { inFlight.append(call) }
                if case .open(let end) = before { #expect((call != nil) == (circuit.now >= end)) }
                if case .closed = before { #expect(call != nil) }
            } else if !inFlight.isEmpty {
                let call = inFlight.remove(at: Int(random.next() % UInt64(inFlight.count)))
                let outcome: Machine.Outcome = [.success, .failure, .cancellation][Int(random.next() % 3)]
                circuit.end(call, outcome)
                if case .cancellation = outcome, case .halfOpen = before {
                } else if case .cancellation = outcome {
                    #expect(circuit.machine.state == before)
                }
            }
            if case .halfOpen(let inFlight, let succeeded) = circuit.machine.state {
                #expect(inFlight >= 0 && succeeded >= 0 && inFlight + succeeded <= 2 && succeeded < 2)
            }
            if case .open(let end) = circuit.machine.state, before != circuit.machine.state {
                #expect(end == circuit.now + .seconds(30))
                opened += 1
            }
            circuit.now += .milliseconds(random.next() % 3_000)
        }
        #expect(opened > 1)
    }
}
