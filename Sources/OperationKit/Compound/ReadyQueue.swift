import Foundation

/// Children that may begin, in the order in which they should: by priority, then by the order of their addition.
///
/// Complexity: additions in increasing order, the common case, and their removals cost O(1); others cost O(log n).
struct ReadyQueue {
    struct Entry: Comparable {
        let ordinal: Int
        let slot: Int

        static func < (left: Entry, right: Entry) -> Bool { left.ordinal < right.ordinal }
    }

    /// Foundation's five priorities, most urgent first.
    private static let priorities: [Operation.QueuePriority] = [.veryHigh, .high, .normal, .low, .veryLow]

    private var levels = [Level](repeating: Level(), count: priorities.count)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func insert(_ entry: Entry, priority: Operation.QueuePriority) {
        // There are no other priorities.
        levels[ReadyQueue.priorities.firstIndex(of: priority) ?? 2].insert(entry)
        count += 1
    }

    mutating func popFirst() -> Entry? {
        guard let level = levels.firstIndex(where: { !$0.isEmpty }) else { return nil }
        count -= 1
        return levels[level].popFirst()
    }

    /// One priority: a run that arrived in order, and a heap of those that came late.
    private struct Level {
        private var run: [Entry] = []
        private var head = 0
        private var heap: [Entry] = []

        var isEmpty: Bool { head == run.count && heap.isEmpty }

        mutating func insert(_ entry: Entry) {
            if let last = run.last, head < run.count, entry < last {
                push(entry)
            } else {
                run.append(entry)
            }
        }

        mutating func popFirst() -> Entry? {
            // Those in the heap come before the last of the run, so the run is not empty before the heap is.
            guard head < run.count else { return popHeap() }
            if let first = heap.first, first < run[head] { return popHeap() }
            defer {
                head += 1
                // Forget what was taken once it is the larger half, so that a queue that is fed for ever stays small.
                if head * 2 > run.count {
                    run.removeFirst(head)
                    head = 0
                }
            }
            return run[head]
        }

        private mutating func push(_ entry: Entry) {
            heap.append(entry)
            var child = heap.count - 1
            while child > 0, heap[child] < heap[(child - 1) / 2] {
                heap.swapAt(child, (child - 1) / 2)
                child = (child - 1) / 2
            }
        }

        private mutating func popHeap() -> Entry? {
            // Whoever calls this has seen that it is not empty.
            guard let first = heap.first, let last = heap.popLast() else { return nil }
            if heap.isEmpty { return first }
            heap[0] = last
            var parent = 0
            while true {
                let left = parent * 2 + 1
                guard left < heap.count else { return first }
                let smaller = left + 1 < heap.count && heap[left + 1] < heap[left] ? left + 1 : left
                guard heap[smaller] < heap[parent] else { return first }
                heap.swapAt(smaller, parent)
                parent = smaller
            }
        }
    }
}
