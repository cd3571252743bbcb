import OperationKit

/// The entries of a timeline as a forest: which are inside which, in the order in which they are drawn.
///
/// Positions are those in the list of entries. Composites may be nested to any depth, so nothing here recurses.
///
/// Complexity: creating one costs O(n log n).
struct TimelineIndex: Sendable {
    let entries: [OperationTimeline.Entry]
    let positions: [OperationID: Int]
    let parents: [Int?]
    /// The children of each entry, and at the end the entries without a parent, in the order in which they were first noticed.
    let children: [[Int]]
    /// All positions: each parent before its children, siblings in the order in which they were first noticed.
    let order: [Int]
    /// How many composites are around each entry.
    let depths: [Int]

    /// - Parameter entries: Entries as in a timeline: each parent is among them, and there are no cycles.
    init(_ entries: [OperationTimeline.Entry]) {
        self.entries = entries
        (positions, parents) = entries.positionsAndParents
        let times = entries.map(\.firstTime)
        var children = [[Int]](repeating: [], count: entries.count + 1)
        for position in entries.indices.sorted(by: { (times[$0], $0) < (times[$1], $1) }) {
            children[parents[position] ?? entries.count].append(position)
        }
        var order: [Int] = []
        var depths = [Int](repeating: 0, count: entries.count)
        var open = Array(children[entries.count].reversed())
        while let position = open.popLast() {
            order.append(position)
            if let parent = parents[position] { depths[position] = depths[parent] + 1 }
            open += children[position].reversed()
        }
        (self.children, self.order, self.depths) = (children, order, depths)
    }

    /// Those without a parent, in the order in which they were first noticed.
    var roots: [Int] { children[parents.count] }

    /// The name of an operation, or else its identifier.
    func name(of id: OperationID) -> String { positions[id].map { entries[$0].name } ?? "\(id)" }

    /// An entry and all that is inside it.
    func positions(inside root: Int) -> ArraySlice<Int> {
        let fromRoot = order.drop { $0 != root }
        return fromRoot.prefix(1) + fromRoot.dropFirst().prefix { depths[$0] > depths[root] }
    }

    /// At most some entries to draw: outer ones rather than what is inside them, earlier ones rather than later ones.
    ///
    /// - Parameter maximum: How many entries there is room for. Below 1 it counts as 1.
    /// - Returns: The positions in the order in which they are drawn. The parent of each is among them.
    func selection(atMost maximum: Int) -> [Int] {
        var room = depths.reduce(into: [Int](repeating: 0, count: (depths.max() ?? 0) + 1)) { $0[$1] += 1 }
        var left = max(1, maximum)
        for depth in room.indices {
            room[depth] = min(left, room[depth])
            left -= room[depth]
        }
        return order.filter { position in
            room[depths[position]] -= 1
            return room[depths[position]] >= 0
        }
    }
}

extension [OperationTimeline.Entry] {
    /// The position of each entry, and that of its parent, if it has one that is there.
    ///
    /// Each identifier is there once.
    var positionsAndParents: (positions: [OperationID: Int], parents: [Int?]) {
        let positions = Dictionary(uniqueKeysWithValues: zip(lazy.map(\.id), indices))
        return (positions, map { $0.parent.flatMap { positions[$0] } })
    }

    /// The positions of the entries that refer to a parent that is not there, or that close a cycle of parents.
    var positionsWithoutParent: [Int] {
        let parents = positionsAndParents.parents
        // Which walk to the outermost parent has come to an entry: the one that began there.
        var walks = [Int?](repeating: nil, count: count)
        return indices.compactMap { start in
            var position = start
            while walks[position] == nil, self[position].parent != nil {
                walks[position] = start
                guard let parent = parents[position], walks[parent] != start else { return position }
                position = parent
            }
            return nil
        }
    }
}
