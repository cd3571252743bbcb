import OperationKitTestSupport
import OperationKitTimelines

/// Random operations inside each other that depend on each other, and the timeline of a run of them, in milliseconds.
struct TimelineSimulation: Sendable {
    struct Node: Sendable {
        var parent: Int?
        var dependencies: [Int] = []
        /// How long a leaf works. A composite has children.
        var work: Int
        var children: [Int] = []
        var limit: Int?
        /// How long after it could start it does.
        var lag: Int
    }

    var nodes: [Node]

    /// - Parameters:
    ///   - seed: The same operations for the same seed.
    ///   - isExact: Whether there are no limits and no time passes between a cause and its effect, so that a run with
    ///     other durations has the same causes.
    init(seed: UInt64, isExact: Bool) {
        var random = SplitMix64(seed: seed)
        let shortest = isExact ? 1 : 0
        nodes = [Node(parent: nil, work: 0, lag: 0)]
        for number in 1...Int.random(in: 1...14, using: &random) {
            let parent = Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 0..<number, using: &random) : 0
            var node = Node(
                parent: parent, work: Int.random(in: shortest...9, using: &random),
                lag: isExact ? 0 : max(0, Int.random(in: -4...3, using: &random)))
            // Only on siblings that were there before: so there are no cycles.
            node.dependencies = nodes[parent].children.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
            nodes[parent].children.append(number)
            nodes.append(node)
        }
        if !isExact {
            for number in nodes.indices where Bool.random(using: &random) {
                nodes[number].limit = Int.random(in: 1...3, using: &random)
            }
        }
    }

    /// Runs the operations: whatever is ready starts, oldest first, as long as its composite has room.
    func timeline() -> OperationTimeline {
        var chosen = [Int?](repeating: nil, count: nodes.count)
        var starts = [Int?](repeating: nil, count: nodes.count)
        var ends = [Int?](repeating: nil, count: nodes.count)
        chosen[0] = 0
        starts[0] = 0
        var time = 0
        while ends[0] == nil {
            var hasChanged = true
            while hasChanged {
                hasChanged = false
                for number in nodes.indices {
                    let node = nodes[number]
                    if chosen[number] == nil, let parent = node.parent, let start = starts[parent], start <= time,
                        node.dependencies.allSatisfy({ ends[$0] != nil }),
                        nodes[parent].children.count(where: { chosen[$0] != nil && ends[$0] == nil })
                            < nodes[parent].limit ?? .max
                    {
                        chosen[number] = time
                        starts[number] = time + node.lag
                        hasChanged = true
                    }
                    guard let start = starts[number], start <= time, ends[number] == nil else { continue }
                    let isOver =
                        node.children.isEmpty ? start + node.work <= time : node.children.allSatisfy { ends[$0] != nil }
                    if isOver {
                        ends[number] = time
                        hasChanged = true
                    }
                }
            }
            time += 1
        }
        return OperationTimeline(
            entries: nodes.indices.map { number in
                let start: Duration? = starts[number].map { .milliseconds($0) }
                let end: Duration? = ends[number].map { .milliseconds($0) }
                return OperationTimeline.Entry(
                    id: OperationID(UInt64(number)), name: "\(number)",
                    parent: nodes[number].parent.map { OperationID(UInt64($0)) }, started: start, running: start,
                    finished: end, outcome: .success,
                    dependencies: nodes[number].dependencies.map { OperationID(UInt64($0)) },
                    isComposite: !nodes[number].children.isEmpty, limit: nodes[number].limit)
            })
    }

    /// The same operations, where those inside one of them, and itself, take no time.
    func without(_ removed: Int) -> TimelineSimulation {
        var result = self
        var open = [removed]
        while let number = open.popLast() {
            result.nodes[number].work = 0
            open += nodes[number].children
        }
        return result
    }
}
