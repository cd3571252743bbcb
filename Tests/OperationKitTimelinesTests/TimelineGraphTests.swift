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
