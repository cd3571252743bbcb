import OperationKit

/// The entries of a timeline as a forest: which are inside which, in the order in which they are drawn.
///
/// Positions are those in the list of entries. Composites may be nested to any depth, so nothing here recurses.
///
/// Complexity: creating one costs O(n log n).
struct TimelineIndex: Sendable {
    private let positions: [OperationID: Int]
    /// The position of each parent; -1 for none.
    private let parents: [Int]
    /// The children of all entries one after the other, and those without a parent at the end.
    private let childList: [Int]
    /// Where in the list the children of an entry begin. There are two more than entries.
    private let childStarts: [Int]
    /// All positions: each parent before its children, siblings in the order in which they were first noticed.
    let order: [Int]
    /// How many composites are around each entry.
    let depths: [Int]

    /// - Parameter entries: Entries as in a timeline: each parent is among them, and there are no cycles.
    init(_ entries: [OperationTimeline.Entry]) {
        let count = entries.count
        var positions: [OperationID: Int] = [:]
        positions.reserveCapacity(count)
        for (position, entry) in entries.enumerated() { positions[entry.id] = position }
        let parents = entries.map { entry in entry.parent.flatMap { positions[$0] } ?? -1 }

        var starts = [Int](repeating: 0, count: count + 2)
        for parent in parents { starts[(parent < 0 ? count : parent) + 1] += 1 }
        for index in 1..<starts.count { starts[index] += starts[index - 1] }
        var next = starts
        var list = [Int](repeating: 0, count: count)
        let times = entries.map(\.firstTime)
        let byTime = entries.indices.sorted { (times[$0], $0) < (times[$1], $1) }
        for position in byTime {
            let owner = parents[position] < 0 ? count : parents[position]
            list[next[owner]] = position
            next[owner] += 1
        }

        var order: [Int] = []
        order.reserveCapacity(count)
        var depths = [Int](repeating: 0, count: count)
        var open = Array(list[starts[count]..<starts[count + 1]].reversed())
        while let position = open.popLast() {
            order.append(position)
            if parents[position] >= 0 { depths[position] = depths[parents[position]] + 1 }
            open += list[starts[position]..<starts[position + 1]].reversed()
        }
        (self.positions, self.parents, childList, childStarts) = (positions, parents, list, starts)
        (self.order, self.depths) = (order, depths)
    }

    var count: Int { parents.count }

    /// Those without a parent, in the order in which they were first noticed.
    var roots: ArraySlice<Int> { children(of: count) }

    func position(of id: OperationID) -> Int? { positions[id] }

    func parent(of position: Int) -> Int? { parents[position] < 0 ? nil : parents[position] }

    /// The children of an entry, in the order in which they were first noticed.
    func children(of position: Int) -> ArraySlice<Int> { childList[childStarts[position]..<childStarts[position + 1]] }

    func hasChildren(_ position: Int) -> Bool { childStarts[position] < childStarts[position + 1] }

    /// An entry and all that is inside it.
    func positions(inside root: Int) -> [Int] {
        var found = [root]
        var next = 0
        while next < found.count {
            found += children(of: found[next])
            next += 1
        }
        return found
    }

    /// At most some entries to draw: outer ones rather than what is inside them, earlier ones rather than later ones.
    ///
    /// - Parameter maximum: How many entries there is room for.
    /// - Returns: The positions in the order in which they are drawn. The parent of each is among them.
    func selection(atMost maximum: Int) -> [Int] {
        guard count > maximum else { return order }
        var counts: [Int] = []
        for depth in depths {
            while counts.count <= depth { counts.append(0) }
            counts[depth] += 1
        }
        var left = max(0, maximum)
        var limits = counts.map { count in
            defer { left -= min(left, count) }
            return min(left, count)
        }
        return order.filter { position in
            guard limits[depths[position]] > 0 else { return false }
            limits[depths[position]] -= 1
            return true
        }
    }
}
