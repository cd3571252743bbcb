/// Elements in the order of their keys, those with equal keys in the order of their insertion, each of which can be removed
/// before its turn.
///
/// Complexity: insertions and removals cost O(log n). The memory of many elements is given back when the last of them goes.
package struct IndexedHeap<Key: Comparable & Sendable, Element: Sendable> {
    /// Where an element stays while its place in the heap changes.
    private struct Slot {
        var element: Element?
        var place: Int
    }

    private struct Node {
        let key: Key
        let insertion: UInt64
        let slot: Int

        func precedes(_ other: Node) -> Bool {
            (key, insertion) < (other.key, other.insertion)
        }
    }

    /// For how many elements an empty heap keeps its memory.
    private static var keptCount: Int { 64 }

    private var nodes: [Node] = []
    private var slots: [Slot] = []
    private var freeSlots: [Int] = []
    private var lastInsertion: UInt64 = 0

    package init() {}

    package var count: Int { nodes.count }

    /// The first element in the order, with its key.
    package var first: (key: Key, element: Element)? {
        guard let node = nodes.first, let element = slots[node.slot].element else { return nil }
        return (node.key, element)
    }

    /// - Returns: The identifier under which the element can be removed.
    package mutating func insert(_ element: Element, key: Key) -> HeapElementID {
        lastInsertion += 1
        let entry = Slot(element: element, place: nodes.count)
        let slot = freeSlots.popLast() ?? slots.count
        if slot < slots.count { slots[slot] = entry } else { slots.append(entry) }
        nodes.append(Node(key: key, insertion: lastInsertion, slot: slot))
        moveUp(from: nodes.count - 1)
        return HeapElementID(slot: slot, insertion: lastInsertion)
    }

    package mutating func popFirst() -> Element? {
        nodes.isEmpty ? nil : remove(at: 0)
    }

    /// - Returns: The element, or `nil` if it is not there any more.
    package mutating func remove(_ id: HeapElementID) -> Element? {
        guard id.slot < slots.count, slots[id.slot].element != nil else { return nil }
        let place = slots[id.slot].place
        return nodes[place].insertion == id.insertion ? remove(at: place) : nil
    }

    // MARK: - Moving

    private mutating func remove(at place: Int) -> Element? {
        let slot = nodes[place].slot
        let last = nodes.removeLast()
        if place < nodes.count {
            put(last, at: place)
            moveUp(from: place)
            moveDown(from: slots[last.slot].place)
        }
        defer {
            freeSlots.append(slot)
            if nodes.isEmpty, slots.count > IndexedHeap.keptCount { (nodes, slots, freeSlots) = ([], [], []) }
        }
        return slots[slot].element.take()
    }

    private mutating func put(_ node: Node, at place: Int) {
        nodes[place] = node
        slots[node.slot].place = place
    }

    private mutating func moveUp(from start: Int) {
        let node = nodes[start]
        var place = start
        while place > 0, case let parent = (place - 1) / 2, node.precedes(nodes[parent]) {
            put(nodes[parent], at: place)
            place = parent
        }
        put(node, at: place)
    }

    private mutating func moveDown(from start: Int) {
        let node = nodes[start]
        var place = start
        while true {
            var child = 2 * place + 1
            if child + 1 < nodes.count, nodes[child + 1].precedes(nodes[child]) { child += 1 }
            guard child < nodes.count, nodes[child].precedes(node) else { break }
            put(nodes[child], at: place)
            place = child
        }
        put(node, at: place)
    }
}

/// Identifies an element of an ``IndexedHeap``. An identifier is not used again.
package struct HeapElementID {
    fileprivate let slot: Int
    fileprivate let insertion: UInt64
}
