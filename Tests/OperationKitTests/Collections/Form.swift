import OperationKitTestSupport

enum Form: CaseIterable, Sendable {
    case completion, await, operation, sequence, asyncSequence

    /// Whether items that have not started are reported.
    var isArray: Bool { self != .sequence && self != .asyncSequence }

    /// Performs the numbers below `count`, and returns what became of the items that failed or did not start. `read` is called
    /// with the index of each item that is asked of a sequence and exists.
    func failures(
        of operation: some CollectionOperation<Int>, on count: Int, read: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> [CollectionFailure<Int>] {
        let sequence = Reads { index in
            guard index < count else { return nil }
            read(index)
            return index
        }
        let errors: [(any Error)?]
        switch self {
        case .completion:
            let (slots, calls) = await operation.run(on: Array(0..<count))
            #expect(calls == 1)
            errors = slots
        case .await:
            errors = await operation.performOperation(on: Array(0..<count))
        case .operation:
            let run = operation.makeOperation(on: Array(0..<count))
            try? await OperationQueue().run(run)
            errors = run.errors
            let failed = errors.indices.filter { errors[$0] != nil && errors[$0]?.isCancellation != true }
            // The failure of the run is that of the items that failed, and no cancellation.
            #expect(((run.error as? CompoundOperationError)?.leafErrors.count ?? 0) == failed.count && !run.isCancelled)
        case .sequence:
            return try await operation.performOperation(onEach: sequence)
        case .asyncSequence:
            return try await operation.performOperation(onEach: AsyncReads(sequence: sequence))
        }
        return operation.failures(in: Array(0..<count), errors: errors)
    }
}

/// Gives the items of a sequence asynchronously, and fails at the end if it is told to.
struct AsyncReads: AsyncSequence, AsyncIteratorProtocol, Sendable {
    var sequence: Reads
    var failure: TestError?

    mutating func next() async throws -> Int? {
        await Task.yield()
        if let next = sequence.next() { return next }
        if let failure { throw failure }
        return nil
    }

    func makeAsyncIterator() -> AsyncReads { self }
}

/// When and how often the end of a unit is reported.
enum Report: CaseIterable, Sendable {
    case onAnotherThread, twice, onTwoThreads, lateAgain

    func callAsFunction(_ completion: @escaping @Sendable ((any Error)?) -> Void, _ error: (any Error)?) {
        switch self {
        case .onAnotherThread: elsewhere { completion(error) }
        case .twice:
            completion(error)
            completion(TestError.second)
        case .onTwoThreads:
            elsewhere {
                completion(error)
                elsewhere { completion(TestError.second) }
            }
        case .lateAgain:
            completion(error)
            elsewhere { completion(TestError.second) }
        }
    }
}
