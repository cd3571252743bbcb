import OperationKitTestSupport

@testable import OperationKit

@Suite("RetryPolicy") struct RetryPolicyTests {
    private func policy(_ maximumAttempts: Int = 3, _ backoff: Backoff = .exponential(.seconds(1))) -> RetryPolicy {
        RetryPolicy(maximumAttempts: maximumAttempts, backoff: backoff, jitter: .none)
    }

    /// The delays of a policy, all of whose attempts fail.
    private func delays(_ policy: RetryPolicy, index: Int = 0) async -> [Duration] {
        var delays: [Duration] = []
        await #expect(throws: TestError.first) {
            try await policy.retrying(named: { "" }, index: index, clock: ManualClock()) { _, _, delay in
                delays.append(delay)
            } attempt: { _ -> Result<Void, any Error> in
                .failure(TestError.first)
            }
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
        #expect(RetryPolicy().problem == nil && policy(-1).problem == "its maximumAttempts is -1")
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
        #expect(policy(3, .none).problem == nil && policy(3, .exponential(.zero, factor: 1)).problem == nil)
    }
}

@Suite("RetryBudget") struct RetryBudgetTests {
    private func retries(_ count: Int, of budget: RetryBudget) -> Int {
        (0..<count).count { _ in budget.allowsRetry(begins: true) }
    }

    @Test("Retries are allowed up to the fraction of the calls, each hundredth exactly, and up to the minimum")
    func fraction() {
        for percent in 0...100 {
            for minimum in [0, 5] {
                let budget = RetryBudget(fraction: Double(percent) / 100, minimumRetries: minimum, clock: ManualClock())
                var allowed = retries(9, of: budget)
                #expect(allowed == minimum)
                let counts = (1...100).map { _ in
                    budget.callBegan()
                    allowed += retries(2, of: budget)
                    return allowed
                }
                #expect(counts == (1...100).map { max(percent * $0 / 100, minimum) })
            }
        }
    }

    @Test("Operations that share a budget use it together, by its own clock") func shared() {
        let clock = ManualClock()
        let budget = RetryBudget(fraction: 1, minimumRetries: 1, per: .seconds(1), clock: clock)
        for _ in 0..<3 { budget.callBegan() }
        #expect((0..<4).map { _ in budget.allowsRetry(begins: true) } == [true, true, true, false])
        clock.advance(by: .seconds(1))
        #expect((0..<2).map { _ in budget.allowsRetry(begins: true) } == [true, false])
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
            window.add(all: 1, marked: marked, at: .seconds(now))
            events.append((now, marked))
            events.removeAll { $0.second <= now - 10 }
            #expect(window.total.all == events.count)
            #expect(window.total.marked == events.map(\.marked).reduce(0, +))
        }
    }
}

@Suite("Backoff") struct BackoffTests {
    @Test("The delays of each backoff grow as they should, up to the maximum") func delays() {
        for (backoff, seconds) in [
            (.none, [0, 0, 0, 0, 0]), (.constant(.seconds(2)), [2, 2, 2, 2, 2]),
            (.linear(.seconds(1)), [1, 2, 3, 4, 5]), (.exponential(.seconds(1)), [1, 2, 4, 8, 16]),
            (.linear(.seconds(1), increment: .seconds(3), maximum: .seconds(8)), [1, 4, 7, 8, 8]),
            (.exponential(.seconds(1), factor: 3, maximum: .seconds(20)), [1, 3, 9, 20, 20]),
        ] as [(Backoff, [Int])] {
            #expect((1...5).map { backoff.delay(beforeRetry: $0) } == seconds.map { .seconds($0) })
        }
    }

    @Test("Jittered delays with a seed are always the same") func seeded() {
        let backoff = Backoff.exponential(.milliseconds(100), maximum: .seconds(10))
        // From an implementation in another language.
        let expected: [Jitter: [Int64]] = [
            .none: [100_000_000_000_000_000, 200_000_000_000_000_000, 400_000_000_000_000_000],
            .full: [74_156_487_877_182_336, 31_982_078_575_384_020, 111_440_452_102_055_472],
            .equal: [87_078_243_938_591_152, 115_991_039_287_692_016, 255_720_226_051_027_744],
            .decorrelated: [248_312_975_754_364_672, 203_132_437_240_260_768, 241_918_666_794_339_152],
        ]
        for jitter in Jitter.allCases {
            var delays = JitteredDelays(backoff, jitter, seed: 42)
            #expect((1...3).map { delays.next(beforeRetry: $0).components.attoseconds } == expected[jitter])
        }
    }

    /// How many of 10,000 jittered delays before the third retry are in each tenth of a range.
    private func distribution(_ jitter: Jitter, in range: ClosedRange<Duration>) -> [Int] {
        let backoff = Backoff.exponential(.seconds(1), maximum: .seconds(10))
        var tenths = [Int](repeating: 0, count: 10)
        for seed in 0..<10_000 as Range<UInt64> {
            var delays = JitteredDelays(backoff, jitter, seed: seed)
            let delay = (1...3).map { delays.next(beforeRetry: $0) }[2]
            guard range.contains(delay) else { continue }
            let place = (delay - range.lowerBound) / (range.upperBound - range.lowerBound)
            tenths[min(Int(place * 10), 9)] += 1
        }
        return tenths
    }

    @Test("Each jitter spreads delays over its own range") func distributions() {
        #expect(distribution(.none, in: .seconds(4) ... .seconds(5))[0] == 10_000)
        for (jitter, range) in [(Jitter.full, Duration.zero ... .seconds(4)), (.equal, .seconds(2) ... .seconds(4))] {
            let tenths = distribution(jitter, in: range)
            #expect(tenths.reduce(0, +) == 10_000 && tenths.allSatisfy { (850...1_150).contains($0) }, "\(tenths)")
        }
        // Longer delays are less frequent, and what would be longer than the maximum is cut to it.
        let tenths = distribution(.decorrelated, in: .seconds(1) ... .seconds(10))
        #expect(tenths.reduce(0, +) == 10_000 && (1_200...1_600).contains(tenths[0]), "\(tenths)")
        #expect(tenths[1] > tenths[4] && tenths[4] > tenths[8] && tenths[9] > tenths[8], "\(tenths)")
    }

    @Test("With whatever numbers, no delay is negative, longer than the maximum or traps", arguments: Jitter.allCases)
    func extremes(jitter: Jitter) {
        let durations: [Duration] = [
            .longest * -18, .seconds(-1), .zero, .nanoseconds(1), .seconds(1), .longest - .nanoseconds(1), .longest,
            .longest * 18,
        ]
        let factors = [-.infinity, -1e300, -1, 0, 0.5, 1, 1 + .ulpOfOne, 2, 1e18, 1e300, .infinity, .nan]
        let numbers = [Int.min, 1, 2, 64, .max]
        for initial in durations {
            for maximum in [nil, .longest * -18, .seconds(1), .longest * 18] as [Duration?] {
                let backoffs =
                    durations.map { Backoff.linear(initial, increment: $0, maximum: maximum) }
                    + factors.map { Backoff.exponential(initial, factor: $0, maximum: maximum) } + [.constant(initial)]
                for backoff in backoffs {
                    var delays = JitteredDelays(backoff, jitter, seed: 1)
                    let longest = backoff.maximum?.clamped ?? .longest
                    let all = numbers.flatMap { [backoff.delay(beforeRetry: $0), delays.next(beforeRetry: $0)] }
                    if let wrong = all.first(where: { $0 < .zero || $0 > longest }) {
                        Issue.record("\(wrong) of \(backoff)")
                    }
                }
            }
        }
    }

    @Test("An attempt whose turn comes after the cancellation gives that back") func cancelledInTurn() async throws {
        let (turn, begun) = (Shared<FinishHandle<Void>?>(nil), Shared(false))
        let operation = AsyncBlockOperation { finish in turn.value = finish }
        operation.start()
        let retries = RetryPolicy(maximumAttempts: 3)
        let task = Task {
            try await retries.perform(
                named: { "" }, clock: ContinuousClock(),
                requesting: {
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                    return turn.change { $0.take() }
                }, { begun.value = true })
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(!begun.value)
    }
}
