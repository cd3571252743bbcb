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
            return layer == 0 ? [] : Set((0..<links).map { (layer - 1) * width + (place + $0 * 7) % width }).sorted()
        }
        return StressShape(name: "mesh of \(layers) layers", dependencies: dependencies)
    }

    /// The last child depends on all others.
    static func starIn(_ count: Int) -> StressShape {
        StressShape(name: "star in", dependencies: Array(repeating: [], count: count - 1) + [Array(0..<count - 1)])
    }

    /// All others depend on the first child.
    static func starOut(_ count: Int) -> StressShape {
        StressShape(name: "star out", dependencies: (0..<count).map { $0 == 0 ? [] : [0] })
    }

    /// Each child depends on a random number of earlier ones, `edges` in all, save those that were drawn twice.
    static func random(_ count: Int, edges: Int, using random: inout SplitMix64) -> StressShape {
        var dependencies: [[Int]] = Array(repeating: [], count: count)
        for _ in 0..<(count > 1 ? edges : 0) {
            let child = 1 + Int(random.next() % UInt64(count - 1))
            let dependency = Int(random.next() % UInt64(child))
            if !dependencies[child].contains(dependency) { dependencies[child].append(dependency) }
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

// What has to happen.
extension StressShape {
    /// The order in which the children begin with a limit of 1, found as naively as possible: look through all of them for
    /// the most urgent one that is ready, the first one among equals, and go on with what that leaves.
    var order: [Int] {
        var done: Set<Int> = []
        var order: [Int] = []
        while order.count < count {
            var best: Int?
            for child in 0..<count where !done.contains(child) && done.isSuperset(of: dependencies[child]) {
                if let other = best, priority(of: other).rawValue >= priority(of: child).rawValue { continue }
                best = child
            }
            guard let best else { return order }
            done.insert(best)
            order.append(best)
        }
        return order
    }

    /// What is wrong with a run: what ran twice, not at all, or too early.
    func violations(_ record: ShapeRecord.Result, limit: Int) -> [String] {
        var violations = (0..<count).filter { record.runs[$0] != 1 }.map { "\($0) ran \(record.runs[$0]) times" }
        for (child, dependencies) in dependencies.enumerated() {
            for dependency in dependencies where record.ends[dependency] >= record.begins[child] {
                violations.append("\(child) began before \(dependency) had ended")
            }
        }
        if limit >= 0, record.mostConcurrent > limit { violations.append("\(record.mostConcurrent) ran together") }
        return violations
    }

    /// Runs a compound of the shape, whose children are of these kinds in turn, and returns what they wrote down.
    func run(_ kinds: [ChildKind], limit: Int) async throws -> ShapeRecord.Result {
        let record = ShapeRecord(count)
        let operations = (0..<count).map { index in
            kinds[index % kinds.count].make {
                record.began(index)
                record.ended(index)
            }
        }
        for (child, dependencies) in dependencies.enumerated() {
            for dependency in dependencies { operations[child].addDependency(operations[dependency]) }
            operations[child].queuePriority = priority(of: child)
        }
        try await OperationQueue().run(
            CompoundOperation(name: name, operations: operations, maxConcurrentOperationCount: limit))
        return record.result
    }
}

/// Who began and ended when, written by the children of one run.
final class ShapeRecord: @unchecked Sendable {
    struct Result {
        /// How often each child ran.
        var runs: [Int32]
        /// The moments, counted over all children, at which each one began and ended.
        var begins: [Int32]
        var ends: [Int32]
        /// The children in the order in which they began.
        var order: [Int32] = []
        var mostConcurrent = 0
    }

    private let lock = NSLock()
    private var storage: Result
    private var now: Int32 = 0
    private var running = 0

    init(_ count: Int) {
        let zeros = [Int32](repeating: 0, count: count)
        storage = Result(runs: zeros, begins: zeros, ends: zeros)
        storage.order.reserveCapacity(count)
    }

    func began(_ child: Int) {
        lock.withLock {
            now += 1
            running += 1
            storage.runs[child] += 1
            storage.begins[child] = now
            storage.order.append(Int32(child))
            storage.mostConcurrent = max(storage.mostConcurrent, running)
        }
    }

    func ended(_ child: Int) {
        lock.withLock {
            now += 1
            running -= 1
            storage.ends[child] = now
        }
    }

    var result: Result { lock.withLock { storage } }
}
