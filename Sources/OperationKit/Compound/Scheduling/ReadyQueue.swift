import Foundation

/// The children that can start, in the order in which they should: by priority, then by the order of their addition.
///
/// Complexity: additions in increasing order, the common case, and their removals cost O(1); others cost O(log n).
struct ReadyQueue {
    struct Entry: Comparable {
        let ordinal: Int
        let slot: Int

        static func < (left: Entry, right: Entry) -> Bool { left.ordinal < right.ordinal }
    }

    /// For each priority, most urgent first.
    private var levels = [Level](repeating: Level(), count: level(of: .veryLow) + 1)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func insert(_ entry: Entry, priority: Operation.QueuePriority) {
        levels[ReadyQueue.level(of: priority)].insert(entry)
        count += 1
    }

    mutating func popFirst() -> Entry? {
        guard let level = levels.firstIndex(where: { !$0.isEmpty }) else { return nil }
        count -= 1
        return levels[level].popFirst()
    }

    /// The values of Foundation's five priorities are 8, 4, 0, -4 and -8. An override may return another value.
    private static func level(of priority: Operation.QueuePriority) -> Int {
        (8 - min(max(priority.rawValue, -8), 8)) / 4
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

        /// Valid only if the level is not empty.
        mutating func popFirst() -> Entry {
            // Those in the heap come before the last of the run, so the run is not empty before the heap is.
            if let first = heap.first, first < run[head] { return popHeap() }
            defer {
                head += 1
                // Forget what was taken once it is the larger half, so that a queue that is fed forever stays small.
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

        private mutating func popHeap() -> Entry {
            heap.swapAt(0, heap.count - 1)
            let first = heap.removeLast()
            var parent = 0
            var left = 1
            while left < heap.count {
                let smaller = left + 1 < heap.count && heap[left + 1] < heap[left] ? left + 1 : left
                guard heap[smaller] < heap[parent] else { break }
                heap.swapAt(smaller, parent)
                parent = smaller
                left = parent * 2 + 1
            }
            return first
        }
    }
}
