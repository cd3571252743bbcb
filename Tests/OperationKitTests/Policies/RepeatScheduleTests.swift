import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Schedules of repetitions") struct RepeatScheduleTests {
    @Test("Runs are due at multiples of the interval, and those that passed during a run are skipped")
    func ticks() {
        var schedule = RepeatSchedule(every: .seconds(10), maximumCount: nil)
        let ends: [(elapsed: Duration, delay: Duration)] = [
            (.zero, .seconds(10)),
            // It began late, and ended in time.
            (.seconds(12), .seconds(8)),
            // It ended when the next one was due.
            (.seconds(30), .zero),
            // It lasted for two ticks and a half.
            (.seconds(55), .seconds(5)),
            // The timer came early.
            (.seconds(59), .seconds(11)),
        ]
        for (index, (elapsed, delay)) in ends.enumerated() {
            #expect(schedule.run == index + 1 && !schedule.isLastRun)
            #expect(schedule.runEnded(elapsed: elapsed) == delay)
        }
    }

    @Test("The runs that there are at most are counted", arguments: [1, 3]) func maximumCount(count: Int) {
        var schedule = RepeatSchedule(every: .seconds(1), maximumCount: count)
        for _ in 1..<count {
            #expect(!schedule.isLastRun)
            _ = schedule.runEnded(elapsed: .zero)
        }
        #expect(schedule.isLastRun && schedule.run == count)
    }

    @Test("Every run is due at the next multiple, whatever its end")
    func everyEnd() {
        // All orders of ends up to three and a half intervals after a tick, in quarters.
        func visit(_ schedule: RepeatSchedule, tick: Int, depth: Int) -> Int {
            guard depth > 0 else { return 1 }
            return (0...14).reduce(0) { count, quarters in
                var schedule = schedule
                let elapsed = 4 * tick + quarters
                let delay = schedule.runEnded(elapsed: .milliseconds(250 * elapsed))
                // After the tick of the last run, and no later than necessary.
                let next = max(tick + 1, (elapsed + 3) / 4)
                #expect(.milliseconds(250 * elapsed) + delay == .seconds(next))
                return count + visit(schedule, tick: next, depth: depth - 1)
            }
        }
        let depth = TestExtent.choose(3, long: 4)
        let count = visit(RepeatSchedule(every: .seconds(1), maximumCount: nil), tick: 0, depth: depth)
        #expect(count == (0..<depth).reduce(1) { count, _ in count * 15 })
    }

    @Test("Runs do not drift, and no interval is too short or too long to count")
    func extremes() {
        var month = RepeatSchedule(every: .milliseconds(100), maximumCount: nil)
        let elapsed = Duration.seconds(30 * 24 * 3_600) + .milliseconds(30)
        #expect(month.runEnded(elapsed: elapsed) == .milliseconds(70))
        var third = RepeatSchedule(every: .nanoseconds(333_333_333), maximumCount: nil)
        #expect(third.runEnded(elapsed: .nanoseconds(333_333_333 * 1_000_000_007 + 1)) == .nanoseconds(333_333_332))
        var shortest = RepeatSchedule(every: Duration(secondsComponent: 0, attosecondsComponent: 1), maximumCount: nil)
        #expect(shortest.runEnded(elapsed: .seconds(1_000_000_000)) <= .nanoseconds(1))
        var longest = RepeatSchedule(every: .seconds(Int64.max), maximumCount: nil)
        #expect(longest.runEnded(elapsed: .zero) == .century)
    }
}
