public import Foundation

/// Why an operation did not run that has conditions.
public enum ConditionError: Error {
    /// A condition was not satisfied, or could not be evaluated. Code 1.
    case failed(operation: String, condition: String, error: any Error)
    /// The operation that has to run before the evaluation failed, or was cancelled, if `isCancellation` of its error is
    /// true. The condition was not evaluated. Code 2.
    case prerequisiteFailed(operation: String, condition: String, prerequisite: String, error: any Error)
    /// A condition is satisfied that was not to be. It is the error inside of ``failed(operation:condition:error:)``. Code 3.
    case satisfied(operation: String, condition: String)
}

extension ConditionError: LocalizedError, CustomNSError, NestingError {
    var code: Int {
        switch self {
        case .failed: 1
        case .prerequisiteFailed: 2
        case .satisfied: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .failed(let operation, let condition, let error):
            "The operation “\(operation)” did not run, because its condition “\(condition)”"
                + error.explanation(depth: depth)
        case .prerequisiteFailed(let operation, let condition, let prerequisite, let error):
            "The operation “\(operation)” did not run, because “\(prerequisite)”, which its condition “\(condition)” needs,"
                + error.explanation(of: prerequisite, depth: depth)
        case .satisfied(let operation, let condition):
            "The condition “\(condition)” of the operation “\(operation)” is satisfied."
        }
    }

    var inside: (name: String, error: any Error)? {
        switch self {
        case .failed(_, let condition, let error): (condition, error)
        case .prerequisiteFailed(_, _, let prerequisite, let error): (prerequisite, error)
        case .satisfied: nil
        }
    }
}
