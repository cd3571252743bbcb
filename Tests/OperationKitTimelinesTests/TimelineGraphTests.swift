import OperationKitTestSupport
import Testing

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Timelines of random graphs", .hangGuard, .takesTurns) struct TimelineGraphTests {
    private static let runCount = TestExtent.choose(40, long: 20_000)

    private func positions(inside number: Int, _ simulation: TimelineSimulation) -> Set<Int> {
        simulation.nodes[number].children.reduce(into: [number]) { found, child in
            found.formUnion(positions(inside: child, simulation))
        }
    }

    @Test("Without limits, the estimate is what a run without the work of the operation takes") func exactEstimates() {
        let first = SplitMix64.freshSeed()
        for seed in first..<first + UInt64(Self.runCount) {
            let simulation = TimelineSimulation(seed: seed, isExact: true)
            let timeline = simulation.timeline()
            for number in simulation.nodes.indices {
                let expected = simulation.without(number).timeline().duration
                #expect(timeline.whatIf(without: OperationID(UInt64(number))) == expected, "seed \(seed), \(number)")
            }
        }
    }

    @Test("With limits and delays, the estimate is the longest path, as a naive search finds it") func naiveEstimates()
    {
        let first = SplitMix64.freshSeed()
        for seed in first..<first + UInt64(Self.runCount) {
            let simulation = TimelineSimulation(seed: seed, isExact: false)
            let timeline = simulation.timeline()
            for number in simulation.nodes.indices {
                let estimate = timeline.whatIf(without: OperationID(UInt64(number)))
                var naive = NaiveReplay(simulation, timeline, removing: positions(inside: number, simulation))
                #expect(estimate == naive.newEnd(0), "seed \(seed), \(number)")
                #expect(estimate <= timeline.duration, "seed \(seed), \(number)")
            }
        }
    }

    @Test("The steps of the critical path cover the whole time, and each goes on where its reason ended") func paths() {
        let first = SplitMix64.freshSeed()
        for seed in first..<first + UInt64(Self.runCount) {
            let timeline = TimelineSimulation(seed: seed, isExact: seed.isMultiple(of: 2)).timeline()
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
    func longestPath() {
        let first = SplitMix64.freshSeed()
        for seed in first..<first + UInt64(Self.runCount) {
            let simulation = TimelineSimulation(seed: seed, isExact: true)
            let timeline = simulation.timeline()
            let works = timeline.criticalPath.compactMap { step -> Int? in
                let node = simulation.nodes[Int(step.operation.number)]
                return node.children.isEmpty ? node.work : 0
            }
            #expect(timeline.duration == .milliseconds(works.reduce(0, +)), "seed \(seed)")
        }
    }

    @Test("All drawings of random graphs can be made, and say the same twice") func drawings() {
        let first = SplitMix64.freshSeed()
        for seed in first..<first + 20 {
            let timeline = TimelineSimulation(seed: seed, isExact: false).timeline()
            let forms: [(OperationTimeline) -> String] = [
                { $0.text() }, { $0.svg() }, { $0.chromeTrace }, { $0.mermaid() }, { $0.graph.dot },
                { "\($0.summary)" },
            ]
            for form in forms { #expect(form(timeline) == form(timeline) && !form(timeline).isEmpty, "seed \(seed)") }
        }
    }
}
