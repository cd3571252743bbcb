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
        baseline: "a compound of as many children without dependencies",
        timed: "creating the compound with its children, until all have finished"
    ) { scale in
        let width = max(1, Int(Double(scale.count / 10).squareRoot()))
        let ours = Side.compound("layers of \(width)", width * width, width: 8, least: scale.count) { _ in
            var layers = [Leaf.make(width)]
            for number in 1..<width {
                let layer = Leaf.make(width)
                for (place, leaf) in layer.enumerated() {
                    leaf.addDependency(layers[number - 1][place])
                    leaf.addDependency(layers[number - 1][(place + 1) % width])
                }
                layers.append(layer)
            }
            return layers.flatMap(\.self)
        }
        let flat = Side.compound("no layers", width * width, width: 8, least: scale.count, of: Leaf.make)
        return [Experiment("\(width) layers of \(width)", ours: ours, baseline: flat, goal: 2)]
    }
}

/// An operation that computes for a while.
private final class Busy: AsyncOperation, @unchecked Sendable {
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
        // Never true, but the compiler cannot know.
        if state == 0 { fatalError("There is no such number.") }
    }

    /// How many rounds take so long on this machine.
    static func rounds(microseconds: Int) -> Int {
        let sample = 1_000_000
        let times = (0..<3).map { _ in ContinuousClock().measure { compute(sample) }.nanoseconds }
        return max(1, Int(Double(sample * microseconds) * 1_000 / (times.min() ?? 1)))
    }
}
