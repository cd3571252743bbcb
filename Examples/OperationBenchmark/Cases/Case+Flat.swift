import Dispatch
import Foundation
import OperationKit

// Operations that do not depend on each other.
extension Case {
    static let queue = Case(
        id: "queue",
        summary: "AsyncOperations that finish in main(), on a stock queue",
        baseline: "BlockOperations with an empty block, and a bare subclass with a lock, on such a queue",
        timed: "adding them to the queue, until all have finished"
    ) { scale in
        let width = OperationQueue.defaultMaxConcurrentOperationCount
        let ours = Side.queue("AsyncOperations", scale.count, width: width, of: Leaf.make)
        let stock = Side.queue("BlockOperations", scale.count, width: width) { count in
            (0..<count).map { _ in BlockOperation {} }
        }
        let bare = Side.queue("bare subclass", scale.count, width: width) { count in (0..<count).map { _ in Bare() } }
        let started = Side("AsyncOperations started by hand", units: scale.count) { starting(Leaf.make(scale.count)) }
        let stockStarted = Side("BlockOperations started by hand", units: scale.count) {
            starting((0..<scale.count).map { _ in BlockOperation {} })
        }
        return [
            Experiment("\(grouped(scale.count)) operations", ours: ours, baseline: stock, goal: 1),
            Experiment("\(grouped(scale.count)) operations, to a bare subclass", ours: ours, baseline: bare, goal: 1),
            Experiment(
                "\(grouped(scale.count)) operations, started by hand", ours: started, baseline: stockStarted),
        ]
    }

    static let flat = Case(
        id: "flat",
        summary: "a compound of children that finish in main()",
        baseline: "the same children on a stock queue of the same width",
        timed: "creating the compound with its children, or adding them to the queue, until all have finished"
    ) { scale in
        var experiments = [1, 2, 8].map { width in
            let ours = scale.sizes.map { size in
                Side.compound("compound of width \(width)", size, width: width, least: scale.count, of: Leaf.make)
            }
            let stock = [scale.count, scale.many].map { size in
                Side.queue("queue of width \(width)", size, width: width, of: Leaf.make)
            }
            return Experiment.growing(
                "children, width \(width)", scale, ours,
                against: zip([scale.count, scale.many], stock).map { ($0, $1) }, goal: 0.5, flatness: 1.2)
        }
        let ours = Side.startedCompound(scale.count, width: 8)
        let stock = Side.resumedQueue(scale.count, width: 8)
        experiments.append(
            Experiment(
                "\(grouped(scale.count)) children, width 8, added before", ours: ours, baseline: stock))
        experiments.append(.waiting(scale.count, width: 2))
        return experiments
    }

    static let closures = Case(
        id: "closures",
        summary: "a compound of children that finish in main()",
        baseline: "as many empty closures, sent to a concurrent dispatch queue",
        timed: "creating the compound with its children, or sending the closures, until all have finished"
    ) { scale in
        let closures = Side("closures, \(grouped(scale.count))", units: scale.count) {
            {
                let end = End()
                let queue = DispatchQueue(label: "OperationBenchmark", attributes: .concurrent)
                for _ in 0..<scale.count { queue.async {} }
                queue.async(flags: .barrier) { end.come() }
                end.wait()
                return queue
            }
        }
        let ours = [1, 2, 8].map { width in
            Side.compound("compound of width \(width)", scale.count, width: width, of: Leaf.make)
        }
        let comparisons = zip([1, 2, 8], ours).map { width, side in
            Comparison(
                what: "\(grouped(scale.count)) children, width \(width)", ours: side.name, baseline: closures.name,
                goal: 2)
        }
        return [Experiment(quantity: .nanoseconds, sides: ours + [closures], comparisons: comparisons)]
    }

    static let otherThread = Case(
        id: "other-thread",
        summary: "a compound of children that finish on another thread",
        baseline: "the same children on a stock queue of the same width",
        timed: "creating the compound with its children, or adding them to the queue, until all have finished"
    ) { scale in
        [1, 2, 8].map { width in
            let ours = Side.compound("compound of width \(width)", scale.count, width: width, of: RemoteLeaf.make)
            let stock = Side.queue("queue of width \(width)", scale.count, width: width, of: RemoteLeaf.make)
            let what = "\(grouped(scale.count)) children, width \(width)"
            return Experiment(what, ours: ours, baseline: stock, goal: 1)
        }
    }
}

/// Operations that are started one after the other on one thread.
func starting(_ operations: [Operation]) -> Trial {
    {
        for operation in operations { operation.start() }
        return operations
    }
}

extension Experiment {
    /// A program that waits for its queue most often does it in Foundation's way, which waits for each operation.
    fileprivate static func waiting(_ count: Int, width: Int) -> Experiment {
        let ours = Side.compound("compound of width \(width)", count, width: width, of: Leaf.make)
        let stock = Side("queue of width \(width), waitUntilAllOperationsAreFinished()", units: count) {
            let operations = Leaf.make(count)
            return {
                let queue = OperationQueue()
                queue.maxConcurrentOperationCount = width
                queue.addOperations(operations, waitUntilFinished: false)
                queue.waitUntilAllOperationsAreFinished()
                return queue
            }
        }
        return Experiment("\(grouped(count)) children, width \(width), Foundation's wait", ours: ours, baseline: stock)
    }
}

extension Side {
    /// A compound that has its children before the clock starts.
    fileprivate static func startedCompound(_ count: Int, width: Int) -> Side {
        Side("started compound", units: count) {
            let end = End()
            let children = Leaf.make(count)
            let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: width)
            compound.asyncCompletionBlock = { _ in end.come() }
            return {
                compound.start()
                end.wait()
                return children
            }
        }
    }

    /// A suspended queue that has its operations before the clock starts.
    fileprivate static func resumedQueue(_ count: Int, width: Int) -> Side {
        Side("resumed queue", units: count) {
            let operations = Leaf.make(count)
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            queue.isSuspended = true
            queue.addOperations(operations, waitUntilFinished: false)
            return {
                queue.isSuspended = false
                queue.waitForAll()
                return operations
            }
        }
    }
}

extension Experiment {
    /// Returns an experiment that compares one of ours in all sizes, with a baseline at some of them, and with itself.
    ///
    /// - Parameters:
    ///   - what: What there is many of.
    ///   - scale: The sizes.
    ///   - ours: The sides, in the order of `scale.sizes`.
    ///   - baselines: Sides, each with the size at which it is compared.
    ///   - goal: For the comparisons with the baselines.
    ///   - flatness: What the cost at the largest size should not exceed, in proportion to that at `scale.flatFrom`.
    /// - Returns: The experiment.
    static func growing(
        _ what: String, _ scale: Scale, _ ours: [Side], against baselines: [(size: Int, side: Side)], goal: Double,
        flatness: Double
    ) -> Experiment {
        let names = Dictionary(uniqueKeysWithValues: zip(scale.sizes, ours.map(\.name)))
        var comparisons = baselines.map { size, side in
            Comparison(
                what: "\(grouped(size)) \(what)", ours: names[size] ?? "", baseline: side.name, goal: goal)
        }
        comparisons.append(
            Comparison(
                what: "growth, \(grouped(scale.flatFrom)) to \(grouped(scale.many)) \(what)",
                ours: names[scale.many] ?? "",
                baseline: names[scale.flatFrom] ?? "", goal: flatness))
        return Experiment(
            quantity: .nanoseconds, sides: ours + baselines.map(\.side), comparisons: comparisons,
            growth: Growth(what: what, points: zip(scale.sizes, ours).map { ($0, $1.name) }))
    }
}
