import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Events of operations that make others, one attempt or run after the other, or two at the same time.
@Suite("Events of attempts", .hangGuard) struct AttemptEventTests {
    private let recorder = EventRecorder()
    private let clock = ManualClock()

    /// Three attempts with a second in between.
    private func policy(budget: RetryBudget? = nil) -> RetryPolicy {
        var policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(1)), jitter: .none)
        policy.budget = budget
        return policy
    }

    /// An operation whose attempts are made by a closure, and have no names of their own.
    private func retry(
        _ policy: RetryPolicy? = nil, _ make: @escaping @Sendable (Int) -> AsyncOperation
    ) -> RetryOperation<Void, Void> {
        let retry = RetryOperation(policy ?? self.policy(), name: "load", makeOperation: make)
        retry.clock = clock
        return recorder.observe(retry)
    }

    /// An operation that fails unless its number is high enough.
    private static func attempt(_ number: Int, failures: Int) -> ScriptedOperation {
        ScriptedOperation { $0.finish(withError: number <= failures ? TestError.numbered(number) : nil) }
    }

    /// All events of one attempt that ends in this way.
    private func attempt(_ number: Int, _ end: String) -> [String] {
        ["added to load", "started", "running", end].map { "load, attempt \(number): \($0)" }
    }

    private func retrying(after number: Int, _ error: String) -> String {
        "load: retrying after attempt \(number) and \(Duration.seconds(1)): \(error)"
    }

    private let start = ["load: started", "load: running"]

    // MARK: - Retries

    @Test("Each attempt is a child, and a retry is an event of the operation between them") func retries() async {
        retry { Self.attempt($0, failures: 2) }.start()
        for number in 1...2 {
            await recorder.occurrence(of: retrying(after: number, "numbered(\(number))"))
            await clock.pass(.seconds(1))
        }
        let events = await recorder.end(of: "load")
        let first = attempt(1, "finished: numbered(1)") + [retrying(after: 1, "numbered(1)")]
        let second = attempt(2, "finished: numbered(2)") + [retrying(after: 2, "numbered(2)")]
        #expect(events == start + first + second + attempt(3, "finished") + ["load: finished"])
    }

    @Test("After the last attempt there is no retry, and its error is that of the operation") func exhausted() async {
        var policy = policy()
        policy.maximumAttempts = 2
        policy.backoff = .none
        retry(policy) { Self.attempt($0, failures: 9) }.start()
        let events = await recorder.end(of: "load")
        #expect(
            events == start + attempt(1, "finished: numbered(1)")
                + ["load: retrying after attempt 1 and \(Duration.zero): numbered(1)"]
                + attempt(2, "finished: numbered(2)") + ["load: finished: numbered(2)"])
    }

    @Test("An error that is not worth a retry is not followed by one") func notWorthARetry() async {
        var policy = policy()
        policy.shouldRetry = { _, _ in false }
        retry(policy) { Self.attempt($0, failures: 9) }.start()
        let events = await recorder.end(of: "load")
        #expect(events == start + attempt(1, "finished: numbered(1)") + ["load: finished: numbered(1)"])
    }

    @Test("Cancelling during an attempt cancels the operation, then the attempt, which ends first")
    func cancelledDuringAnAttempt() async {
        let retry = retry { _ in
            ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
        }
        retry.start()
        await recorder.occurrence(of: "load, attempt 1: running")
        retry.cancel()
        let events = await recorder.end(of: "load")
        let cancelled = ["load: cancelled", "load, attempt 1: cancelled", "load, attempt 1: finished: cancelled"]
        #expect(events == start + attempt(1, "").dropLast() + cancelled + ["load: finished: cancelled"])
    }

    @Test("Cancelling during a delay ends the operation, and the delay has no events") func cancelledDuringADelay()
        async
    {
        let retry = retry { Self.attempt($0, failures: 9) }
        retry.start()
        await clock.sleepers()
        retry.cancel(withError: TestError.reason)
        let events = await recorder.end(of: "load")
        #expect(
            events == start + attempt(1, "finished: numbered(1)") + [retrying(after: 1, "numbered(1)")]
                + ["load: cancelled", "load: finished: reason"])
    }

    @Test("An attempt that takes too long is cancelled and retried") func attemptTimeout() async {
        var policy = policy()
        policy.attemptTimeout = .seconds(5)
        retry(policy) { number in
            ScriptedOperation(
                main: { if number > 1 { $0.finish() } }, didCancel: { $0.finish(withError: CancellationError()) })
        }.start()
        await recorder.occurrence(of: "load, attempt 1: running")
        await clock.pass(.seconds(5))
        await recorder.occurrence(of: retrying(after: 1, "OperationTimeoutError"))
        await clock.pass(.seconds(1))
        let events = await recorder.end(of: "load")
        let first = attempt(1, "cancelled") + ["load, attempt 1: finished: OperationTimeoutError"]
        #expect(
            events == start + first + [retrying(after: 1, "OperationTimeoutError")] + attempt(2, "finished")
                + ["load: finished"])
    }

    @Test(
        "A budget that is exhausted when an attempt has failed prevents the event of a retry; one that is exhausted after the delay, the attempt",
        arguments: 0...1)
    func budget(retries: Int) async {
        let budget = RetryBudget(fraction: 0, minimumRetries: retries, per: .seconds(100), clock: clock)
        let retry = retry(policy(budget: budget)) { Self.attempt($0, failures: 9) }
        retry.start()
        var middle: [String] = []
        if retries == 1 {
            middle = [retrying(after: 1, "numbered(1)")]
            await clock.sleepers()
            #expect(budget.takeRetry())
            clock.advance(by: .seconds(1))
        }
        let events = await recorder.end(of: "load")
        #expect(events == start + attempt(1, "finished: numbered(1)") + middle + ["load: finished: RetryError"])
    }

    @Test("What is inside an attempt has events, too, and ends before that") func compoundAttempts() async {
        var policy = policy()
        policy.backoff = .none
        retry(policy) { number in
            CompoundOperation(operations: [Self.attempt(number, failures: 1).named("child \(number)")])
        }.start()
        let events = await recorder.end(of: "load")
        let name = "load, attempt 1"
        let child = ["started", "running", "finished: numbered(1)"].map { "child 1: \($0)" }
        let head = start + attempt(1, "").dropLast() + child + ["\(name): finished: failures of child 1"]
        #expect(Array(events.prefix(head.count)) == head)
        #expect(recorder.events(of: "child 2") == ["started", "running", "finished"])
        recorder.expectEndsBeforeParents(["child 1": name, "child 2": "load, attempt 2", name: "load"])
    }

    // MARK: - Retries of closures

    @Test("A closure that is called again is one operation, with an event for each retry") func taskRetries() async {
        let calls = Shared(0)
        let task = TaskOperation(name: "load", retry: policy()) {
            let call = calls.change { calls in
                calls += 1
                return calls
            }
            if call < 3 { throw TestError.numbered(call) }
        }
        task.clock = clock
        recorder.observe(task).start()
        for number in 1...2 {
            await recorder.occurrence(of: retrying(after: number, "numbered(\(number))"))
            await clock.pass(.seconds(1))
        }
        let retries = (1...2).map { retrying(after: $0, "numbered(\($0))") }
        #expect(await recorder.end(of: "load") == start + retries + ["load: finished"])
    }

    @Test("A task that is cancelled in a pause ends without another retry") func cancelledTask() async {
        let task = TaskOperation(name: "load", retry: policy()) { throw TestError.first }
        task.clock = clock
        recorder.observe(task).start()
        await clock.sleepers()
        task.cancel()
        let end = ["load: cancelled", "load: finished: cancelled"]
        #expect(await recorder.end(of: "load") == start + [retrying(after: 1, "first")] + end)
    }

    // MARK: - Repetition

    @Test("Each run of a repeated operation is a child, and there are no retries", arguments: [true, false])
    func repetition(continuesAfterFailure: Bool) async {
        let poll = RepeatOperation(
            every: .seconds(10), continuesAfterFailure: continuesAfterFailure, name: "poll", until: { $0 == 3 },
            makeOperation: { run in
                IOBlockOperation<Void, Int> { _ in
                    if run == 2 { throw TestError.second }
                    return run
                }
            })
        poll.clock = clock
        recorder.observe(poll).start()
        let count = continuesAfterFailure ? 3 : 2
        for _ in 2...count { await clock.pass(.seconds(10)) }
        let runs = (1...count).flatMap { run in
            ["added to poll", "started", "running", run == 2 ? "finished: second" : "finished"].map {
                "poll, run \(run): \($0)"
            }
        }
        let end = continuesAfterFailure ? "poll: finished" : "poll: finished: second"
        #expect(await recorder.end(of: "poll") == ["poll: started", "poll: running"] + runs + [end])
    }

    // MARK: - Hedging

    /// The attempts of a hedged operation, which end when the test ends them, or as cancelled.
    private final class Attempts: Sendable {
        private let begun = Shared<[Int: ScriptedOperation]>([:])

        func make(_ number: Int) -> ScriptedOperation {
            ScriptedOperation(
                // Not held by what it holds.
                main: { [weak self] attempt in self?.begun.change { $0[number] = attempt } },
                didCancel: { $0.finish(withError: CancellationError()) })
        }

        /// Suspends until the work of both has begun, the second one after a second.
        func begin(_ clock: ManualClock) async {
            await clock.pass(.seconds(1))
            await eventually("not both attempts have begun") { begun.value.count == 2 }
        }

        func finish(_ number: Int) { begun.value[number]?.finish() }
    }

    private func hedged(_ attempts: Attempts) -> HedgedOperation<Void, Void> {
        let hedged = HedgedOperation(after: .seconds(1), name: "load") { attempts.make($0) }
        hedged.clock = clock
        return recorder.observe(hedged)
    }

    @Test("The attempt that loses is cancelled after the end of the one that wins, and both end before the operation")
    func hedging() async {
        let attempts = Attempts()
        hedged(attempts).start()
        await attempts.begin(clock)
        attempts.finish(2)
        let events = await recorder.end(of: "load")
        #expect(recorder.events(of: "load") == ["started", "running", "finished"])
        let head = ["added to load", "started", "running"]
        #expect(recorder.events(of: "load, attempt 1") == head + ["cancelled", "finished: cancelled"])
        #expect(recorder.events(of: "load, attempt 2") == head + ["finished"])
        let order = ["load, attempt 2: finished", "load, attempt 1: cancelled", "load, attempt 1: finished: cancelled"]
        #expect(Array(events.suffix(4)) == order + ["load: finished"])
        #expect(recorder.names == ["load", "load, attempt 1", "load, attempt 2"])
    }

    @Test("A hedged operation that is cancelled cancels both attempts, and ends after them") func cancelledHedging()
        async
    {
        let attempts = Attempts()
        let hedged = hedged(attempts)
        hedged.start()
        await attempts.begin(clock)
        hedged.cancel()
        await recorder.end(of: "load")
        let head = ["added to load", "started", "running"]
        for number in 1...2 {
            #expect(recorder.events(of: "load, attempt \(number)") == head + ["cancelled", "finished: cancelled"])
        }
        #expect(recorder.events(of: "load") == ["started", "running", "cancelled", "finished: cancelled"])
        recorder.expectEndsBeforeParents(["load, attempt 1": "load", "load, attempt 2": "load"])
    }
}

extension Operation {
    /// Names the operation, and returns it.
    fileprivate func named(_ name: String) -> Self {
        self.name = name
        return self
    }
}
