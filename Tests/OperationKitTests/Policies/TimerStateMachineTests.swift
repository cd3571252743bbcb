import OperationKitTestSupport

@testable import OperationKit

@Suite("TimerStateMachine") struct TimerStateMachineTests {
    @Test(
        "In every history each deadline comes once, at its time, in order, unless it is disarmed before",
        arguments: [false, true], 1...UInt64(TestExtent.choose(10, long: 30)))
    func histories(lingers: Bool, seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var machine = TimerStateMachine<Int>(lingers: lingers)
        var armed: [Int: (deadline: Duration, id: HeapElementID)] = [:]
        // When the tasks that sleep wake, replaced ones too.
        var sleeping: [Int: Duration] = [:]
        var now = Duration.zero
        for element in 0..<1_500 {
            switch random.next() % 4 {
            case 0, 1:
                let deadline = now + .seconds(random.next() % 20)
                let first = machine.sleep?.deadline
                let (id, sleep) = machine.armed(element, at: deadline)
                armed[element] = (deadline, id)
                // A later deadline begins no sleep, and an earlier one a shorter sleep of another task.
                #expect(sleep?.deadline == (first.map { deadline < $0 } ?? true ? deadline : nil))
                if let sleep { #expect(sleeping.updateValue(sleep.deadline, forKey: sleep.task) == nil) }
            case 2:
                guard let (key, entry) = armed.min(by: { $0.key < $1.key }) else { continue }
                let (removed, endsSleep, sleep) = machine.disarmed(entry.id)
                #expect(removed == key)
                armed[key] = nil
                #expect(lingers || machine.sleep?.deadline == armed.values.map(\.deadline).min())
                #expect(endsSleep == (!lingers && armed.values.allSatisfy { $0.deadline > entry.deadline }))
                if endsSleep { sleeping = sleep.map { [$0.task: $0.deadline] } ?? [:] }
            default:
                now += .seconds(random.next() % 3)
                while let (task, wake) = sleeping.filter({ $0.value <= now }).min(by: { $0.value < $1.value }) {
                    let (due, next) = machine.woke(task, at: now)
                    sleeping[task] = next?.deadline
                    let deadlines = due.map { armed.removeValue(forKey: $0)?.deadline ?? .century }
                    #expect(deadlines.allSatisfy { $0 <= now })
                    // Equal deadlines come in the order in which they were armed.
                    let order = zip(deadlines, due).map { (seconds: $0.components.seconds, element: $1) }
                    #expect(zip(order, order.dropFirst()).allSatisfy { $0 < $1 })
                    if let next { #expect(next.deadline > now && wake <= now) }
                }
                #expect(armed.values.allSatisfy { $0.deadline > now })
            }
            #expect(machine.deadlines.count == armed.count)
        }
    }
}

@Suite("IndexedHeap") struct IndexedHeapTests {
    @Test("Insertions and removals of n elements take at most 3 n log n comparisons") func comparisons() {
        struct Key: Comparable {
            static let comparisons = Shared(0)
            let value: UInt64

            static func < (left: Key, right: Key) -> Bool {
                _ = comparisons.increment()
                return left.value < right.value
            }
        }
        let count = TestExtent.choose(4_000, long: 100_000)
        var heap = IndexedHeap<Key, Int>()
        var random = SplitMix64(seed: 1)
        for number in 0..<count { _ = heap.insert(number, key: Key(value: random.next() % 1_000)) }
        while heap.popFirst() != nil {}
        #expect(Double(Key.comparisons.value) < 3 * Double(count) * log2(Double(count)))
    }

    @Test("Random insertions and removals agree with a sorted array", arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var heap = IndexedHeap<Int, Int>()
        var model: [(key: Int, element: Int, id: HeapElementID)] = []
        var removed: HeapElementID?
        for element in 0..<2_000 {
            let inserts = random.next() % 5 < (element < 1_200 ? 3 : 1)
            switch random.next() % 2 {
            case _ where inserts:
                let key = Int(random.next() % 40)
                let id = heap.insert(element, key: key)
                model.insert((key, element, id), at: model.firstIndex { $0.key > key } ?? model.endIndex)
            case 0 where !model.isEmpty:
                let (_, element, id) = model.remove(at: Int(random.next() % UInt64(model.count)))
                #expect(heap.remove(id) == element)
                removed = id
            default:
                #expect(heap.popFirst() == (model.isEmpty ? nil : model.removeFirst().element))
            }
            // It does not stand for what has come into its place.
            if let removed { #expect(heap.remove(removed) == nil) }
            #expect(heap.count == model.count)
            #expect(heap.first?.element == model.first?.element)
        }
        while !model.isEmpty { #expect(heap.popFirst() == model.removeFirst().element) }
        #expect(heap.count == 0)
    }
}
