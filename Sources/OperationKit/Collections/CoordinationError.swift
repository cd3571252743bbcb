public import Foundation

/// A mistake in the options of a collection operation or a coordinator, or in the operations that it was given.
public enum CoordinationError: Error, Equatable {
    /// The batch size is less than 1; nothing was run. `type` is the type that asked for it. Code 1.
    case invalidBatchSize(type: String, batchSize: Int)
    /// The concurrency limit is less than 1; nothing was run. `type` is the type that asked for it. Code 2.
    case invalidLimit(type: String, maxConcurrentOperationCount: Int)
    /// The operation had been started before, so the coordinator left it alone. Code 3.
    case alreadyStarted(operation: String, coordinator: String)
    /// The operation was given twice. It ran once, and the first of its slots has its outcome. Code 4.
    case givenTwice(operation: String, coordinator: String)
    /// The retry policy makes no sense; nothing was run. `problem` says what is wrong with it. Code 5.
    case invalidRetryPolicy(type: String, problem: String)
    /// The type conforms to a protocol for items and to one for batches; nothing was run. Code 6.
    case itemsAndBatches(type: String)
}

extension CoordinationError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .invalidBatchSize: 1
        case .invalidLimit: 2
        case .alreadyStarted: 3
        case .givenTwice: 4
        case .invalidRetryPolicy: 5
        case .itemsAndBatches: 6
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .invalidBatchSize(let type, let batchSize):
            "“\(type)” asks for batches of \(batchSize) items. Set its batchSize to 1 or more."
        case .invalidLimit(let type, let limit):
            "“\(type)” allows \(limit) items at a time. Set its maxConcurrentOperationCount to 1 or more."
        case .alreadyStarted(let operation, let coordinator):
            "The operation “\(operation)” was not run by “\(coordinator)”, because it has been started before. Create a new one for each run."
        case .givenTwice(let operation, let coordinator):
            "The operation “\(operation)” was given to “\(coordinator)” twice. It ran once: give each operation once."
        case .invalidRetryPolicy(let type, let problem):
            "“\(type)” did not run, because of its retry policy: \(problem)."
        case .itemsAndBatches(let type):
            "“\(type)” works item by item and by batches. Conform to one of these protocols only."
        }
    }
}
