import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What happens while an operation requests what it requires.
@Suite("Resource requests", .hangGuard) struct ResourceRequestTests {
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

    private let clock = TellingClock()
    private let log = EventLog()

    private func expectPermit(of limit: RateLimit, _ location: SourceLocation = #_sourceLocation) {
        let next = ScriptedOperation.named("next", in: log, requiring: [limit])
        next.start()
        #expect(next.isFinished && log.events == ["next"], sourceLocation: location)
    }

    @Test("An operation that ends while a circuit breaker is asked uses no permit, and its work does not begin")
    func circuitBreaker() async {
        let api = RateLimit("api", 1, per: .seconds(10), clock: clock)
        let server = CircuitBreaker("server", clock: clock)
        let operation = ScriptedOperation("first") { [log] _ in log.add("first") }
        operation.require(server)
        operation.require(api)
        // It is asked before the request, and when that is granted.
        clock.body.value = { [body = clock.body] in
            body.value = { operation.finish(withError: TestError.first) }
        }
        operation.start()
        #expect(operation.isFinished && text(operation.error) == "first" && log.events.isEmpty)
        expectPermit(of: api)
    }

    @Test("A resource that is required twice is waited for the shorter time, whichever comes first")
    func requiredTwice() {
        let database = ExclusiveAccess("database")
        for durations: [Duration?] in [[nil, .seconds(1)], [.seconds(1), nil], [.seconds(2), .seconds(1)]] {
            var request = ResourceRequest()
            for duration in durations { request.add(database, within: duration) }
            #expect(request.resources.count == 1 && request.shortest?.duration == .seconds(1))
        }
    }

    @Test("What an operation waits for is described by the kind of the resource") func titles() {
        #expect(ExclusiveAccess("a").title == "exclusive access to “a”")
        #expect(ConcurrencyLimit("a", 1).title == "the place of “a”")
        #expect(ConcurrencyLimit("a", 2).title == "one of 2 places of “a”")
        #expect(RateLimit("a", 2, per: .seconds(1)).title == "a permit of “a”")
    }

    @Test("Nothing is said of what an operation does not wait for, or is not part of") func nothing() {
        let (compound, block) = (CompoundOperation(), BlockOperation {})
        #expect(compound.children.map { block.isPart(of: $0) } == false)
        #expect(StartHandler(order: .first) { _ in }.waitDescription == nil)
        #expect(RetryError.invalidPolicy(operation: "load", problem: "none").errorsInside(atMost: 1).isEmpty)
    }
}
