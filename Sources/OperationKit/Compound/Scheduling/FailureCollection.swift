/// The failures of the children of a composite, and what they mean for the others.
struct FailureCollection {
    /// What counts as a failure, and what the first one means.
    struct Rules {
        let policy: FailurePolicy
        /// Whether a child that was cancelled counts as one that failed, as long as the others are not cancelled. Failures
        /// come in the order in which they happened then.
        let countsCancellations: Bool

        /// Whether a child that ends with this error may have failed.
        func isFailure(_ error: any Error) -> Bool {
            if countsCancellations { return true }
            if error is CancellationError { return false }
            if case .cancelled(_, let errors, _) = error as? CompoundOperationError, errors.isEmpty { return false }
            return true
        }
    }

    let rules: Rules
    private var failures: [SuboperationError] = []

    init(rules: Rules) {
        self.rules = rules
    }

    /// Adds the failure of a child.
    ///
    /// - Parameters:
    ///   - failure: The child and its error.
    ///   - isCancelling: Whether the children are being cancelled, or are cancelled.
    /// - Returns: Whether the others have to be cancelled.
    mutating func add(_ failure: SuboperationError, isCancelling: Bool) -> Bool {
        if rules.countsCancellations, isCancelling, failure.error is CancellationError { return false }
        failures.append(failure)
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
