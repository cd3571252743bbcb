import Foundation
import OperationKit

// Children of Foundation's own classes, which only a queue can start safely.
extension Case {
    static let blocks = Case(
        id: "blocks",
        summary: "a compound of BlockOperations, or ThrowingBlockOperations, with empty blocks",
        baseline: "the same operations on a stock queue of the same width",
        timed: "creating the compound with its children, or adding them to the queue, until all have finished"
    ) { scale in
        [1, 2, 8].map { width in
            let ours = Side.compound("compound of width \(width)", scale.count, width: width, of: emptyBlocks)
            let stock = Side.queue("queue of width \(width)", scale.count, width: width, of: emptyBlocks)
            return Experiment(
                "\(grouped(scale.count)) blocks, width \(width)", ours: ours, baseline: stock, goal: 1.5)
        } + [throwingBlocks(scale.count, width: 2)]
    }

    private static func throwingBlocks(_ count: Int, width: Int) -> Experiment {
        func make(_ count: Int) -> [Operation] { (0..<count).map { _ in ThrowingBlockOperation {} } }
        return Experiment(
            "\(grouped(count)) throwing blocks, width \(width)",
            ours: .compound("compound of throwing blocks", count, width: width, of: make),
            baseline: .queue("queue of throwing blocks", count, width: width, of: make), goal: 0.5)
    }

    static let blockChain = Case(
        id: "block-chain",
        summary: "a compound whose children are BlockOperations in one chain of dependencies",
        baseline: "such a chain on a stock queue, short because its cost there is quadratic",
        timed: "creating the compound with its children, or adding them to the queue, until all have finished"
    ) { scale in
        let width = OperationQueue.defaultMaxConcurrentOperationCount
        let sides = scale.sizes.map { size in
            Side.compound("compound", size, width: width, least: scale.count) { emptyBlocks($0).chained() }
        }
        let stock = Side.queue("queue", scale.stockChain, width: width) { emptyBlocks($0).chained() }
        var experiment = Experiment.growing("blocks in a chain", scale, sides, against: [], goal: 0, flatness: 1.3)
        experiment.sides.append(stock)
        let comparisons = zip(scale.sizes, sides).filter { $0.0 >= scale.flatFrom }.map { size, side in
            Comparison(
                what: "\(grouped(size)) blocks in a chain, to \(grouped(scale.stockChain))", ours: side.name,
                baseline: stock.name, goal: 1 / 80)
        }
        experiment.comparisons.insert(contentsOf: comparisons, at: 0)
        return [experiment]
    }
}

private func emptyBlocks(_ count: Int) -> [Operation] {
    (0..<count).map { _ in BlockOperation {} }
}
