import OperationKitTestSupport

@testable import OperationKit

@Suite("TimerStateMachine") struct TimerStateMachineTests {
    private typealias Machine = TimerStateMachine<String>

    @Test("The first deadline begins a sleep, an earlier one a shorter sleep, and a later one none") func arming() {
        var machine = Machine(lingers: false)
        let first = machine.armed("a", at: .seconds(5)).sleep
        #expect(first?.deadline == .seconds(5))
        #expect(machine.armed("b", at: .seconds(5)).sleep == nil)
        #expect(machine.armed("c", at: .seconds(9)).sleep == nil)
        let shorter = machine.armed("d", at: .seconds(2)).sleep
        #expect(shorter?.deadline == .seconds(2))
        #expect(shorter?.task != first?.task)
        #expect(machine.sleep?.task == shorter?.task)
        #expect(machine.armedCount == 4)
    }

    @Test("After a sleep, all that is due comes in order, and the task sleeps until the next deadline") func waking() {
        var machine = Machine(lingers: false)
        _ = machine.armed("late", at: .seconds(9))
        _ = machine.armed("second", at: .seconds(3))
        _ = machine.armed("third", at: .seconds(3))
        let task = machine.armed("first", at: .seconds(2)).sleep?.task ?? 0
        let (due, next) = machine.woke(task, at: .seconds(4))
        #expect(due == ["first", "second", "third"])
        #expect(next?.deadline == .seconds(9))
        #expect(next?.task == task)
        let (last, end) = machine.woke(task, at: .seconds(9))
        #expect(last == ["late"])
        #expect(end == nil)
        #expect(machine.sleep?.task == nil)
    }

    @Test(
        "In every history each deadline comes once, at its time, unless it is disarmed before",
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
                let (id, sleep) = machine.armed(element, at: deadline)
                armed[element] = (deadline, id)
                if let sleep { sleeping[sleep.task] = sleep.deadline }
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
                    for element in due { #expect((armed.removeValue(forKey: element)?.deadline ?? .century) <= now) }
                    if let next { #expect(next.deadline > now && wake <= now) }
                }
                #expect(armed.values.allSatisfy { $0.deadline > now })
            }
            #expect(machine.armedCount == armed.count)
        }
    }
}

@Suite("IndexedHeap") struct IndexedHeapTests {
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
        let (count, comparisons) = (TestExtent.choose(4_000, long: 100_000), Shared(0))
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
        #expect(heap.count == 0)
    }
}
