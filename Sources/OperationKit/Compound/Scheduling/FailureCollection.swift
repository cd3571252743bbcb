/// How a child ended that did not succeed. A class, because most children do.
final class ChildFailure: Sendable {
    let report: SuboperationError
    /// Whether the error stands for a cancellation. It may be of a class of the user's, so it is asked without the lock.
    let isCancellation: Bool

    init(_ report: SuboperationError, isCancellation: Bool) {
        self.report = report
        self.isCancellation = isCancellation
    }
}

/// The failures of the children of a composite, and what they mean for the others.
struct FailureCollection {
    /// What counts as a failure, and what the first one means.
    struct Rules {
        let policy: FailurePolicy
        /// Whether a child that was cancelled counts as one that failed, as long as the others are not cancelled. Failures
        /// come in the order in which they happened then.
        let countsCancellations: Bool
    }

    let rules: Rules
    private var failures: [SuboperationError] = []

    init(rules: Rules) {
        self.rules = rules
    }

    /// Adds the failure of a child, if it counts as one.
    ///
    /// - Parameters:
    ///   - failure: The child and its error.
    ///   - isCancelling: Whether the children are being cancelled, or are cancelled.
    /// - Returns: Whether the others have to be cancelled.
    mutating func add(_ failure: ChildFailure, isCancelling: Bool) -> Bool {
        if failure.isCancellation, !rules.countsCancellations || isCancelling { return false }
        failures.append(failure.report)
        return rules.policy == .cancelRemaining && !isCancelling
    }

    /// Takes the failures, once all children have ended.
    ///
    /// - Parameter count: How many children there were.
    /// - Returns: The failures, in the order of the children, or in that in which they happened.
    mutating func take(ofChildren count: Int) -> [SuboperationError] {
        let sorted = rules.countsCancellations ? failures : failures.sorted { $0.index < $1.index }
        failures = []
        return sorted.map {
            SuboperationError(name: $0.name, index: $0.index, error: $0.error, siblingCount: count)
        }
    }
}
