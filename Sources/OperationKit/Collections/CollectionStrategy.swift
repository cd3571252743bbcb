/// How a type works on collections: the size of its batches, 1 for items, how many of them run at the same time,
/// what a failure means, and how a batch is performed.
///
/// Everything that differs between items and batches, parallel and sequential types, completions and `async` methods is
/// in this value. A strategy is read from the object once for each run.
struct CollectionStrategy<Item: Sendable> {
    /// Performs the items of a batch, a range of a collection. The completion may be called before this returns, later,
    /// repeatedly, on any thread.
    typealias Perform = @Sendable (_ items: [Item], _ batch: Range<Int>, _ completion: @escaping ItemCompletion) -> Void

    /// How the items of a batch, a range of a collection, are performed. The index is that of the batch, for errors.
    enum Method {
        case completion(Perform)
        case async(@Sendable (_ items: [Item], _ batch: Range<Int>, _ index: Int) async throws -> Void)
    }

    let names: ItemNames
    /// The number of items of a batch, at least 1.
    let batchSize: Int
    /// The maximum number of batches in flight, at least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    let method: Method

    init<Operation: CollectionOperation<Item>>(of operation: Operation) throws(CoordinationError) {
        let type = operation.displayName
        names = ItemNames(type: type, noun: operation.noun)
        let batches = operation as? any BatchOperation
        if batches != nil, operation is any ItemOperation { throw .itemsAndBatches(type: type) }
        batchSize = batches?.batchSize ?? 1
        if batchSize < 1 { throw .invalidBatchSize(type: type, batchSize: batchSize) }
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
        let (names, clock) = (names, operation.clock)
        self.method = .async { items, batch, index in
            try await policy.perform(named: { "\(names.type), \(names.name(of: index))" }, index: index, clock: clock) {
                try await method.perform(items, batch, index, names)
            }
        }
    }

    private static func method<Operation: CollectionOperation<Item>>(of operation: Operation) -> Method {
        switch operation {
        case let operation as any AsyncItemOperation<Item>:
            let operation = UncheckedSendable(operation)
            return .async { items, batch, _ in
                try await operation.value.performOperation(onItem: items[batch.lowerBound])
            }
        case let operation as any AsyncBatchOperation<Item>:
            let operation = UncheckedSendable(operation)
            return .async { items, batch, _ in try await operation.value.performOperation(onBatch: Array(items[batch]))
            }
        case let operation as any ItemOperation<Item>:
            let operation = UncheckedSendable(operation)
            return .completion { items, batch, completion in
                operation.value.performOperation(onItem: items[batch.lowerBound], completion: completion)
            }
        case let operation as any BatchOperation<Item>:
            let operation = UncheckedSendable(operation)
            return .completion { items, batch, completion in
                operation.value.performOperation(onBatch: Array(items[batch]), completion: completion)
            }
        default:
            let operation = UncheckedSendable(operation)
            return .async { items, batch, _ in
                let errors = await operation.value.performOperation(on: Array(items[batch]))
                if let error = errors.lazy.compactMap(\.self).first { throw error }
            }
        }
    }

    /// Returns what a run over a collection has to do.
    func work(on items: [Item]) -> CollectionWork {
        let (perform, tasks): (Perform, InFlightTasks?)
        switch method {
        case .completion(let method):
            (perform, tasks) = (method, nil)
        case .async(let method):
            let (batchSize, inFlight) = (batchSize, InFlightTasks())
            tasks = inFlight
            perform = { items, batch, completion in
                let index = batch.lowerBound / batchSize
                inFlight.run(index, { try await method(items, batch, index) }, completion: completion)
            }
        }
        return CollectionWork(
            source: ArraySource(items, batchSize: batchSize, perform: perform), names: names, limit: limit,
            failurePolicy: failurePolicy, tasks: tasks)
    }
}

extension CollectionStrategy.Method {
    /// Performs a batch.
    ///
    /// - Parameters:
    ///   - items: The items.
    ///   - batch: The indices of those that are the batch.
    ///   - index: The index of the batch, for errors.
    ///   - names: What errors call it.
    /// - Throws: The error of the batch.
    func perform(_ items: [Item], _ batch: Range<Int>, _ index: Int, _ names: ItemNames) async throws {
        switch self {
        case .completion(let perform):
            // A run of its own makes sure that there is one end.
            var names = names
            names.firstIndex = index
            let source = ArraySource(items, batchSize: max(items.count, 1)) { items, _, completion in
                perform(items, batch, completion)
            }
            let work = CollectionWork(source: source, names: names, limit: 1, failurePolicy: .continueAll)
            if let error = await CollectionDriver(work).run().slots[0] { throw error }
        case .async(let perform):
            try await perform(items, batch, index)
        }
    }
}

/// A collection operation that the library runs, item by item or batch by batch.
///
/// Don't conform to this protocol yourself: the four protocols with a strategy bring it along. It is where the run itself is
/// implemented, once for all of them.
public protocol ManagedCollectionOperation<CollectionType>: CollectionOperation {}

extension ManagedCollectionOperation {
    /// Performs the operation on all items of a collection by the strategy of the type.
    ///
    /// - Parameters:
    ///   - collection: The items.
    ///   - completion: Called once, as ``CollectionOperation/performOperation(on:completion:)`` says.
    public func performOperation(on collection: [CollectionType], completion: @escaping Completion) {
        // Before the options are read, which may run another collection.
        let request = RunRequest.taken(by: ObjectIdentifier(self))
        let work = Result { () throws(CoordinationError) in try CollectionStrategy(of: self).work(on: collection) }
        if let request { return request.answer(with: work) }
        switch work {
        case .success(let work): CollectionDriver(work).start { slots, _ in completion(slots) }
        case .failure(let error): completion([error])
        }
    }
}
