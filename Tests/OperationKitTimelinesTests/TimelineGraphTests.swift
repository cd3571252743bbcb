import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Timelines of random graphs", .hangGuard, .takesTurns) struct TimelineGraphTests {
    /// Tries random operations, without limits and delays (exact), with them, or some of each.
    private func tryAll(
        isExact: Bool?, _ body: @escaping @Sendable (TimelineSimulation, OperationTimeline, _ seed: UInt64) -> Void
    ) async {
        let first = SplitMix64.freshSeed()
        // The long extent takes minutes, in which tasks of other tests need their threads.
        await onThread {
            for seed in first..<first + UInt64(TestExtent.choose(20, long: 20_000)) {
                let simulation = TimelineSimulation(seed: seed, isExact: isExact ?? seed.isMultiple(of: 2))
                body(simulation, simulation.timeline(), seed)
            }
        }
    }

    @Test(
        "No run without the work of the operation is shorter than the bound; without limits and delays, it is as long",
        arguments: [true, false])
    func bounds(isExact: Bool) async {
        await tryAll(isExact: isExact) { simulation, timeline, seed in
            for number in simulation.nodes.indices {
                let bound = timeline.bound(without: OperationID(UInt64(number)))
                let shortest = simulation.without(number).timeline().duration
                #expect(isExact ? bound == shortest : bound <= shortest, "seed \(seed), \(number)")
            }
        }
    }

    @Test("The steps of the critical path cover the whole time, and each goes on where its reason ended")
    func paths() async {
        await tryAll(isExact: nil) { _, timeline, seed in
            let path = timeline.criticalPath
            #expect(path.first?.from == .zero && path.last?.to == timeline.duration, "seed \(seed)")
            for (step, next) in zip(path, path.dropFirst()) {
                #expect(step.to == next.from, "seed \(seed)")
                let cause: OperationID? =
                    switch next.reason {
                    case .dependency(let id), .place(_, let id), .resource(_, let id), .children(let id): id
                    case .parent(let id), .added(let id): id
                    case .beginning, .queue, .condition: nil
                    }
                // Operations that take no time have no step, so what comes before is the cause or comes before that.
                let end = cause.flatMap { timeline[$0] }.map { max($0.finished ?? .zero, $0.running ?? .zero) }
                #expect(end.map { $0 >= next.from } == true, "seed \(seed)")
            }
            for step in path { #expect(step.waited <= step.to - step.from && step.waited >= .zero, "seed \(seed)") }
        }
    }

    @Test("Without limits and delays, the work on the critical path is the longest path through the graph")
    func longestPath() async {
        await tryAll(isExact: true) { simulation, timeline, seed in
            let works = timeline.criticalPath.compactMap { step -> Int? in
                let node = simulation.nodes[Int(step.operation.number)]
                return node.children.isEmpty ? node.work : 0
            }
            #expect(timeline.duration == .milliseconds(works.reduce(0, +)), "seed \(seed)")
        }
    }
}

/// Random operations inside each other that depend on each other, and the timeline of a run of them, in milliseconds.
private struct TimelineSimulation: Sendable {
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
        var (starts, ends) = (chosen, chosen)
        (chosen[0], starts[0]) = (0, 0)
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
                let node = nodes[number]
                let start: Duration? = starts[number].map { .milliseconds($0) }
                return OperationTimeline.Entry(
                    id: OperationID(UInt64(number)), name: "\(number)",
                    parent: node.parent.map { OperationID(UInt64($0)) }, started: start, running: start,
                    finished: ends[number].map { .milliseconds($0) }, outcome: .success,
                    dependencies: node.dependencies.map { OperationID(UInt64($0)) },
                    isComposite: !node.children.isEmpty, limit: node.limit)
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
