import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("ReadyQueue") struct ReadyQueueTests {
    private func order(of queue: inout ReadyQueue) -> [Int] {
        var ordinals: [Int] = []
        while let entry = queue.popFirst() { ordinals.append(entry.ordinal) }
        return ordinals
    }

    @Test("Children that become ready late are in their place") func late() {
        var queue = ReadyQueue()
        for ordinal in [5, 9, 3, 1, 4, 2, 0, 8, 7, 6] {
            queue.insert(.init(ordinal: ordinal, slot: 0), priority: .normal)
        }
        #expect(queue.count == 10)
        #expect(order(of: &queue) == Array(0..<10))
        #expect(queue.isEmpty)
    }

    @Test("Children that are late come in their order after others were taken") func lateAfterOthers() {
        var queue = ReadyQueue()
        for ordinal in [1, 7, 3] { queue.insert(.init(ordinal: ordinal, slot: 0), priority: .low) }
        #expect(queue.popFirst()?.ordinal == 1)
        queue.insert(.init(ordinal: 2, slot: 0), priority: .low)
        queue.insert(.init(ordinal: 8, slot: 0), priority: .veryHigh)
        #expect(order(of: &queue) == [8, 2, 3, 7])
    }

    @Test("Every order of arrival comes out sorted") func everyOrder() {
        var random = SplitMix64(seed: 7)
        for count in 1...40 {
            var queue = ReadyQueue()
            for ordinal in (0..<count).shuffled(using: &random) {
                queue.insert(.init(ordinal: ordinal, slot: ordinal), priority: .normal)
            }
            #expect(order(of: &queue) == Array(0..<count))
        }
    }
}
