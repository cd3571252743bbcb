import Foundation

/// The children that can start, in the order in which they should: by priority, then by the order of their addition.
///
/// Complexity: additions in increasing order, the common case, and their removals cost O(1); others cost O(log n).
struct ReadyQueue {
    typealias Entry = (ordinal: Int, slot: Int)

    /// For each priority, most urgent first.
    private var levels = [Level](repeating: Level(), count: level(of: .veryLow) + 1)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func insert(_ entry: Entry, priority: Operation.QueuePriority) {
        levels[ReadyQueue.level(of: priority)].insert(entry)
        count += 1
    }

    /// The slot of the first child.
    var first: Int? { levels.first { !$0.isEmpty }?.first }

    /// - Returns: The slot of the first child.
    mutating func popFirst() -> Int? {
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
        private var late = IndexedHeap<Int, Int>()

        var isEmpty: Bool { head == run.count && late.isEmpty }

        /// Valid only if the level is not empty.
        var first: Int { lateFirst ?? run[head].slot }

        /// The first of the heap, if it comes before the run.
        private var lateFirst: Int? {
            // Those in the heap come before the last of the run, so the run is not empty before the heap is.
            late.first.flatMap { $0.key < run[head].ordinal ? $0.element : nil }
        }

        mutating func insert(_ entry: Entry) {
            if let last = run.last, head < run.count, entry.ordinal < last.ordinal {
                _ = late.insert(entry.slot, key: entry.ordinal)
            } else {
                run.append(entry)
            }
        }

        /// Valid only if the level is not empty.
        mutating func popFirst() -> Int {
            if lateFirst != nil, let slot = late.popFirst() { return slot }
            defer {
                head += 1
                // Forget what was taken once it is the larger half, so that a queue that is fed forever stays small.
                if head * 2 > run.count {
                    run.removeFirst(head)
                    head = 0
                }
            }
            return run[head].slot
        }
    }
}
