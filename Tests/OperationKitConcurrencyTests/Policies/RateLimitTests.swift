import OperationKitTestSupport

@testable import OperationKit

@Suite("Rate limits", .hangGuard) struct RateLimitTests {
    private let clock = ManualClock()
    private let log = EventLog()

    private func logged(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        .named(name, in: log, requiring: resources)
    }

    private func begun(_ count: Int) async {
        await eventually("\(log.events)") { log.events.count == count }
    }

    @Test("In no time of the given length does the work of more operations begin than the limit says") func rate() async
    {
        let api = RateLimit("api", 2, per: .seconds(10), clock: clock)
        let operations = (0..<5).map { logged("\($0)", api) }
        // What waits, and was started by hand, is held by nothing else.
        defer { withExtendedLifetime(operations) {} }
        operations[0].start()
        clock.advance(by: .seconds(4))
        for operation in operations.dropFirst() { operation.start() }
        #expect(log.events == ["0", "1"] && api.waitingCount == 3)
        await clock.sleepers()
        clock.advance(by: .seconds(5))
        #expect(api.waitingCount == 3)
        clock.advance(by: .seconds(1))
        await begun(3)
        #expect(api.waitingCount == 2)
        await eventually("no deadline") { clock.deadlines == [.seconds(14)] }
        clock.advance(by: .seconds(4))
        await begun(4)
        await eventually("no deadline") { clock.deadlines == [.seconds(20)] }
        clock.advance(by: .seconds(6))
        await begun(5)
        #expect(log.events == ["0", "1", "2", "3", "4"])
    }

    #if DEBUG
    @Test("A thread that is held up between the grant of a permit and main() does not shorten the time to the next one")
    func heldUp() async {
        var tooEarly = 0
        for place in 0..<Interruption.bound {
            let clock = ManualClock()
            let api = RateLimit("api", 1, per: .seconds(10), clock: clock)
            let begins = Shared<[Duration]>([])
            let operations = (0..<2).map { _ in
                ScriptedOperation {
                    begins.change { $0.append(clock.now.offset) }
                    $0.finish()
                }
            }
            defer { withExtendedLifetime(operations) {} }
            for operation in operations { operation.require(api) }
            let wasInterrupted = await onThread {
                let interruption = Interruption(at: place) {
                    if begins.value.isEmpty { clock.advance(by: .seconds(3)) }
                }
                SchedulingProbe.observed(by: interruption) { operations[0].start() }
                return interruption.hasRun
            }
            operations[1].start()
            await eventually("at \(place): \(begins.value)") {
                if let next = clock.deadlines.first { clock.advance(to: ManualClock.Instant(offset: next)) }
                return begins.value.count == 2
            }
            if begins.value[1] - begins.value[0] < .seconds(10) { tooEarly += 1 }
            if !wasInterrupted {
                // Right after the time was noted.
                #expect(tooEarly <= 1)
                return
            }
        }
        Issue.record("There are more places")
    }
    #endif

    @Test("A permit is used when everything else was granted, too") func usedAtTheGrant() async {
        let api = RateLimit("api", 1, per: .seconds(10), clock: clock)
        let database = ExclusiveAccess("database")
        let holder = ScriptedOperation.idle("holder")
        holder.require(database)
        holder.start()
        let (both, next) = (logged("both", api, database), logged("next", api))
        both.start()
        clock.advance(by: .seconds(20))
        #expect(clock.deadlines.isEmpty)
        holder.finish()
        await begun(1)
        next.start()
        await eventually("no deadline") { clock.deadlines == [.seconds(30)] }
        clock.advance(by: .seconds(10))
        await begun(2)
    }

    @Test("An attempt uses a permit, and the operation that makes it none") func attempt() async {
        let api = RateLimit("api", 2, per: .seconds(10), clock: clock)
        let retry = RetryOperation(RetryPolicy(maximumAttempts: 1)) { _ in logged("attempt") }
        retry.require(api)
        retry.start()
        await begun(1)
        clock.advance(by: .seconds(5))
        let operations = (0..<3).map { logged("\($0)", api) }
        defer { withExtendedLifetime(operations) {} }
        for operation in operations { operation.start() }
        await eventually("no deadline") { clock.deadlines == [.seconds(10)] }
        clock.advance(by: .seconds(5))
        await begun(3)
        #expect(log.events == ["attempt", "0", "1"] && api.waitingCount == 1)
    }

    @Test("A permit is given back if the work does not begin after all", arguments: [false, true])
    func givenBack(isCompound: Bool) async throws {
        let api = RateLimit("api", 1, per: .seconds(10), clock: clock)
        let child = logged("child")
        let operation = isCompound ? CompoundOperation(operations: [child]) : logged("operation")
        operation.require(api)
        let gate = HeldGate(order: .last)
        operation.addGate(gate)
        operation.start()
        #expect(gate.isAwaited)
        let next = logged("next", api)
        next.start()
        #expect(api.waitingCount == 1)
        operation.cancel()
        try await next.finished()
        #expect(log.events == ["next"])
        let last = logged("last", api)
        last.start()
        await eventually("no deadline") { clock.deadlines == [.seconds(10)] }
        clock.advance(by: .seconds(10))
        try await last.finished()
    }

    @Test(
        "An operation that is dropped at work has used its permit, and a limit that is released leaves no deadline behind"
    )
    func dropped() async {
        let leaks = LeakTracker()
        do {
            let api = leaks.track(RateLimit("api", 1, per: .seconds(10), clock: clock))
            do {
                let operation = leaks.track(ScriptedOperation.idle())
                operation.require(api)
                operation.start()
            }
            let next = leaks.track(logged("next", api))
            next.start()
            #expect(api.waitingCount == 1)
            await clock.pass(.seconds(10))
            await begun(1)
        }
        await leaks.expectAllReleased()
        await clock.expectNoSleepers()
    }
}
