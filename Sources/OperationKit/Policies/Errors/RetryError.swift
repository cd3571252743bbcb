public import Foundation

/// Why an operation was not attempted, or not once more, although its policy would allow it.
///
/// An operation whose attempts have all failed ends with the error of the last one, and not with this.
public enum RetryError: Error {
    /// The policy of a retry, repetition or hedge makes no sense. `problem` says what is wrong with it. No attempt was made. Code 1.
    case invalidPolicy(operation: String, problem: String)
    /// The shared budget does not allow another attempt. `error` is that of the last one. Code 2.
    case budgetExhausted(operation: String, attempts: Int, error: any Error)
    /// The operation that was made for an attempt had been started, or was that of an earlier attempt. Code 3.
    case operationReused(operation: String, attempt: Int)
}

extension RetryError: LocalizedError, CustomNSError, NestingError {
    var code: Int {
        switch self {
        case .invalidPolicy: 1
        case .budgetExhausted: 2
        case .operationReused: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .invalidPolicy(let operation, let problem):
            "The operation “\(operation)” did not run, because of its policy: \(problem)."
        case .budgetExhausted(let operation, let attempts, let error):
            "The operation “\(operation)” was not tried again after \(attempts == 1 ? "1 attempt" : "\(attempts) attempts"), because the retry budget is exhausted. The last one"
                + error.explanation(depth: depth)
        case .operationReused(let operation, let attempt):
            "Call \(attempt) of the closure of “\(operation)” returned an operation that was used before. Create a new one each time."
        }
    }

    var inside: (name: String, error: any Error)? {
        if case .budgetExhausted(let operation, _, let error) = self { (operation, error) } else { nil }
    }

    var cancellationAnswer: CancellationAnswer {
        guard let error = inside?.error else { return .known(false) }
        // Only a failure exhausts a budget. So nested budgets are not followed to their ends, once more at each level.
        return error is RetryError ? .known(false) : .sameAs(error)
    }
}
