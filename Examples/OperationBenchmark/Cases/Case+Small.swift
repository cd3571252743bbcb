import Foundation
import OperationKit

// Small composites, of which programs have many.
extension Case {
    static let smallCompounds = Case(
        id: "small-compounds",
        summary: "compounds of four children that finish in main(), all on one stock queue",
        baseline: "as many groups of four such operations and one that depends on them, on such a queue",
        timed: "adding the compounds, or the operations, to the queue, until all have finished"
    ) { scale in
        let count = max(1, scale.count / 20)
        let ours = Side.queue("compounds of 4", count, width: anyWidth) { count in
            (0..<count).map { _ in CompoundOperation(operations: Leaf.make(4)) }
        }
        let stock = Side.queue("groups of 4", count, width: anyWidth) { count in
            (0..<count).flatMap { _ in
                let leaves = Leaf.make(4)
                let last = BlockOperation {}
                for leaf in leaves { last.addDependency(leaf) }
                return leaves + [last]
            }
        }
        return [Experiment("\(grouped(count)) compounds of 4", ours: ours, baseline: stock, goal: 0.6)]
    }

    static let smallMacros = Case(
        id: "small-macros",
        summary: "macros of four typed steps, all on one stock queue",
        baseline: "as many chains of four block operations, on such a queue",
        timed: "adding the macros, or the operations, to the queue, until all have finished"
    ) { scale in
        let count = max(1, scale.count / 50)
        let ours = Side.queue("macros of 4", count, width: anyWidth) { count in
            (0..<count).map { _ in makeMacro(ofSteps: 4).macro }
        }
        let stock = Side.queue("chains of 4", count, width: anyWidth) { count in
            (0..<count).flatMap { _ in (0..<4).map { _ in BlockOperation {} }.chained() }
        }
        return [Experiment("\(grouped(count)) macros of 4", ours: ours, baseline: stock, goal: 1.3)]
    }

    static let singleChild = Case(
        id: "single-child",
        summary: "compounds of one child, started by hand, one after the other",
        baseline: "operations on a stock queue, one after the other",
        timed: "creating, starting and awaiting each, until the last one has finished"
    ) { scale in
        let count = max(1, scale.count / 5)
        let stock = Side.inTurn("operations on a queue", count) {
            let queue = OperationQueue()
            return { end in
                let leaf = Leaf()
                leaf.asyncCompletionBlock = { _ in end.come() }
                queue.addOperation(leaf)
            }
        }
        let kinds: [(name: String, goal: Double, make: () -> Operation)] = [
            ("AsyncOperation", 1, { Leaf() }), ("BlockOperation", 1.5, { BlockOperation {} }),
        ]
        let ours = kinds.map { kind in
            Side.inTurn("compounds of one \(kind.name)", count) {
                { end in
                    let compound = CompoundOperation(operations: [kind.make()])
                    compound.asyncCompletionBlock = { _ in end.come() }
                    compound.start()
                }
            }
        }
        let comparisons = zip(kinds, ours).map { kind, side in
            Comparison(
                what: "\(grouped(count)) compounds of one \(kind.name)", ours: side.name, baseline: stock.name,
                goal: kind.goal)
        }
        return [Experiment(quantity: .nanoseconds, sides: ours + [stock], comparisons: comparisons)]
    }

    private static let anyWidth = OperationQueue.defaultMaxConcurrentOperationCount
}

extension Side {
    /// Something that is begun when what was begun before has ended.
    fileprivate static func inTurn(
        _ name: String, _ count: Int, of prepare: @escaping () -> (_ end: End) -> Void
    ) -> Side {
        Side("\(name), \(grouped(count))", units: count) {
            let begin = prepare()
            return {
                for _ in 0..<count {
                    let end = End()
                    begin(end)
                    end.wait()
                }
                return ()
            }
        }
    }
}
