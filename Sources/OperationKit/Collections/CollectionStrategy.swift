/// How a type works on collections: the size of its units, items or batches, how many of them run at the same time,
/// what a failure means, and how a unit is performed.
///
/// Everything that differs between items and batches, parallel and sequential types, completions and `async` methods is
/// in this value. A strategy is read from the object once for each run.
struct CollectionStrategy<Item: Sendable>: Sendable {
    /// Performs the items of a unit, a range of a collection. The completion may be called before this returns, later,
    /// repeatedly, on any thread.
    typealias Perform = @Sendable (_ items: [Item], _ unit: Range<Int>, _ completion: @escaping UnitCompletion) -> Void

    /// How the items of a unit, a range of a collection, are performed. The index is that of the unit, for errors.
    enum Method: Sendable {
        case completion(Perform)
        case async(@Sendable (_ items: [Item], _ unit: Range<Int>, _ index: Int) async throws -> Void)
    }

    /// The type that performs the items.
    let typeName: String
    /// What errors call a unit.
    let unitName: String
    /// The number of items of a unit, at least 1.
    let unitSize: Int
    /// The maximum number of units in flight, at least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    let method: Method

    init<Operation: CollectionOperation<Item>>(of operation: Operation) throws(CoordinationError) {
        let type = operation.displayName
        typeName = type
        unitName = operation.unitName
        let batches = operation as? any BatchOperation
        if batches != nil, operation is any ItemOperation { throw .itemsAndBatches(type: type) }
        let batchSize = batches?.batchSize
        if let batchSize, batchSize < 1 { throw .invalidBatchSize(type: type, batchSize: batchSize) }
        unitSize = batchSize ?? 1
        limit =
            (operation as? any ParallelItemOperation)?.maxConcurrentOperationCount
            ?? (operation as? any ParallelBatchOperation)?.maxConcurrentOperationCount ?? 1
        if limit < 1 { throw .invalidLimit(type: type, maxConcurrentOperationCount: limit) }
        failurePolicy = operation.failurePolicy
        let method = CollectionStrategy.method(of: operation)
        guard let policy = operation.retryPolicy else {
            self.method = method
            return
        }
        if let problem = policy.problem { throw .invalidRetryPolicy(type: type, problem: problem) }
        self.method = method.retried(by: policy, clock: operation.clock, typeName: type, unitName: unitName)
    }

    private static func method<Operation: CollectionOperation<Item>>(of operation: Operation) -> Method {
        if let operation = operation as? any AsyncItemOperation<Item> {
            let operation = UncheckedSendable(operation)
            return .async { items, unit, _ in
                try await operation.value.performOperation(onItem: items[unit.lowerBound])
            }
        }
        if let operation = operation as? any AsyncBatchOperation<Item> {
            let operation = UncheckedSendable(operation)
            return .async { items, unit, _ in try await operation.value.performOperation(onBatch: Array(items[unit])) }
        }
        if let operation = operation as? any ItemOperation<Item> {
            let operation = UncheckedSendable(operation)
            return .completion { items, unit, completion in
                operation.value.performOperation(onItem: items[unit.lowerBound], completion: completion)
            }
        }
        if let operation = operation as? any BatchOperation<Item> {
            let operation = UncheckedSendable(operation)
            return .completion { items, unit, completion in
                operation.value.performOperation(onBatch: Array(items[unit]), completion: completion)
            }
        }
        let operation = UncheckedSendable(operation)
        return .async { items, unit, _ in
            let errors = await operation.value.performOperation(on: Array(items[unit]))
            if let error = errors.lazy.compactMap(\.self).first { throw error }
        }
    }

    /// Cuts a collection into units.
    func units(of items: [Item]) -> CollectionUnits {
        let (size, count) = (unitSize, items.count)
        let start: CollectionUnits.Start
        var cancelRunning: (@Sendable () -> Void)?
        switch method {
        case .completion(let perform):
            start = { index, completion in perform(items, unitRange(index, size: size, count: count), completion) }
        case .async(let perform):
            let tasks = RunningTasks()
            start = { index, completion in
                let unit = unitRange(index, size: size, count: count)
                tasks.run(index, { try await perform(items, unit, index) }, completion: completion)
            }
            cancelRunning = { tasks.cancel() }
        }
        return CollectionUnits(
            typeName: typeName, unitName: unitName, count: unitCount(count, size: size), limit: limit,
            failurePolicy: failurePolicy, start: start, cancelRunning: cancelRunning)
    }

    /// Performs one unit. An `async` method runs in a new task of `tasks`, or in the current task if `tasks` is `nil`.
    ///
    /// - Parameters:
    ///   - unit: Its items.
    ///   - index: The index of the unit.
    ///   - tasks: The tasks that are cancelled together.
    /// - Returns: The error of the unit.
    func perform(_ unit: [Item], index: Int, in tasks: RunningTasks?) async -> (any Error)? {
        switch method {
        case .completion(let perform):
            let units = CollectionUnits(
                typeName: typeName, unitName: unitName, firstIndex: index, count: 1, limit: 1,
                failurePolicy: .continueAll,
                start: { perform(unit, unit.indices, $1) }, cancelRunning: nil)
            return await CollectionDriver.error(of: units)
        case .async(let perform):
            if let tasks { return await tasks.run(index) { try await perform(unit, unit.indices, index) } }
            do {
                try await perform(unit, unit.indices, index)
                return nil
            } catch {
                return error
            }
        }
    }
}

/// Returns the number of units into which `count` items are cut.
func unitCount(_ count: Int, size: Int) -> Int {
    count == 0 ? 0 : (count - 1) / size + 1
}

/// Returns the indices of the items of a unit. No sum here can overflow, however large the size.
func unitRange(_ unit: Int, size: Int, count: Int) -> Range<Int> {
    let start = unit * size
    return start..<(count - start <= size ? count : start + size)
}
