import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("IndexedHeap") struct IndexedHeapTests {
    @Test("Elements come in the order of their keys, equal ones in the order of their insertion") func order() {
        var heap = IndexedHeap<Int, String>()
        for (key, element) in [(2, "c"), (1, "a"), (3, "e"), (1, "b"), (2, "d")] { _ = heap.insert(element, key: key) }
        #expect(heap.first?.key == 1)
        #expect(heap.first?.element == "a")
        #expect(heap.count == 5)
        var elements = ""
        while let element = heap.popFirst() { elements += element }
        #expect(elements == "abcde")
        #expect(heap.first == nil)
    }

    @Test("An identifier does not stand for an element that was inserted later") func identifiers() {
        var heap = IndexedHeap<Int, String>()
        let old = heap.insert("old", key: 1)
        #expect(heap.remove(old) == "old")
        let new = heap.insert("new", key: 1)
        #expect(heap.remove(old) == nil)
        #expect(heap.remove(new) == "new")
    }

    @Test("Insertions and removals of n elements take at most 3 n log n comparisons") func comparisons() {
        struct Key: Comparable {
            let value: Int
            let count: Shared<Int>

            static func < (left: Key, right: Key) -> Bool {
                left.count.change { $0 += 1 }
                return left.value < right.value
            }

            static func == (left: Key, right: Key) -> Bool { left.value == right.value }
        }
        let (count, comparisons) = (TestExtent.choose(10_000, long: 100_000), Shared(0))
        var heap = IndexedHeap<Key, Int>()
        var random = SplitMix64(seed: 1)
        for number in 0..<count {
            _ = heap.insert(number, key: Key(value: Int(random.next() % 1_000), count: comparisons))
        }
        while heap.popFirst() != nil {}
        #expect(Double(comparisons.value) < 3 * Double(count) * log2(Double(count)))
    }

    @Test("Random insertions and removals agree with a sorted array", arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var heap = IndexedHeap<Int, Int>()
        var model: [(key: Int, element: Int, id: HeapElementID)] = []
        for element in 0..<2_000 {
            // Grows first, and shrinks later.
            let inserts = random.next() % 5 < (element < 1_200 ? 3 : 1)
            switch random.next() % 2 {
            case _ where inserts:
                let key = Int(random.next() % 40)
                let id = heap.insert(element, key: key)
                model.insert((key, element, id), at: model.firstIndex { $0.key > key } ?? model.endIndex)
            case 0 where !model.isEmpty:
                let removed = model.remove(at: Int(random.next() % UInt64(model.count)))
                #expect(heap.remove(removed.id) == removed.element)
            default:
                #expect(heap.popFirst() == (model.isEmpty ? nil : model.removeFirst().element))
            }
            #expect(heap.count == model.count)
            #expect(heap.first?.element == model.first?.element)
        }
        while !model.isEmpty { #expect(heap.popFirst() == model.removeFirst().element) }
        #expect(heap.isEmpty)
    }
}
