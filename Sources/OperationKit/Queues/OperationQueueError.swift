public import Foundation

/// Why operations or closures could not be run on a queue.
public enum OperationQueueError: Error, Equatable {
    /// The operation has been started or is on the queue already, and operations run once. Code 1.
    case cannotBeAdded(operation: String)
    /// The operation was given twice, and nothing was added. Code 2.
    case givenTwice(operation: String)
    /// The concurrency limit of a map is less than 1; nothing was run. Code 3.
    case invalidLimit(queue: String, limit: Int)
}

extension OperationQueueError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .cannotBeAdded: 1
        case .givenTwice: 2
        case .invalidLimit: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .cannotBeAdded(let operation):
            "The operation “\(operation)” has been started or added before and cannot be added to a queue. Create a new one for each run."
        case .givenTwice(let operation):
            "The operation “\(operation)” was given twice, so nothing was added. Give each operation once."
        case .invalidLimit(let queue, let limit):
            "A map on “\(queue)” was given a limit of \(limit), so nothing was run. Give it 1 or more."
        }
    }
}
