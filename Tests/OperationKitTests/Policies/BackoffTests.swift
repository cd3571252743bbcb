import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Backoff") struct BackoffTests {
    private func delays(_ backoff: Backoff, _ count: Int = 5) -> [Duration] {
        (1...count).map { backoff.delay(beforeRetry: $0) }
    }

    @Test("The delays of each backoff grow as they should, up to the maximum") func delays() {
        #expect(delays(.none) == Array(repeating: .zero, count: 5))
        #expect(delays(.constant(.seconds(2))) == Array(repeating: .seconds(2), count: 5))
        #expect(delays(.linear(.milliseconds(100))) == [100, 200, 300, 400, 500].map { .milliseconds($0) })
        #expect(
            delays(.linear(.seconds(1), increment: .seconds(3), maximum: .seconds(8)))
                == [1, 4, 7, 8, 8].map { .seconds($0) })
        #expect(delays(.exponential(.milliseconds(100))) == [100, 200, 400, 800, 1_600].map { .milliseconds($0) })
        #expect(
            delays(.exponential(.seconds(1), factor: 3, maximum: .seconds(20)))
                == [1, 3, 9, 20, 20].map { .seconds($0) })
    }

    @Test("Jittered delays with a seed are always the same") func seeded() {
        let backoff = Backoff.exponential(.milliseconds(100), maximum: .seconds(10))
        // From an implementation in another language.
        let expected: [Jitter: [Int64]] = [
            .none: [
                100_000_000_000_000_000, 200_000_000_000_000_000, 400_000_000_000_000_000, 800_000_000_000_000_000,
            ],
            .full: [74_156_487_877_182_336, 31_982_078_575_384_020, 111_440_452_102_055_472, 275_352_573_218_910_016],
            .equal: [
                87_078_243_938_591_152, 115_991_039_287_692_016, 255_720_226_051_027_744, 537_676_286_609_455_040,
            ],
            .decorrelated: [
                248_312_975_754_364_672, 203_132_437_240_260_768, 241_918_666_794_339_152, 315_379_406_140_796_384,
            ],
        ]
        for jitter in Jitter.allCases {
            var delays = JitteredDelays(backoff, jitter, seed: 42)
            let all = (1...4).map { delays.next(beforeRetry: $0).components.attoseconds }
            #expect(all == expected[jitter])
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

    @Test("Each jitter spreads delays over its own range")
    func distributions() {
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
}
