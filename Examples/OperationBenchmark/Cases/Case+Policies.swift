import Foundation
import OperationKit

// What policies cost: those that are never needed, and those that make a crowd wait.
extension Case {
    static let timeouts = Case(
        id: "timeouts",
        summary: "operations with a timeout that they do not reach",
        baseline: "the same operations without",
        timed: "adding them to a queue, or starting them, until all have finished; or the memory until all work"
    ) { scale in
        let timed = Side.queue("with a timeout", scale.count, width: 2, of: Leaf.timed)
        let plain = Side.queue("without", scale.count, width: 2, of: Leaf.make)
        let onQueue = Comparison(
            what: "\(grouped(scale.count)) operations, one after the other", ours: timed.name, baseline: plain.name,
            goal: 1.25)
        let together = Side("at work together, with a timeout", units: scale.many) {
            working(scale.many, .seconds(600))
        }
        let plainTogether = Side("at work together, without", units: scale.many) { working(scale.many, nil) }
        let atWork = Comparison(
            what: "\(grouped(scale.many)) operations, all at work at the same time", ours: together.name,
            baseline: plainTogether.name)
        let memory = [MemoryProbe.Kind.timeouts, .working].map { kind in Side.memory(of: kind, scale.many) }
        let bytes = Comparison(
            what: "\(grouped(scale.many)) operations at work", ours: memory[0].name, baseline: memory[1].name)
        return [
            Experiment(quantity: .nanoseconds, sides: [timed, plain], comparisons: [onQueue]),
            Experiment(quantity: .nanoseconds, sides: [together, plainTogether], comparisons: [atWork]),
            Experiment(quantity: .bytes, sides: memory, comparisons: [bytes]),
        ]
    }

    static let observers = Case(
        id: "observers",
        summary: "operations with an observer of their own, which does nothing",
        baseline: "the same operations without",
        timed: "starting all by hand, one after the other"
    ) { scale in
        let observed = Side("observed, \(grouped(scale.count))", units: scale.count) {
            let leaves = Leaf.make(scale.count)
            let observer = Idle()
            for case let leaf as Leaf in leaves { leaf.addObserver(observer) }
            return starting(leaves)
        }
        let plain = Side("not observed, \(grouped(scale.count))", units: scale.count) {
            starting(Leaf.make(scale.count))
        }
        return [
            Experiment("\(grouped(scale.count)) operations", ours: observed, baseline: plain, goal: 1.5)
        ]
    }

    static let exclusion = Case(
        id: "exclusion",
        summary: "operations that all require the same exclusive access, and wait for it",
        baseline: "the same operations without, on a stock queue of width 1",
        timed: "starting all by hand, or adding them to the queue, until all have finished"
    ) { scale in
        let sizes = Set([max(1, scale.count / 10), scale.count]).sorted()
        let sides = sizes.map { size in
            Side("exclusive access, \(grouped(size))", units: size, least: scale.count) { excluding(size) }
        }
        let stock = Side.queue("queue of width 1", scale.count, width: 1, of: Leaf.make)
        let comparisons = [
            Comparison(
                what: "\(grouped(scale.count)) that wait", ours: sides[sides.count - 1].name, baseline: stock.name),
            Comparison(
                what: "growth, \(grouped(sizes[0])) to \(grouped(scale.count)) that wait",
                ours: sides[sides.count - 1].name, baseline: sides[0].name, goal: 1.5),
        ]
        return [
            Experiment(
                quantity: .nanoseconds, sides: sides + [stock], comparisons: comparisons,
                growth: Growth(what: "that wait", points: zip(sizes, sides).map { ($0, $1.name) }))
        ]
    }
}

extension Leaf {
    /// Leaves with a timeout that they do not reach.
    static func timed(_ count: Int) -> [Operation] {
        (0..<count).map { _ in
            let leaf = Leaf()
            leaf.timeout = .seconds(600)
            return leaf
        }
    }
}

/// An operation whose work goes on until the caller ends it.
final class WorkingLeaf: AsyncOperation, @unchecked Sendable {
    override func main() {}

    static func make(_ count: Int, timeout: Duration?) -> [WorkingLeaf] {
        (0..<count).map { _ in
            let leaf = WorkingLeaf()
            if let timeout { leaf.timeout = timeout }
            return leaf
        }
    }
}

private func working(_ count: Int, _ timeout: Duration?) -> Trial {
    let leaves = WorkingLeaf.make(count, timeout: timeout)
    return {
        for leaf in leaves { leaf.start() }
        for leaf in leaves { leaf.finish() }
        return leaves
    }
}

private func excluding(_ count: Int) -> Trial {
    let resource = ExclusiveAccess("resource")
    let leaves = (0..<count).map { _ in
        let leaf = Leaf()
        leaf.require(resource)
        return leaf
    }
    let end = End()
    // The last one comes last, because all have the same priority.
    leaves[count - 1].asyncCompletionBlock = { _ in end.come() }
    return {
        for leaf in leaves { leaf.start() }
        end.wait()
        return leaves
    }
}
