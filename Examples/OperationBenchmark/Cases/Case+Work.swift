import Dispatch
import Foundation
import OperationKit

// Children with some work, and children with several dependencies.
extension Case {
    static let work = Case(
        id: "work",
        summary: "a compound of children that compute for 1, 10 and 100 microseconds, as wide as the machine",
        baseline: "concurrentPerform of the same work",
        timed: "creating the compound with its children, or calling concurrentPerform, until all have finished"
    ) { scale in
        let cores = ProcessInfo.processInfo.activeProcessorCount
        return [(time: 1, goal: 1.5), (10, 1.05), (100, 1.02)].map { time, goal in
            let count = max(1, scale.count / time)
            let rounds = Busy.rounds(microseconds: time)
            let ours = Side.compound("compound, \(time) µs each", count, width: cores) { count in
                (0..<count).map { _ in Busy(rounds: rounds) }
            }
            let plain = Side("concurrentPerform, \(time) µs each, \(grouped(count))", units: count) {
                {
                    DispatchQueue.concurrentPerform(iterations: count) { _ in Busy.compute(rounds) }
                    return ()
                }
            }
            return Experiment(
                "\(grouped(count)) children of \(time) µs, width \(cores)", ours: ours, baseline: plain, goal: goal)
        }
    }

    static let layers = Case(
        id: "layers",
        summary: "a compound of layers, in which each child depends on two of the layer before",
        baseline: "a compound of as many children without dependencies; with work, concurrentPerform of each layer",
        timed: "creating the compound with its children, or calling concurrentPerform, until all have finished"
    ) { scale in
        let width = max(1, Int(Double(scale.count / 10).squareRoot()))
        let (count, cores) = (width * width, ProcessInfo.processInfo.activeProcessorCount)
        let ours = Side.compound("layers of \(width)", count, width: 8, least: scale.count) { _ in
            layered(width) { Leaf() }
        }
        let flat = Side.compound("no layers", count, width: 8, least: scale.count, of: Leaf.make)
        let rounds = Busy.rounds(microseconds: 10)
        let busy = Side.compound("layers of \(width), 10 µs each", count, width: cores) { _ in
            layered(width) { Busy(rounds: rounds) }
        }
        let plain = Side("concurrentPerform of each layer, 10 µs each", units: count) {
            {
                for _ in 0..<width {
                    DispatchQueue.concurrentPerform(iterations: width) { _ in Busy.compute(rounds) }
                }
                return ()
            }
        }
        return [
            Experiment("\(width) layers of \(width)", ours: ours, baseline: flat, goal: 2),
            Experiment("\(width) layers of \(width), 10 µs each", ours: busy, baseline: plain, goal: 1.2),
        ]
    }
}

/// Layers of operations, each of which depends on two of the layer before.
private func layered(_ width: Int, _ make: () -> Operation) -> [Operation] {
    var layers = [(0..<width).map { _ in make() }]
    for number in 1..<width {
        let layer = (0..<width).map { _ in make() }
        for (place, operation) in layer.enumerated() {
            operation.addDependency(layers[number - 1][place])
            operation.addDependency(layers[number - 1][(place + 1) % width])
        }
        layers.append(layer)
    }
    return layers.flatMap(\.self)
}

/// An operation that computes for a while.
final class Busy: AsyncOperation, @unchecked Sendable {
    private let rounds: Int

    init(rounds: Int) {
        self.rounds = rounds
        super.init()
    }

    override func main() {
        Busy.compute(rounds)
        finish()
    }

    @inline(never)
    static func compute(_ rounds: Int) {
        var state: UInt64 = 1
        for _ in 0..<rounds { state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
        use(state)
    }

    /// Looks like an effect to the compiler, which would otherwise leave the computation out, or do it once for a whole loop.
    @inline(never) @_optimize(none)
    private static func use(_ value: UInt64) {}

    /// How many rounds take so long on this machine.
    static func rounds(microseconds: Int) -> Int {
        let sample = 1_000_000
        let times = (0..<3).map { _ in ContinuousClock().measure { compute(sample) }.nanoseconds }
        return max(1, Int(Double(sample * microseconds) * 1_000 / (times.min() ?? 1)))
    }
}
