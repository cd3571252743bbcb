import OperationKitTestSupport
import Testing

@Suite("ManualClock", .hangGuard) struct ManualClockTests {
    @Test("A sleep ends when the clock has been advanced to its deadline, and not before") func deadline() async throws
    {
        let clock = ManualClock()
        let log = EventLog()
        let sleep = Task {
            try await clock.sleep(for: .seconds(2))
            log.add("awake")
        }
        await clock.sleepers()
        clock.advance(by: .seconds(1.5))
        #expect(clock.deadlines == [.seconds(2)])
        #expect(log.events.isEmpty)
        clock.advance(by: .seconds(0.5))
        try await sleep.value
        #expect(log.events == ["awake"])
        #expect(clock.now.offset == .seconds(2))
    }

    @Test("One step of the clock ends the sleeps that are due, and leaves the others") func order() async throws {
        let clock = ManualClock()
        var tasks: [Task<Void, any Error>] = []
        for (count, seconds) in [3, 1, 2, 1].enumerated() {
            tasks.append(Task { try await clock.sleep(for: .seconds(seconds)) })
            await clock.sleepers(atLeast: count + 1)
        }
        #expect(clock.deadlines == [.seconds(1), .seconds(1), .seconds(2), .seconds(3)])
        clock.advance(by: .seconds(2.5))
        for index in [1, 2, 3] { try await tasks[index].value }
        #expect(clock.deadlines == [.seconds(3)])
        clock.advance(to: .init(offset: .seconds(3)))
        try await tasks[0].value
    }

    @Test("A sleep until now, or until a time that has passed, returns immediately") func past() async throws {
        let clock = ManualClock()
        clock.advance(by: .seconds(1))
        try await clock.sleep(for: .zero)
        try await clock.sleep(for: .seconds(-1))
        #expect(clock.deadlines.isEmpty)
    }

    @Test("A cancelled sleep throws, and leaves nothing in the clock") func cancelled() async {
        let clock = ManualClock()
        let sleep = Task { try await clock.sleep(for: .seconds(1)) }
        await clock.sleepers()
        sleep.cancel()
        await #expect(throws: CancellationError.self) { try await sleep.value }
        #expect(clock.deadlines.isEmpty)
    }

    @Test("A task that is cancelled already does not sleep") func cancelledBefore() async {
        let clock = ManualClock()
        let gate = Gate()
        let sleep = Task {
            await gate.opened()
            try await clock.sleep(for: .seconds(1))
        }
        sleep.cancel()
        gate.open()
        await #expect(throws: CancellationError.self) { try await sleep.value }
    }

    @Test("Cancelling a sleep at any moment ends it, and leaves nothing in the clock") func cancelledAnytime() async {
        let clock = ManualClock()
        for _ in 0..<500 {
            let sleep = Task { try await clock.sleep(for: .seconds(1)) }
            sleep.cancel()
            await #expect(throws: CancellationError.self) { try await sleep.value }
        }
        #expect(clock.deadlines.isEmpty)
    }

    @Test("Waiting for tasks that sleep ends when the waiting task is cancelled") func cancelledWatch() async {
        let clock = ManualClock()
        let watch = Task { await clock.sleepers() }
        watch.cancel()
        await watch.value
        #expect(clock.deadlines.isEmpty)
    }
}
