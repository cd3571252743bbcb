import OperationKitTestSupport

@testable import OperationKit

@Suite("Repeated operations", .hangGuard) struct RepeatOperationTests {
    private let clock = ManualClock()
    private let log = EventLog()

    /// Runs whose output is their number, every ten seconds, until that is the last one.
    private func poll(
        until last: Int = .max, maximumCount: Int? = nil, continuesAfterFailure: Bool = false,
        _ body: @escaping @Sendable (Int) throws -> Int = { $0 }
    ) -> RepeatOperation<Void, Int> {
        let log = log
        let poll = RepeatOperation(
            every: .seconds(10), maximumCount: maximumCount, continuesAfterFailure: continuesAfterFailure, name: "poll",
            until: { $0 >= last },
            makeOperation: { run in
                IOBlockOperation<Void, Int> { _ in
                    log.add("run \(run)")
                    return try body(run)
                }
            })
        poll.clock = clock
        return poll
    }

    @Test("Runs are repeated until the condition holds, and a long one skips others") func until() async throws {
        let clock = clock
        let poll = poll(until: 3) { run in
            if run == 2 { clock.advance(by: .seconds(25)) }
            return run
        }
        poll.start()
        await clock.pass(.seconds(10))
        await eventually("there is no third run") { clock.deadlines == [.seconds(40)] }
        #expect(poll.attemptCount == 2)
        await clock.pass(.seconds(5))
        #expect(try await poll.value == 3 && clock.deadlines.isEmpty)
        #expect(poll.attemptCount == 3 && (poll as any EarlierName).runCount == 3)
        #expect(log.events == ["run 1", "run 2", "run 3"])
    }

    @Test("A failed run may end it; a lone cancellation and a failed condition do", arguments: [false, true])
    func failure(continues: Bool) async {
        let poll = poll(maximumCount: 3, continuesAfterFailure: continues) { throw TestError.numbered($0) }
        poll.start()
        for _ in 1..<(continues ? 3 : 1) { await clock.pass(.seconds(10)) }
        await #expect(throws: TestError.numbered(continues ? 3 : 1)) { try await poll.value }
        #expect(poll.attemptCount == (continues ? 3 : 1) && clock.deadlines.isEmpty)
        let cancelled = self.poll(continuesAfterFailure: continues) { _ in throw URLError(.cancelled) }
        await Start.byHand(cancelled)
        #expect(cancelled.error is URLError && cancelled.attemptCount == 1)
        let refusing = RepeatOperation(
            every: .seconds(1), continuesAfterFailure: continues, until: { _ in throw TestError.second },
            makeOperation: { _ in TaskOperation { 1 } })
        await Start.byHand(refusing)
        #expect(text(refusing.error) == "second")
    }

    @Test("Cancelling during a run ends it after that, and only a failure stands", arguments: [nil, TestError.first])
    func cancelledDuringARun(error: TestError?) async {
        let run = ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: error) })
        let asked = Shared(0)
        let poll = RepeatOperation(
            every: .seconds(1), continuesAfterFailure: true, until: { asked.increment() < 0 },
            makeOperation: { _ in run })
        poll.start()
        await eventually("not begun") { run.isAtWork }
        poll.cancel()
        try? await poll.finished()
        #expect(text(poll.error) == (error == nil ? "cancelled" : "first") && asked.value == 0)
    }

    @Test("The description tells which run is next, and cancelling it then ends it") func description() async {
        for (maximum, text) in [(7, "run 2 of 7 begins in 8.5 s"), (nil, "run 2 begins in 8.5 s")] {
            let poll = poll(maximumCount: maximum)
            poll.start()
            await clock.sleepers()
            clock.advance(by: .milliseconds(1_500))
            #expect(poll.debugDescription.hasSuffix(text))
            poll.cancel(withError: TestError.reason)
            await #expect(throws: TestError.reason) { try await poll.value }
            #expect(poll.attemptCount == 1)
        }
        await clock.expectNoSleepers()
    }

    @Test("The progress of a repetition counts its runs, if there is a maximum", arguments: [nil, 4])
    func progress(maximum: Int?) async throws {
        let poll = poll(until: 3, maximumCount: maximum)
        let progress = poll.progress
        poll.start()
        for run in 1...2 {
            await clock.sleepers()
            #expect(progress.fractionCompleted == (maximum == nil ? 0 : Double(run) / 4))
            clock.advance(by: .seconds(10))
        }
        #expect(try await poll.value == 3)
        #expect(progress.fractionCompleted == 1)
    }

    @Test("Runs are due at multiples of the interval, and those that passed during a run are skipped") func ticks() {
        var machine = RepeatStateMachine(every: .seconds(10))
        // It begins late, ends when the next one is due, lasts for two ticks and a half, and its timer comes early.
        for (elapsed, delay) in [(0, 10), (12, 8), (30, 0), (55, 5), (59, 11)] {
            #expect(machine.runEnded(elapsed: .seconds(elapsed)) == .seconds(delay))
        }
    }

    @Test("Runs do not drift, and no interval is too short or too long to count") func extremes() {
        var month = RepeatStateMachine(every: .milliseconds(100))
        let elapsed = Duration.seconds(30 * 24 * 3_600) + .milliseconds(30)
        #expect(month.runEnded(elapsed: elapsed) == .milliseconds(70))
        var third = RepeatStateMachine(every: .nanoseconds(333_333_333))
        #expect(third.runEnded(elapsed: .nanoseconds(333_333_333 * 1_000_000_007 + 1)) == .nanoseconds(333_333_332))
        var shortest = RepeatStateMachine(every: Duration(secondsComponent: 0, attosecondsComponent: 1))
        #expect(shortest.runEnded(elapsed: .seconds(1_000_000_000)) <= .nanoseconds(1))
        #expect(shortest.runEnded(elapsed: .seconds(Int64.max)) == .zero)
        var early = RepeatStateMachine(every: .nanoseconds(1))
        #expect(early.runEnded(elapsed: .seconds(-Int64.max)) == .seconds(Int64.max) + .nanoseconds(1))
        // A part of a nanosecond counts, too: in a week it makes some twenty milliseconds.
        var picture = RepeatStateMachine(every: .seconds(1) / 60)
        #expect(picture.runEnded(elapsed: .seconds(1) / 60 * 36_288_000) == .zero)
        var longest = RepeatStateMachine(every: .seconds(Int64.max))
        #expect(longest.runEnded(elapsed: .zero) == .century)
    }
}

/// Has the deprecated name without a warning.
private protocol EarlierName {
    var runCount: Int { get }
}

extension RepeatOperation: EarlierName {}
