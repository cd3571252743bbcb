import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("RetryPolicy") struct RetryPolicyTests {
    private func policy(_ maximumAttempts: Int = 3, _ backoff: Backoff = .exponential(.seconds(1))) -> RetryPolicy {
        RetryPolicy(maximumAttempts: maximumAttempts, backoff: backoff, jitter: .none)
    }

    /// The delays of a policy, all of whose attempts fail; each attempt and each delay takes the time that it is said to.
    private func delays(
        _ policy: RetryPolicy, index: Int = 0, attemptTime: Duration = .zero, error: any Error = TestError.first
    ) async -> [Duration] {
        var delays: [Duration] = []
        let clock = ManualClock()
        do {
            try await policy.retrying(named: { "" }, index: index, clock: clock) { number, _, delay in
                #expect(number == delays.count + 1)
                delays.append(delay)
                clock.advance(by: delay)
            } attempt: { _ -> Result<Void, any Error> in
                clock.advance(by: attemptTime)
                return .failure(error)
            }
        } catch let thrown {
            #expect("\(thrown)" == "\(error)")
        }
        return delays
    }

    @Test("Those that share a policy with a seed have delays of their own, the same in each run") func seeds() async {
        var policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(100)), jitter: .full)
        #expect(await delays(policy) != delays(policy))
        policy.seed = 42
        #expect(await delays(policy, index: 1) == delays(policy, index: 1))
        #expect(await delays(policy, index: 1) != delays(policy, index: 2))
    }

    @Test("What is wrong with a policy is said") func problems() {
        #expect(RetryPolicy().problem == nil)
        #expect(policy(0).problem == "its maximumAttempts is 0")
        #expect(policy(-1).problem == "its maximumAttempts is -1")
        let backoffs: [(Backoff, String)] = [
            (.constant(.seconds(-1)), "begins with a delay of"),
            (.linear(.seconds(1), increment: .seconds(-1)), "grows by"),
            (.linear(.seconds(2), maximum: .seconds(1)), "its maximum is"),
            (.exponential(.seconds(1), factor: 0.5), "a factor of 0.5"),
            (.exponential(.seconds(1), factor: -2), "a factor of -2"),
            (.exponential(.seconds(1), factor: .infinity), "a factor of inf"),
            (.exponential(.seconds(1), factor: .nan), "a factor of nan"),
        ]
        for (backoff, phrase) in backoffs { #expect(policy(3, backoff).problem?.contains(phrase) == true) }
        for duration in [Duration.zero, .seconds(-1)] {
            var (attempt, total) = (policy(), policy())
            attempt.attemptTimeout = duration
            total.maximumTotalTime = duration
            #expect(attempt.problem == "its attemptTimeout is \(duration)")
            #expect(total.problem == "its maximumTotalTime is \(duration)")
        }
        #expect(policy(3, .none).problem == nil)
    }
}

@Suite("RetryBudget") struct RetryBudgetTests {
    /// How many of so many retries are allowed.
    private func retries(_ count: Int, of machine: inout RetryBudgetStateMachine, at now: Duration = .zero) -> Int {
        (0..<count).count { _ in machine.takeRetry(at: now) }
    }

    @Test("Retries are allowed up to the fraction of the calls, and up to the minimum") func fraction() {
        for (minimum, expected) in [(0, 2), (5, 5)] {
            var machine = RetryBudgetStateMachine(fraction: 0.2, minimumRetries: minimum, window: .seconds(10))
            #expect(retries(1, of: &machine) == min(minimum, 1))
            for _ in 0..<14 { machine.callBegan(at: .zero) }
            #expect(retries(9, of: &machine) == expected - min(minimum, 1))
        }
    }

    @Test("Every hundredth is exact: of 100 calls, a fraction of 0.29 allows 29 retries") func exactFraction() {
        for percent in 0...100 {
            var machine = RetryBudgetStateMachine(
                fraction: Double(percent) / 100, minimumRetries: 0, window: .seconds(10))
            for _ in 0..<100 { machine.callBegan(at: .zero) }
            #expect(retries(200, of: &machine) == percent)
        }
    }

    @Test("Calls and retries count as long as they are in the window") func window() {
        var machine = RetryBudgetStateMachine(fraction: 0, minimumRetries: 1, window: .seconds(10))
        #expect(retries(9, of: &machine, at: .seconds(3)) == 1)
        #expect(retries(9, of: &machine, at: .seconds(12.9)) == 0)
        #expect(retries(9, of: &machine, at: .seconds(13)) == 1)
    }

    @Test("Operations that share a budget use it together, by its own clock") func shared() {
        let clock = ManualClock()
        let budget = RetryBudget(fraction: 1, minimumRetries: 1, per: .seconds(1), clock: clock)
        for _ in 0..<3 { budget.callBegan() }
        #expect((0..<4).map { _ in budget.takeRetry() } == [true, true, true, false])
        clock.advance(by: .seconds(1))
        #expect((0..<2).map { _ in budget.takeRetry() } == [true, false])
    }

    @Test("A window counts the last nine to ten tenths of its duration", arguments: 1...10 as ClosedRange<UInt64>)
    func windowModel(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var window = SlidingWindow(.seconds(10))
        var events: [(second: Int64, marked: Int)] = []
        var now = Int64(0)
        for _ in 0..<500 {
            now += Int64(random.next() % 4)
            let marked = Int(random.next() % 2)
            window.add(.init(all: 1, marked: marked), at: .seconds(now))
            events.append((now, marked))
            events.removeAll { $0.second <= now - 10 }
            #expect(window.total == .init(all: events.count, marked: events.map(\.marked).reduce(0, +)))
        }
        window.removeAll()
        #expect(window.total == .init())
    }
}
