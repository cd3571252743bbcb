import Foundation
import OperationKit

// Operations of which each waits for the one before it.
extension Case {
    static let chain = Case(
        id: "chain",
        summary: "a compound whose children form one chain of dependencies",
        baseline: "such a chain on a stock queue, short because its cost there is quadratic",
        timed: "creating the compound with its children, or adding them to the queue, until all have finished"
    ) { scale in
        let sides = scale.sizes.map { size in
            Side.compound(
                "compound", size, width: OperationQueue.defaultMaxConcurrentOperationCount, least: scale.count,
                of: Leaf.chain)
        }
        let stock = Side.queue(
            "queue", scale.stockChain, width: OperationQueue.defaultMaxConcurrentOperationCount, of: Leaf.chain)
        var experiment = Experiment.growing(
            "in a chain", scale, sides, against: [], goal: 0, flatness: 1.3)
        experiment.sides.append(stock)
        let comparisons = zip(scale.sizes, sides).filter { $0.0 >= scale.flatFrom }.map { size, side in
            Comparison(
                what: "\(grouped(size)) in a chain, to \(grouped(scale.stockChain))", ours: side.name,
                baseline: stock.name, goal: 0.01)
        }
        experiment.comparisons.insert(contentsOf: comparisons, at: 0)
        return [experiment]
    }

    static let macro = Case(
        id: "macro",
        summary: "macros of typed steps, for each step",
        baseline: "compounds of as many children in a chain, for each child",
        timed: "starting the macro, or creating the compound with its children, until all have finished"
    ) { scale in
        let macro = Side("macro, \(grouped(scale.steps))", units: scale.steps, least: scale.count) {
            let (macro, steps) = makeMacro(ofSteps: scale.steps)
            return {
                let end = End()
                macro.asyncCompletionBlock = { _ in end.come() }
                macro.start()
                end.wait()
                return steps
            }
        }
        let chain = Side.compound(
            "compound", scale.steps, width: OperationQueue.defaultMaxConcurrentOperationCount, least: scale.count,
            of: Leaf.chain)
        return [Experiment("\(grouped(scale.steps)) steps", ours: macro, baseline: chain, goal: 2)]
    }
}
