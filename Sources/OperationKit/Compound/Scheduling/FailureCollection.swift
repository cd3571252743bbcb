import Foundation

/// The end of a child that did not succeed. A class, so that the end of a child that does carries only `nil`.
final class ChildFailure: Sendable {
    let report: SuboperationError
    let operation: Operation
    /// What kept the child from running; `nil` if the child failed by itself.
    let cause: RootCause?
    /// Whether the error stands for a cancellation. Its type may be a user's, so this is read without the lock.
    let isCancellation: Bool

    init(_ report: SuboperationError, of operation: Operation, cause: RootCause? = nil, isCancellation: Bool) {
        self.report = report
        self.operation = operation
        self.cause = cause
        self.isCancellation = isCancellation
    }
}

/// What a composite reports of its children.
struct ChildFailures {
    /// One failure for each cause.
    var errors: [SuboperationError] = []
    /// What is responsible for all of them, if no child failed by itself, and each cause is outside the composite: the
    /// cause of the first one.
    var cause: RootCause?

    /// The error of a composite that reports its children's failures together, if there is one.
    func error(name: String, isCancelled: Bool, reason: (any Error)?) -> CompoundOperationError? {
        if isCancelled { return .cancelled(name: name, errors: errors, reason: reason) }
        return errors.isEmpty ? nil : .suboperationFailure(name: name, errors: errors)
    }

    /// The outcome of such a composite. The reason of its cancellation is marked if it says no more than that.
    func outcome(name: String, isCancelled: Bool, reason: (any Error)?) -> Lifecycle.Outcome {
        let error = error(name: name, isCancelled: isCancelled, reason: reason?.unmarked)
        guard let error else { return .success(()) }
        // What is responsible for all failures is responsible for this one, unless the composite has gone wrong itself, too.
        guard let cause, reason?.isMarked != false else { return .failure(error) }
        return .failure(SkippedError(error: error, cause: cause))
    }
}

/// The failures of the children of a composite, and what they mean for the others.
///
/// One cause is one failure: a child that did not run because of another operation is counted with the failure of that
/// one. So is a composite in which nothing else went wrong. If that operation reports no failure here, because it is no
/// child, or because it recovered from what happened inside it, the first child that it kept from running is reported
/// instead.
struct FailureCollection {
    /// An operation that failed, and the children that did not run because of it.
    private struct Cause {
        /// Another operation may get the identifier of one that is gone.
        private(set) weak var operation: Operation?
        /// Its own failure, if it is a child and has reported one.
        var failure: SuboperationError?
        /// The first of the children that did not run.
        var firstBlocked: SuboperationError?
        var blockedCount = 0

        /// The failure to report: that of the operation itself, or of the first child that it kept from running.
        func report(siblingCount: Int) -> SuboperationError? {
            var reported = failure ?? firstBlocked
            reported?.siblingCount = siblingCount
            reported?.blockedCount = failure == nil ? blockedCount - 1 : blockedCount
            return reported
        }
    }

    private let policy: FailurePolicy
    /// Whether a child that was cancelled counts as one that failed, as long as the others are not cancelled. Failures
    /// come in the order in which they happened then, and each counts for itself.
    private let countsCancellations: Bool
    private var causes: [Cause] = []
    private var indices: [ObjectIdentifier: Int] = [:]
    /// The cause of the first child that did not run, and the child's index, as long as all causes are outside the composite.
    private var outsideCause: (cause: RootCause, index: Int)?
    /// Whether a child has failed by itself, or did not run because of another one. So nothing is passed on.
    private var hasCauseInside = false
    /// What is not needed any more, to be released after unlocking: the types of errors and operations may be users' own.
    var discarded: [any Sendable] = []

    init(policy: FailurePolicy, countsCancellations: Bool = false) {
        self.policy = policy
        self.countsCancellations = countsCancellations
    }

    /// Adds the end of a child, if it counts as a failure.
    ///
    /// - Parameters:
    ///   - failure: The child and its error.
    ///   - isCancelling: Whether the children are being cancelled, or are cancelled.
    /// - Returns: Whether the others have to be cancelled.
    mutating func add(_ failure: ChildFailure, isCancelling: Bool) -> Bool {
        if failure.isCancellation, !countsCancellations || isCancelling { return false }
        if let cause = failure.cause, !countsCancellations {
            addBlocked(failure.report, by: cause)
        } else {
            discard(exchange(&causes[index(of: failure.operation)].failure, with: failure.report))
            addCauseInside()
        }
        return policy == .cancelRemaining && !isCancelling
    }

    private mutating func addBlocked(_ report: SuboperationError, by cause: RootCause) {
        if !cause.isOutside {
            addCauseInside()
        } else if !hasCauseInside, report.index < outsideCause?.index ?? .max {
            discard(exchange(&outsideCause, with: (cause, report.index))?.cause)
        }
        let index = index(of: cause.operation)
        causes[index].blockedCount += 1
        if let first = causes[index].firstBlocked, first.index < report.index { return }
        discard(exchange(&causes[index].firstBlocked, with: report))
    }

    private mutating func addCauseInside() {
        hasCauseInside = true
        discard(outsideCause.take()?.cause)
    }

    private mutating func discard(_ value: (any Sendable)?) {
        if let value { discarded.append(value) }
    }

    /// The index of an operation among the causes, to which it is added if it is not there. As long as no child is
    /// known that did not run because of another operation, each operation comes only once.
    ///
    /// The caller holds the operation. So a cause with its identifier that is still alive is this operation, and
    /// releasing the reference here cannot free it.
    private mutating func index(of operation: Operation) -> Int {
        let identifier = ObjectIdentifier(operation)
        if let index = indices[identifier], causes[index].operation === operation { return index }
        indices[identifier] = causes.count
        causes.append(Cause(operation: operation))
        return causes.count - 1
    }

    /// Takes the failures, once all children have ended.
    ///
    /// - Parameter count: How many children there were.
    /// - Returns: The failures, in the order of the children, or in that in which they happened.
    mutating func take(ofChildren count: Int) -> ChildFailures {
        if causes.isEmpty { return ChildFailures() }
        var failures = ChildFailures(errors: causes.compactMap { $0.report(siblingCount: count) })
        failures.cause = outsideCause?.cause
        let discarded = discarded + causes.compactMap(\.firstBlocked)
        self = FailureCollection(policy: policy, countsCancellations: countsCancellations)
        self.discarded = discarded
        if !countsCancellations { failures.errors.sort { $0.index < $1.index } }
        return failures
    }
}
