import Foundation

/// The end of a child that did not succeed. A class, so that the end of a child that does carries only `nil`.
final class ChildFailure: Sendable {
    let report: SuboperationError
    let operation: Operation
    /// What kept the child from running; `nil` if the child failed by itself.
    let cause: BlockingCause?
    /// Whether the error stands for a cancellation. Its type may be a user's, so this is read without the lock.
    let isCancellation: Bool

    init(_ report: SuboperationError, of operation: Operation, cause: BlockingCause? = nil, isCancellation: Bool) {
        self.report = report
        self.operation = operation
        self.cause = cause
        self.isCancellation = isCancellation
    }
}

/// What a composite reports of its children.
struct ChildFailures: Sendable {
    /// One failure for each cause.
    var errors: [SuboperationError] = []
    /// What is responsible for all of them, if no child failed by itself, and each cause is outside the composite: the
    /// cause of the first one.
    var cause: FailureCause?
}

/// The failures of the children of a composite, and what they mean for the others.
///
/// One cause is one failure: a child that did not run because of another operation is counted with the failure of that
/// one. So is a composite in which nothing else went wrong. If that operation reports no failure here, because it is no
/// child, or because it recovered from what happened inside it, the first child that it kept from running is reported
/// instead.
struct FailureCollection {
    /// What counts as a failure, and what the first one means.
    struct Rules {
        let policy: FailurePolicy
        /// Whether a child that was cancelled counts as one that failed, as long as the others are not cancelled. Failures
        /// come in the order in which they happened then, and each counts for itself.
        let countsCancellations: Bool
    }

    /// An operation that failed, and the children that did not run because of it.
    private struct Cause {
        let identifier: ObjectIdentifier
        /// Another operation may get the identifier of one that is gone.
        private(set) weak var operation: Operation?
        /// Its own failure, if it is a child and has reported one.
        var failure: SuboperationError?
        /// The first of the children that did not run.
        var firstBlocked: Blocked?
        var blockedCount = 0

        init(_ operation: Operation) {
            identifier = ObjectIdentifier(operation)
            self.operation = operation
        }

        /// The failure to report: that of the operation itself, or of the first child that it kept from running.
        func report(siblingCount: Int) -> SuboperationError? {
            guard let reported = failure ?? firstBlocked?.report else { return nil }
            return SuboperationError(
                name: reported.name, index: reported.index, error: reported.outcomeError, siblingCount: siblingCount,
                blockedCount: failure == nil ? blockedCount - 1 : blockedCount)
        }
    }

    /// A child that did not run.
    struct Blocked {
        let report: SuboperationError
        /// What is responsible, if that is outside. It is held because the composite may pass it on.
        let outsideCause: FailureCause?
    }

    let rules: Rules
    private var causes: [Cause] = []
    /// The indices of the causes. Created when the first child did not run because of another operation.
    private var indices: [ObjectIdentifier: Int]?
    /// Reports that are not needed, to be released after unlocking: the types of their errors may be users' own.
    private var discarded: [Blocked] = []

    init(rules: Rules) {
        self.rules = rules
    }

    /// Adds the end of a child, if it counts as a failure.
    ///
    /// - Parameters:
    ///   - failure: The child and its error.
    ///   - isCancelling: Whether the children are being cancelled, or are cancelled.
    /// - Returns: Whether the others have to be cancelled.
    mutating func add(_ failure: ChildFailure, isCancelling: Bool) -> Bool {
        if failure.isCancellation, !rules.countsCancellations || isCancelling { return false }
        if let cause = failure.cause, !rules.countsCancellations {
            addBlocked(failure.report, by: cause)
        } else {
            causes[index(of: failure.operation)].failure = failure.report
        }
        return rules.policy == .cancelRemaining && !isCancelling
    }

    private mutating func addBlocked(_ report: SuboperationError, by cause: BlockingCause) {
        if indices == nil {
            let identifiers = causes.enumerated().map { ($1.identifier, $0) }
            indices = Dictionary(identifiers, uniquingKeysWith: { _, last in last })
        }
        let index = index(of: cause.operation)
        causes[index].blockedCount += 1
        if let first = causes[index].firstBlocked, first.report.index < report.index { return }
        let outsideCause: FailureCause? = if case .outside(let cause) = cause { cause } else { nil }
        let blocked = Blocked(report: report, outsideCause: outsideCause)
        if let later = exchange(&causes[index].firstBlocked, with: blocked) { discarded.append(later) }
    }

    /// The index of an operation among the causes, to which it is added if it is not there. As long as no child is
    /// known that did not run because of another operation, each operation comes only once.
    ///
    /// The caller holds the operation. So a cause with its identifier that is still alive is this operation, and
    /// releasing the reference here cannot free it.
    private mutating func index(of operation: Operation) -> Int {
        let identifier = ObjectIdentifier(operation)
        if let index = indices?[identifier], causes[index].operation === operation { return index }
        indices?[identifier] = causes.count
        causes.append(Cause(operation))
        return causes.count - 1
    }

    /// Takes the failures, once all children have ended.
    ///
    /// - Parameter count: How many children there were.
    /// - Returns: The failures, in the order of the children, or in that in which they happened; and what has to be released
    ///   after unlocking.
    mutating func take(ofChildren count: Int) -> (failures: ChildFailures, discarded: [Blocked]) {
        if causes.isEmpty { return (ChildFailures(), []) }
        var failures = ChildFailures(errors: causes.compactMap { $0.report(siblingCount: count) }, cause: outsideCause)
        let discarded = discarded + causes.compactMap(\.firstBlocked)
        self = FailureCollection(rules: rules)
        if !rules.countsCancellations { failures.errors.sort { $0.index < $1.index } }
        return (failures, discarded)
    }

    /// The cause of the first child that did not run, if there is nothing but such children and causes outside.
    private var outsideCause: FailureCause? {
        var first: Blocked?
        for cause in causes {
            guard cause.failure == nil, let blocked = cause.firstBlocked, blocked.outsideCause != nil else {
                return nil
            }
            if (first?.report.index ?? .max) > blocked.report.index { first = blocked }
        }
        return first?.outsideCause
    }
}
