import Foundation

/// The description of one operation in one line, as a value.
struct OperationSummary: Equatable {
    let name: String
    let status: OperationStatus
    let isCancelled: Bool
    /// Why it has not started.
    let reason: String?
    /// Further remarks, such as how many children have ended.
    let remarks: [String]

    var text: String {
        let parts = (isCancelled ? ["cancelled"] : []) + [reason ?? status.text] + remarks
        return "“\(name)”: " + parts.joined(separator: ", ")
    }
}

extension Operation {
    /// That the operation was cancelled because of its timeout, if so.
    fileprivate var timeoutRemark: [String] {
        let reason = (self as? AsyncOperation)?.withState { $0.lifecycle.cancellationReason }
        guard let error = reason as? OperationTimeoutError else { return [] }
        return ["longer than its timeout of \(error.timeout)"]
    }
}

extension OperationSummary {
    /// Creates a summary from what the operation says of itself, so callers must not hold a lock.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - name: Another name than the one that the operation is usually shown with.
    ///   - remarks: What else is known of the operation.
    ///   - now: The time up to which elapsed times are measured.
    ///   - reason: Says why an operation that has not started has not. Gets what it waits for.
    init(
        _ operation: Operation, name: String? = nil, remarks: [String] = [], at now: ContinuousClock.Instant,
        reason: (DependencyChainDescription?) -> String? = { $0?.text }
    ) {
        status = operation.status(at: now)
        self.name = name ?? operation.displayName
        isCancelled = operation.isCancelled && status != .finished
        self.reason = status == .notStarted ? reason(DependencyChainDescription(of: operation, at: now)) : nil
        self.remarks = (isCancelled ? operation.timeoutRemark : []) + remarks
    }
}
