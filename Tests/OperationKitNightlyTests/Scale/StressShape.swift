import OperationKitTestSupport

/// A graph of children as a value: for each child those it depends on, all of them before it.
struct StressShape: CustomStringConvertible, Sendable {
    let name: String
    /// By child. The shapes list each dependency once.
    var dependencies: [[Int]]
    /// By child; all of them normal if empty.
    var priorities: [Operation.QueuePriority] = []

    var count: Int { dependencies.count }
    var edgeCount: Int { dependencies.reduce(0) { $0 + $1.count } }
    var description: String { "\(name) (\(count) children, \(edgeCount) dependencies)" }

    func priority(of child: Int) -> Operation.QueuePriority {
        priorities.isEmpty ? .normal : priorities[child]
    }
}

extension StressShape {
    static func flat(_ count: Int) -> StressShape {
        StressShape(name: "flat", dependencies: Array(repeating: [], count: count))
    }

    static func chain(_ count: Int) -> StressShape {
        StressShape(name: "chain", dependencies: (0..<count).map { $0 == 0 ? [] : [$0 - 1] })
    }

    /// Each child depends on its parent in a heap.
    static func binaryTree(_ count: Int) -> StressShape {
        StressShape(name: "binary tree", dependencies: (0..<count).map { $0 == 0 ? [] : [($0 - 1) / 2] })
    }

    /// Each child depends on `links` neighbors in the layer before; on all of it, if `links` is the width.
    static func mesh(layers: Int, width: Int, links: Int) -> StressShape {
        let dependencies = (0..<layers * width).map { child -> [Int] in
            let (layer, place) = child.quotientAndRemainder(dividingBy: width)
            if layer == 0 { return [] }
            return (0..<min(links, width)).map { (layer - 1) * width + (place + $0 * 7) % width }.uniqued()
        }
        return StressShape(name: "mesh of \(layers) layers", dependencies: dependencies)
    }

    /// The last child depends on all others.
    static func starIn(_ count: Int) -> StressShape {
        StressShape(
            name: "star in", dependencies: Array(repeating: [], count: count - 1) + [Array(0..<count - 1)])
    }

    /// All others depend on the first child.
    static func starOut(_ count: Int) -> StressShape {
        StressShape(name: "star out", dependencies: (0..<count).map { $0 == 0 ? [] : [0] })
    }

    /// Each child depends on a random number of earlier ones, `edges` in all, save those that were drawn twice.
    static func random(_ count: Int, edges: Int, using random: inout SplitMix64) -> StressShape {
        var dependencies: [[Int]] = Array(repeating: [], count: count)
        if count > 1 {
            for _ in 0..<edges {
                let child = 1 + Int(random.next() % UInt64(count - 1))
                let dependency = Int(random.next() % UInt64(child))
                if !dependencies[child].contains(dependency) { dependencies[child].append(dependency) }
            }
        }
        return StressShape(name: "random", dependencies: dependencies)
    }

    /// The same children with random priorities.
    func prioritized(using random: inout SplitMix64) -> StressShape {
        var shape = self
        let all: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
        shape.priorities = (0..<count).map { _ in all[Int(random.next() % 5)] }
        return shape
    }
}

extension Array where Element == Int {
    fileprivate func uniqued() -> [Int] {
        var seen = Set<Int>()
        return filter { seen.insert($0).inserted }
    }
}

/// What a compound with a limit of 1 has to do, written down as naively as possible: look through all children for the
/// most urgent one that is ready, the first one among equals, and go on with what that leaves.
struct ReferenceScheduler {
    let shape: StressShape

    /// The children in the order in which they have to begin.
    var order: [Int] {
        var done: Set<Int> = []
        var order: [Int] = []
        while order.count < shape.count {
            var best: Int?
            for child in 0..<shape.count where !done.contains(child) {
                guard shape.dependencies[child].allSatisfy({ done.contains($0) }) else { continue }
                if let other = best, shape.priority(of: other).rawValue >= shape.priority(of: child).rawValue {
                    continue
                }
                best = child
            }
            guard let best else { return order }
            done.insert(best)
            order.append(best)
        }
        return order
    }

    /// What is wrong with a run of several children at the same time: what ran although nothing was to, twice, or too early.
    static func violations(of shape: StressShape, _ record: ShapeRecord.Result, limit: Int) -> [String] {
        var violations: [String] = []
        for child in 0..<shape.count where record.runs[child] != 1 {
            violations.append("child \(child) ran \(record.runs[child]) times")
        }
        for (child, dependencies) in shape.dependencies.enumerated() {
            for dependency in dependencies where record.ends[dependency] >= record.begins[child] {
                violations.append("child \(child) began before \(dependency) had ended")
            }
        }
        if limit >= 0, record.mostConcurrent > limit {
            violations.append("\(record.mostConcurrent) children ran at the same time, with a limit of \(limit)")
        }
        return violations
    }
}
