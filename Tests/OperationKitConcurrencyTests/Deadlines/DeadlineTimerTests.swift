import OperationKitTestSupport

@testable import OperationKit

@Suite("Deadlines", .hangGuard) struct DeadlineTimerTests {
    private let clock = ManualClock()
    private let log = EventLog()
    private let target = LeakTracker.Token()

    /// Arms a deadline that writes a word, and opens a gate if there is one.
    private func arm(_ word: String, after duration: Duration, opening gate: Gate? = nil) -> ArmedDeadline {
        clock.timer.arm(for: target, after: duration) { [log] _ in
            log.add(word)
            gate?.open()
        }
    }

    @Test(
        "A deadline that was disarmed or released does not expire, and leaves neither a sleep nor a timer behind",
        arguments: [false, true])
    func disarmed(isReleased: Bool) async {
        var deadline: ArmedDeadline? = arm("expired", after: .seconds(1))
        await clock.sleepers()
        if isReleased {
            deadline = nil
        } else {
            #expect(deadline?.disarm() == true)
            #expect(deadline?.disarm() == false)
        }
        await clock.expectNoSleepers()
        clock.advance(by: .seconds(2))
        #expect(log.events.isEmpty)
    }

    @Test("The sleep of a task follows the first deadline, also when that is disarmed")
    func followsFirst() async {
        let (first, second) = (arm("first", after: .seconds(2)), arm("second", after: .seconds(60)))
        await clock.sleepers()
        first.disarm()
        await eventually("\(clock.deadlines)") { clock.deadlines == [.seconds(60)] }
        second.disarm()
        await clock.expectNoSleepers()
    }

    /// A clock whose sleeps end only when they are cancelled.
    private final class CountedClock: Clock {
        /// How many sleep, how many did at most at the same time, and how many sleeps there were.
        let sleeps = Shared((now: 0, most: 0, all: 0))
        var now: ContinuousClock.Instant { .now }
        var minimumResolution: Duration { .zero }

        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            let cancelled = Gate()
            await withTaskCancellationHandler {
                sleeps.change { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) }
                await cancelled.openedDespiteCancellation()
            } onCancel: {
                sleeps.change { $0.now -= 1 }
                cancelled.open()
            }
        }
    }

    @Test("An earlier deadline takes the place of a sleep, and does not sleep beside it") func replacedSleep() async {
        let clock = CountedClock()
        for round in 0..<300 {
            let first = clock.timer.arm(for: target, after: .seconds(60)) { _ in }
            while clock.sleeps.value.all == round * 2 { await Task.yield() }
            let second = clock.timer.arm(for: target, after: .seconds(30)) { _ in }
            while clock.sleeps.value.all == round * 2 + 1 { await Task.yield() }
            // Nothing is left to sleep for.
            first.disarm()
            second.disarm()
        }
        #expect(clock.sleeps.value.most == 1)
    }

    @Test("Of deadlines that follow one another only the latest expires, and none after the end")
    func latest() async {
        let (gate, latest) = (Gate(), LatestDeadline())
        latest.replace {
            // Another thread is quicker.
            latest.replace { arm("second", after: .seconds(2), opening: gate) }
            return arm("first", after: .seconds(1))
        }
        await clock.pass(.seconds(3))
        await gate.opened()
        #expect(log.events == ["second"])
        latest.replace { arm("third", after: .seconds(1)) }
        latest.end()
        latest.replace { arm("fourth", after: .seconds(1)) }
        await clock.expectNoSleepers()
    }

    @Test("A deadline keeps its target not alive, and expires for nothing without it") func target() async {
        let tracker = LeakTracker()
        let gate = Gate()
        var target: LeakTracker.Token? = tracker.token("target")
        let deadlines = target.map { target in
            [
                clock.timer.arm(for: target, after: .seconds(1)) { [log] _ in log.add("expired") },
                arm("later", after: .seconds(1), opening: gate),
            ]
        }
        await clock.sleepers()
        target = nil
        await tracker.expectAllReleased()
        clock.advance(by: .seconds(1))
        await gate.opened()
        #expect(log.events == ["later"])
        withExtendedLifetime(deadlines) {}
    }

    @Test("While a closure blocks, other deadlines expire") func blockingClosure() async {
        let (blocked, release, other) = (Gate(), Gate(), Gate())
        let first = clock.timer.arm(for: target, after: .seconds(1)) { _ in
            blocked.open()
            release.pass()
        }
        let second = arm("other", after: .seconds(2), opening: other)
        await clock.pass(.seconds(1))
        await blocked.opened()
        await clock.pass(.seconds(1))
        await other.opened()
        release.open()
        withExtendedLifetime((first, second)) {}
    }

    @Test("A closure may arm and disarm deadlines of the same timer") func reentrancy() async {
        let gate = Gate()
        let other = arm("other", after: .seconds(5))
        let later = Shared<ArmedDeadline?>(nil)
        let first = clock.timer.arm(for: target, after: .seconds(1)) { [clock, log] target in
            log.add("disarmed: \(other.disarm())")
            later.value = clock.timer.arm(for: target, after: .seconds(1)) { _ in gate.open() }
        }
        await clock.pass(.seconds(1))
        await eventually("the sleep has not changed") { clock.deadlines == [.seconds(2)] }
        clock.advance(by: .seconds(1))
        await gate.opened()
        #expect(log.events == ["disarmed: true"])
        withExtendedLifetime((first, later)) {}
    }

    @Test("Deadlines of the clocks of the system, and of a clock that is a class, share a timer") func sharedTimers() {
        #expect(ContinuousClock().timer === ContinuousClock().timer)
        #expect(SuspendingClock().timer === SuspendingClock().timer)
        let deadline = arm("expired", after: .seconds(1))
        #expect(clock.timer === clock.timer)
        #expect(clock.timer !== ManualClock().timer)
        let clocks: [any Clock<Duration>] = [ContinuousClock(), clock]
        #expect(clocks[0].timer === ContinuousClock().timer)
        #expect(clocks[1].timer === clock.timer)
        #expect(deadline.disarm())
    }

    @Test("The timer of a clock is released with its last deadline, and the clock with it") func releasedTimer() async {
        let tracker = LeakTracker()
        do {
            let clock = tracker.track(ManualClock())
            let timer = clock.timer
            _ = tracker.track(timer as AnyObject)
            let deadline = timer.arm(for: timer, after: .seconds(1)) { _ in }
            await clock.sleepers()
            #expect(deadline.disarm())
        }
        await tracker.expectAllReleased()
    }

    @Test("A clock whose time stands still lets deadlines expire") func standingClock() async {
        let gate = Gate()
        let deadline = StandingClock().timer.arm(for: target, after: .seconds(60)) { _ in gate.open() }
        await gate.opened()
        withExtendedLifetime(deadline) {}
    }

    @Test("Deadlines of the system's clocks expire although serial queues and the cooperative pool are blocked")
    func blockedThreads() async {
        let target = target
        await onThread {
            let (release, ended) = (Gate(), DispatchGroup())
            for index in 0..<TestExtent.choose(64, long: 300) {
                DispatchQueue(label: "\(index)", qos: .userInitiated).async(group: ended) { release.pass() }
            }
            for _ in 0..<2 * ProcessInfo.processInfo.activeProcessorCount { Task.detached { block(until: release) } }
            for clock in [ContinuousClock(), SuspendingClock()] as [any Clock<Duration>] {
                let expired = Gate()
                let deadline = clock.timer.arm(for: target, after: .milliseconds(20)) { _ in expired.open() }
                expired.pass()
                withExtendedLifetime(deadline) {}
            }
            release.open()
            ended.wait()
        }
    }

    @Test("A thread that wakes too early sleeps again, and one that an earlier deadline wakes serves that")
    func earlyThread() async {
        let timer = DeadlineTimer(TimeSource(clock), usesThread: true)
        let (early, late) = (Gate(), Gate())
        let deadlines = [
            timer.arm(for: target, after: .seconds(1_000)) { [log] _ in log.add("never") },
            timer.arm(for: target, after: .milliseconds(2)) { [log] _ in
                log.add("late")
                late.open()
            },
        ]
        // The time of the test's clock stands still, while that of the thread passes.
        let real = ContinuousClock().timer.arm(for: target, after: .milliseconds(20)) { _ in early.open() }
        await early.opened()
        #expect(log.events.isEmpty)
        clock.advance(by: .milliseconds(2))
        await late.opened()
        #expect(log.events == ["late"] && timer.state.withLock { $0.machine.deadlines.count } == 1)
        withExtendedLifetime((deadlines, real)) {}
    }

    @Test("Deadlines that several threads arm at the same time are served by one task, until the last one")
    func severalThreads() async {
        for _ in 0..<50 {
            let (clock, target) = (clock, target)
            let deadlines = Shared<[ArmedDeadline]>([])
            let calls = Shared(0)
            let bodies = (0..<4).map { lane -> @Sendable () -> Void in
                {
                    // Each thread arms ever earlier ones, so that sleeps are replaced all the time.
                    for step in 0..<10 {
                        let seconds = 100 - step * 4 - lane
                        let deadline = clock.timer.arm(for: target, after: .seconds(seconds)) { _ in
                            calls.change { $0 += 1 }
                        }
                        deadlines.change { $0.append(deadline) }
                    }
                }
            }
            await concurrently(bodies)
            let first = clock.now.offset + .seconds(61)
            await eventually("\(clock.deadlines) sleep") { clock.deadlines == [first] }
            clock.advance(by: .seconds(61))
            await eventually("the task does not sleep on") { clock.deadlines == [first + .seconds(1)] }
            clock.advance(by: .seconds(39))
            await eventually("\(calls.value) calls") { calls.value == 40 }
            await clock.expectNoSleepers()
            withExtendedLifetime(deadlines) {}
        }
    }
}
