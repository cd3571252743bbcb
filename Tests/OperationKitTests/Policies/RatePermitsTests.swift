import OperationKitTestSupport

@testable import OperationKit

@Suite("RatePermits") struct RatePermitsTests {
    @Test("A permit can be used again when the duration has passed since its use") func returns() {
        var permits = RatePermits(per: .seconds(10))
        #expect(permits.used(at: .seconds(1)) == .seconds(11))
        #expect(permits.used(at: .seconds(4)) == nil)
        #expect(permits.used(at: .seconds(4)) == nil)
        #expect(permits.used(at: .seconds(12)) == nil)
        #expect(permits.returned(at: .seconds(11)) == (1, .seconds(14)))
        #expect(permits.returned(at: .seconds(13)) == (0, .seconds(14)))
        #expect(permits.returned(at: .seconds(14)) == (2, .seconds(22)))
        #expect(permits.returned(at: .seconds(22)) == (1, nil))
        #expect(permits.used(at: .seconds(30)) == .seconds(40))
    }

    @Test("A use that is reported late counts as the last one") func late() {
        var permits = RatePermits(per: .seconds(10))
        #expect(permits.used(at: .seconds(5)) == .seconds(15))
        #expect(permits.used(at: .seconds(3)) == nil)
        #expect(permits.returned(at: .seconds(15)) == (2, nil))
    }

    @Test("A return is reported once more if the use came after its deadline had been armed") func armedBefore() {
        var permits = RatePermits(per: .seconds(10))
        #expect(permits.willBeUsed(at: .seconds(1)) == .seconds(11))
        #expect(permits.willBeUsed(at: .seconds(2)) == nil)
        #expect(permits.used(at: .seconds(3)) == nil)
        #expect(permits.returned(at: .seconds(11)) == (0, .seconds(13)))
        #expect(permits.returned(at: .seconds(13)) == (1, nil))
        #expect(permits.willBeUsed(at: .seconds(20)) == .seconds(30))
        #expect(permits.returned(at: .seconds(30)) == (0, nil))
        #expect(permits.used(at: .seconds(31)) == .seconds(41))
    }

    @Test("In no time of that length there are more uses than permits", arguments: 1...10 as ClosedRange<UInt64>)
    func everyWindow(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var permits = RatePermits(per: .seconds(10))
        var free = 3
        var wake: Duration?
        var uses: [Duration] = []
        for second in 0..<500 as Range<Int64> {
            let now = Duration.seconds(second)
            if let due = wake, due <= now {
                let (count, next) = permits.returned(at: now)
                free += count
                wake = next
            }
            for _ in 0..<random.next() % 3 where free > 0 {
                free -= 1
                uses.append(now)
                if let due = permits.used(at: now) { wake = due }
            }
            #expect(uses.count { $0 > now - .seconds(10) } == 3 - free)
        }
        #expect(uses.count > 100)
    }
}
