import OperationKitTestSupport

/// Shapes at scale, and random programs. One after the other, because each of them wants a processor for itself;
/// `swift test --filter Stress` selects them. They begin with all others: they take longer than any other suite, and would
/// be the last ones on a machine with nothing else to do.
@Suite("Stress", .serialized) enum Stress {}

/// What environment variables ask the stress tests for.
enum StressSettings {
    /// How long random programs are run.
    static var seconds: Double {
        ProcessInfo.processInfo.environment["STRESS_SECONDS"].flatMap(Double.init) ?? TestExtent.choose(0.5, long: 600)
    }

    /// The seed that a failure has printed: that of the only program to run, again and again, or of all random graphs.
    static var seed: UInt64? { ProcessInfo.processInfo.environment["STRESS_SEED"].flatMap { UInt64($0) } }
}

/// The memory of this process that is in the machine's memory, without the pages of files, which come as code is used for
/// the first time. In MiB, or `nil` where the system does not tell in this way.
///
/// In a long run it grows by some 200 bytes for each error that is thrown: Testing keeps its backtrace until the run is over.
func residentMemory() -> Int? {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
    let fields = text.split(separator: " ")
    guard fields.count > 2, let resident = Int(fields[1]), let shared = Int(fields[2]) else { return nil }
    return (resident - shared) * 4096 / (1 << 20)
}

extension Stress {
    /// Shapes of every kind: small ones against a naive scheduler, and large ones.
    @Suite("Stress: shapes", .hangGuard) struct StressShapeTests {
        private func expectRun(_ shape: StressShape, _ kinds: [ChildKind], limit: Int, _ hint: String) async throws {
            let record = try await shape.run(kinds, limit: limit)
            let violations = shape.violations(record, limit: limit)
            #expect(violations.isEmpty, "\(shape), limit \(limit), \(hint): \(violations.prefix(5))")
            // A child that depends on an operation of another library may be left to the queue, because Foundation has not
            // released it yet when the end of that operation is noticed. Others overtake it then, as is documented.
            let mayOvertake = shape.dependencies.joined().contains { kinds[$0 % kinds.count] == .foreign }
            if limit == 1, !mayOvertake { #expect(record.order.map(Int.init) == shape.order, "\(shape), \(hint)") }
        }

        private static let kinds: [[ChildKind]] = [
            [.asynchronous], [.hopping], ChildKind.allCases.filter { $0 != .foreign }, ChildKind.allCases,
        ]

        @Test(
            "Random graphs keep their dependencies and the limit, and run in the only right order if that is 1",
            arguments: kinds, [1, 2, 8, -1])
        func randomGraphs(kinds: [ChildKind], limit: Int) async throws {
            // A failure prints it; in the long extent it is printed before anything can fail.
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            TestExtent.report("random graphs: STRESS_SEED=\(seed)")
            for number in 0..<TestExtent.choose(limit == 1 ? 30 : 8, long: limit == 1 ? 700 : 200) {
                var random = SplitMix64(seed: seed &+ UInt64(number))
                let count = Int.random(in: 0..<33, using: &random)
                var shape = StressShape.random(count, most: 6, using: &random)
                for child in 0..<count {
                    shape.priorities[child] = [.veryLow, .low, .normal, .high, .veryHigh].randomElement(using: &random)!
                }
                try await expectRun(shape, kinds, limit: limit, "graph \(number) of seed \(seed)")
            }
        }

        /// Sizes at which anything that is not linear shows.
        private static let large: [@Sendable (_ count: Int) -> StressShape] = [
            { StressShape("flat", $0) { _ in [] } },
            { StressShape("chain", $0) { $0 == 0 ? [] : [$0 - 1] } },
            { StressShape("binary tree", $0) { $0 == 0 ? [] : [($0 - 1) / 2] } },
            { StressShape("star out", $0) { $0 == 0 ? [] : [0] } },
            // Foundation compares a new dependency with all that are there, so this shape is quadratic before it runs.
            { _ in
                let count = TestExtent.choose(1_000, long: 100_000)
                return StressShape("star in", count) { $0 == count - 1 ? Array(0..<$0) : [] }
            },
            { .mesh(layers: $0 / 100, width: 100, links: 3) },
            // Ten million dependencies would measure Foundation's bookkeeping only.
            { .mesh(layers: min($0 / 100, 1_000), width: 30, links: 30) },
            {
                var random = SplitMix64(seed: StressSettings.seed ?? 1)
                return .random(min($0, 200_000), most: 10, using: &random)
            },
        ]

        @Test("Each child of a large shape runs once, after all it depends on", arguments: large.indices)
        func largeShapes(index: Int) async throws {
            let shape = Self.large[index](TestExtent.choose(1_000, long: 1_000_000))
            let began = ContinuousClock.now
            try await expectRun(shape, [.asynchronous], limit: 8, "")
            TestExtent.report("\(shape): \(ContinuousClock.now - began), \(residentMemory() ?? 0) MiB resident")
        }
    }
}

/// A graph of children as a value: for each child those it depends on, all of them before it.
struct StressShape: CustomStringConvertible, Sendable {
    let name: String
    let count: Int
    /// By child, each of them once.
    let dependencies: [[Int]]
    /// By child.
    var priorities: [Operation.QueuePriority]

    init(_ name: String, _ count: Int, dependencies: (_ child: Int) -> [Int]) {
        (self.name, self.count) = (name, count)
        self.dependencies = (0..<count).map(dependencies)
        priorities = Array(repeating: .normal, count: count)
    }

    var description: String { "\(name) (\(count) children, \(dependencies.reduce(0) { $0 + $1.count }) dependencies)" }

    /// Each child depends on `links` neighbors in the layer before; on all of it, if `links` is the width.
    static func mesh(layers: Int, width: Int, links: Int) -> StressShape {
        StressShape("mesh of \(layers) layers", layers * width) { child in
            let (layer, place) = child.quotientAndRemainder(dividingBy: width)
            return layer == 0 ? [] : Set((0..<links).map { (layer - 1) * width + (place + $0 * 7) % width }).sorted()
        }
    }

    /// Each child depends on earlier ones, of which up to so many are drawn.
    static func random(_ count: Int, most: Int, using random: inout SplitMix64) -> StressShape {
        StressShape("random", count) { child in
            let count = Int.random(in: 0...most, using: &random)
            let drawn = (0..<count).map { _ in Int.random(in: 0...child, using: &random) }
            return Set(drawn).subtracting([child]).sorted()
        }
    }
}

// What has to happen.
extension StressShape {
    /// The order in which the children begin with a limit of 1, found as naively as possible: look through all of them for
    /// the most urgent one that is ready, the first one among equals, and go on with what that leaves.
    var order: [Int] {
        var order: [Int] = []
        while order.count < count {
            let ready = (0..<count).filter { !order.contains($0) && Set(order).isSuperset(of: dependencies[$0]) }
            order.append(ready.max { (priorities[$0].rawValue, $1) < (priorities[$1].rawValue, $0) } ?? -1)
        }
        return order
    }

    /// What is wrong with a run: what ran twice, not at all, or too early.
    func violations(_ record: ShapeRecord, limit: Int) -> [String] {
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
    func run(_ kinds: [ChildKind], limit: Int) async throws -> ShapeRecord {
        let record = Shared(ShapeRecord(count))
        let operations = (0..<count).map { index in
            kinds[index % kinds.count].make {
                record.change { $0.began(index) }
                record.change { $0.ended(index) }
            }
        }
        for (child, dependencies) in dependencies.enumerated() {
            for dependency in dependencies { operations[child].addDependency(operations[dependency]) }
            operations[child].queuePriority = priorities[child]
        }
        try await OperationQueue().run(
            CompoundOperation(name: name, operations: operations, maxConcurrentOperationCount: limit))
        return record.value
    }
}

/// Who began and ended when, written by the children of one run.
struct ShapeRecord {
    /// How often each child ran, and the moments, counted over all children, at which it began and ended.
    private(set) var runs, begins, ends: [Int32]
    /// The children in the order in which they began.
    private(set) var order: [Int32] = []
    private(set) var mostConcurrent = 0
    private var now: Int32 = 0
    private var running = 0

    init(_ count: Int) {
        runs = Array(repeating: 0, count: count)
        (begins, ends) = (runs, runs)
        order.reserveCapacity(count)
    }

    mutating func began(_ child: Int) {
        (now, running) = (now + 1, running + 1)
        runs[child] += 1
        begins[child] = now
        order.append(Int32(child))
        mostConcurrent = max(mostConcurrent, running)
    }

    mutating func ended(_ child: Int) {
        (now, running) = (now + 1, running - 1)
        ends[child] = now
    }
}
