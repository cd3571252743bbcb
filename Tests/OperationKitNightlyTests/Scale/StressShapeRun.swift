import OperationKitTestSupport

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

/// A child that does nothing but write down that it ran.
private final class ShapeChild: AsyncOperation, @unchecked Sendable {
    private let index: Int
    private let record: ShapeRecord
    private let hops: Bool

    init(_ index: Int, _ record: ShapeRecord, hops: Bool) {
        self.index = index
        self.record = record
        self.hops = hops
    }

    override func main() {
        record.began(index)
        if hops { DispatchQueue.global().async { self.end() } } else { end() }
    }

    private func end() {
        record.ended(index)
        finish()
    }
}

/// What kinds of children a shape is made of.
enum ShapeChildren: CaseIterable, Sendable {
    /// `AsyncOperation`s that finish in `main()`.
    case inline
    /// `AsyncOperation`s that finish on another thread.
    case hopping
    /// All kinds of operations but those of other libraries, in turn.
    case ownKinds
    /// All kinds of operations, in turn.
    case mixed

    private var kinds: [ChildKind] { ChildKind.allCases.filter { self == .mixed || $0 != .foreign } }

    /// Whether the child of this index is of another library.
    func isForeign(_ index: Int) -> Bool { self == .mixed && kinds[index % kinds.count] == .foreign }

    fileprivate func make(_ index: Int, _ record: ShapeRecord) -> Operation {
        switch self {
        case .inline: return ShapeChild(index, record, hops: false)
        case .hopping: return ShapeChild(index, record, hops: true)
        case .ownKinds, .mixed:
            return kinds[index % kinds.count].make {
                record.began(index)
                record.ended(index)
            }
        }
    }
}

extension StressShape {
    /// Makes a compound of the shape.
    func compound(_ children: ShapeChildren, limit: Int, _ record: ShapeRecord) -> CompoundOperation {
        let operations = (0..<count).map { children.make($0, record) }
        for (child, dependencies) in dependencies.enumerated() {
            for dependency in dependencies { operations[child].addDependency(operations[dependency]) }
            operations[child].queuePriority = priority(of: child)
        }
        return CompoundOperation(name: name, operations: operations, maxConcurrentOperationCount: limit)
    }

    /// Runs a compound of the shape, and says what its children wrote down.
    func run(_ children: ShapeChildren, limit: Int) async throws -> ShapeRecord.Result {
        let record = ShapeRecord(count)
        try await OperationQueue().run(compound(children, limit: limit, record))
        return record.result
    }
}
