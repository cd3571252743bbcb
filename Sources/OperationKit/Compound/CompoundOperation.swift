public import Foundation

/// An operation that consists of others: it runs them on a private queue, and finishes when all of them have.
///
/// ```swift
/// let sync = CompoundOperation(name: "Sync", maxConcurrentOperationCount: 4)
/// for page in 1...3 {
///     try sync.addOperation(ThrowingBlockOperation(name: "page \(page)") { /* fetch it */ })
/// }
/// sync.asyncCompletionBlock = { error in print(error?.localizedDescription ?? "all in sync") }
/// OperationQueue().addOperation(sync)
/// ```
///
/// ## Children
///
/// Any `Operation` can be a child: synchronous or asynchronous, of another library, another compound. Add each once and to one
/// compound, and let only the compound start it. Children may be added before the compound starts, by ``prepare()``, and while
/// the compound runs, also from a child's own blocks before that child has finished; the compound finishes after them. It does
/// not touch their completion blocks, and releases them as they finish.
///
/// Ready children start in the order of `queuePriority`, oldest first among equals. The priority is read when the child is
/// added or when the compound starts, whichever is later. Dependencies between children and external dependencies are honored.
/// Add them before the compound starts, or before the child is added: later ones count only if the child has not started, and a
/// cycle that they close is not found. A child that overrides `isReady` has to be ready once it is cancelled. A finished child
/// releases its dependencies.
///
/// ## Errors
///
/// The errors of children that are ``FailableOperation``s, such as every ``AsyncOperation``, arrive together as
/// ``CompoundOperationError/suboperationFailure(name:errors:)``. An error whose `isCancellation` is true is no failure.
/// Nor is a child that did not run because another one failed or was cancelled, or a composite in which nothing else went
/// wrong: it is counted with the failure of that one. What the first failure means for the others is the ``FailurePolicy``.
///
/// ## Cancellation
///
/// `cancel()` cancels all children, at any depth, before it returns; called in a hook of a child that is just being cancelled, soon after.
/// No child starts its work after that; those that have not started finish without running, with their completion blocks. The compound
/// finishes after the last child, with ``CompoundOperationError/cancelled(name:errors:reason:)``, also when it is suspended or limited to
/// 0. Calling `finish(withError:)` on the compound cancels the children in the same way; the compound then finishes with that outcome.
///
/// ## Threads
///
/// Children start on threads of the private queue: `AsyncOperation`s several one after the other on the same thread, others
/// as operations of that queue. ``prepare()`` is called on the thread that starts the compound, or on another one if a
/// condition or a resource took time. The completion block is called on the thread on which the last child ended, or on
/// the one that was still in its `start()` then. No thread is blocked.
open class CompoundOperation: AsyncOperation, @unchecked Sendable {
    /// What the failure of a child means for the others.
    public typealias FailurePolicy = OperationKit.FailurePolicy

    /// What the first failure of a child means for the others.
    public final var failurePolicy: FailurePolicy { scheduler.failurePolicy }

    private let scheduler: ChildScheduler

    /// Creates a compound. An override of `name` is called meanwhile.
    ///
    /// - Parameters:
    ///   - name: Its name, for messages and errors.
    ///   - operations: Its first children. If one of them is there twice, or belongs to another compound, the compound
    ///     finishes with a ``CompoundAdditionError`` when it is started, and no child runs: all that belong to no other
    ///     compound are cancelled, and finish.
    ///   - maxConcurrentOperationCount: How many children may run at the same time. The default leaves it to the system. Traps
    ///     if it is another negative number.
    ///   - failurePolicy: What the first failure of a child means for the others.
    public init(
        name: String? = nil,
        operations: [Operation] = [],
        maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        failurePolicy: FailurePolicy = .continueAll
    ) {
        CompoundOperation.requireLimit(maxConcurrentOperationCount, of: name)
        scheduler = ChildScheduler(limit: maxConcurrentOperationCount, failurePolicy: failurePolicy)
        super.init()
        scheduler.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self] in startChildren() },
                finished: { [unowned self] failures, list in childrenFinished(failures: failures, &list) },
                countsChildren: true))
        self.name = name
        scheduler.addInitial(operations, to: self)
    }

    /// Prepares the run: the place for a subclass to add children. The default implementation does nothing.
    ///
    /// Called once, at the start and before any child, on the thread that starts the compound, or on another one if a condition or
    /// a resource took time; not at all for a compound that was cancelled or given an outcome before, or one of whose first children could
    /// not be added.
    ///
    /// - Throws: An error ends the compound: the children that are there are cancelled, and it finishes with this
    ///   error.
    open func prepare() throws {}

    /// Decides how the compound ends. The default implementation throws the error, if there is one.
    ///
    /// ```swift
    /// final class Mirrors: CompoundOperation, @unchecked Sendable {
    ///     /// One mirror is enough.
    ///     override func childrenDidFinish(_ error: CompoundOperationError?) throws {
    ///         if let error, isCancelled || error.suboperationErrors.count == 3 { throw error }
    ///     }
    /// }
    /// ```
    ///
    /// Called once, when all children have finished and none can be added any more, on the thread on which the last one ended, or on the
    /// one that was still in its `start()` then. Not called if the compound was cancelled before ``prepare()``, if that threw, if children
    /// wait in a cycle, or if it was given an outcome. A cancellation that comes while this method runs still takes effect; an error that
    /// it throws stands nevertheless, unless that is a ``CompoundOperationError`` or a cancellation. Don't call this method yourself,
    /// other than with `super`.
    ///
    /// - Parameter error: The failures of the children and the cancellation of the compound, or `nil` if there was neither.
    /// - Throws: The error with which the compound ends. If nothing is thrown, it ends with success, also if it was
    ///   cancelled or took too long before.
    open func childrenDidFinish(_ error: CompoundOperationError?) throws {
        if let error { throw error }
    }

    /// Does nothing: `start()` starts the children.
    public final override func main() {}

    /// Does nothing: `cancel()` itself cancels the children.
    public final override func didCancel() {}

    /// The quality of service of the private queue, with which the children start, whatever their own is. May change at
    /// any time, for children that start later; on Linux, a queue keeps the one with which it starts its first operation.
    /// A ``TaskOperation`` gives its own to its task.
    open override var qualityOfService: QualityOfService {
        get { super.qualityOfService }
        set {
            super.qualityOfService = newValue
            scheduler.machine.withLock { $0.queue }?.childQualityOfService = newValue
        }
    }

    private func startChildren() {
        do {
            try prepare()
        } catch {
            finish(withError: error)
        }
        scheduler.run()
    }

    /// - Returns: The outcome, and whether it is an error that was thrown in place of the report about the children.
    private func decision(
        on error: CompoundOperationError?, about failures: ChildFailures
    ) -> (outcome: Lifecycle.Outcome, isOwn: Bool) {
        var isOwn = false
        let outcome = Result { try childrenDidFinish(error) }.mapError { thrown in
            isOwn = !(thrown is CompoundOperationError || thrown.isCancellation)
            var outcome = thrown
            if let error, let cause = failures.cause {
                outcome = SkippedError(error: error, cause: cause).passingOnCause(in: thrown)
            }
            // The compound's own error has the reason, that of a child inside it has none.
            if case .cancelled(_, _, _?) = thrown as? CompoundOperationError { return outcome }
            return outcome.marked
        }
        return (outcome, isOwn)
    }

    /// All children have finished: the compound does too.
    private func childrenFinished(failures: ChildFailures, _ list: inout Trampoline) {
        let name = displayName
        let (isWorking, wasCancelled, reason) = withState {
            ($0.lifecycle.isWorking, $0.lifecycle.isCancelled, $0.lifecycle.cancellationReason)
        }
        let error = failures.error(name: name, isCancelled: wasCancelled, reason: reason)
        let decided = isWorking ? decision(on: error, about: failures) : nil
        childrenFinished(&list) { isCancelled, reason in
            // A cancellation that came meanwhile has taken effect. A failure of the compound's own says more.
            if let decided, isCancelled == wasCancelled || decided.isOwn { return decided.outcome }
            return failures.outcome(name: name, isCancelled: isCancelled, reason: reason)
        }
    }
}

extension CompoundOperation {
    /// How many children may run at the same time: 1 for one after the other, 0 for none as long as it is 0, and
    /// `OperationQueue.defaultMaxConcurrentOperationCount` for as many as the system likes.
    ///
    /// May change at any time. Children that run are not stopped by a lower limit. An asynchronous child counts until
    /// it has finished. On Linux, where children of other classes run without a limit, those that were ready begin nevertheless, as on a
    /// queue of Foundation's.
    public final var maxConcurrentOperationCount: Int {
        get { scheduler.limit }
        set {
            CompoundOperation.requireLimit(newValue, of: name)
            scheduler.limit = newValue
        }
    }

    /// Whether children are kept from starting. Those that run go on. One that another thread is just starting may still begin.
    /// On Linux, so may all ready children of other classes, if they run without a limit, as on a queue of Foundation's.
    ///
    /// May change at any time. A suspended compound that is cancelled ends nevertheless.
    public final var isSuspended: Bool {
        get { scheduler.isSuspended }
        set { scheduler.isSuspended = newValue }
    }

    /// The number of children that were added so far, those that have finished included.
    ///
    /// May be read at any time, on any thread.
    public final var operationCount: Int { scheduler.count.total }

    /// The number of children that have finished, in whatever way.
    ///
    /// May be read at any time, on any thread. The compound finishes after this number has reached ``operationCount``.
    /// `progress` counts by weights: its `completedUnitCount` is the weight of the children that have finished, and its
    /// `fractionCompleted` also counts how far the others have come.
    public final var finishedOperationCount: Int { scheduler.count.finished }

    /// Adds a child.
    ///
    /// May be called from any thread, before the start or while the compound runs. If the compound was cancelled, so is
    /// the child, and it finishes with the compound.
    ///
    /// Complexity: O(1) plus the dependencies of the child. If other children depend on it already, those that wait for
    /// it, directly or not, are searched for a cycle. If it is a composite itself, what is inside it is searched, or the
    /// composites around this one, whichever takes fewer steps.
    ///
    /// - Parameters:
    ///   - operation: An operation that the compound alone starts.
    ///   - progressWeight: Its share in the progress of the compound, in proportion to those of the other children.
    ///     Below 0 it counts as 0, above 2³¹ as 2³¹.
    /// - Throws: ``CompoundAdditionError`` if all children have finished, or if the operation is a child already.
    ///   ``CompoundOperationError/dependencyCycle(name:path:)`` if the addition would close a cycle: between children, because the
    ///   operation depends on this compound or on one that contains it, or because this compound, or one that contains it, has not started
    ///   and depends on the operation or on something inside it. The operation is unchanged then.
    /// - Precondition: The operation is not this compound, nor one that contains it.
    public final func addOperation(_ operation: Operation, progressWeight: Int64 = 1) throws {
        try scheduler.add([operation], weight: progressWeight, to: self)
    }

    /// Adds children, all of them or, if there is an error, none.
    ///
    /// - Parameters:
    ///   - operations: Operations that are started by the compound only. They may depend on each other.
    ///   - progressWeight: The weight of each child in the progress of the compound.
    /// - Throws: What ``addOperation(_:progressWeight:)`` throws, for the first operation that cannot be added.
    public final func addOperations(_ operations: some Sequence<some Operation>, progressWeight: Int64 = 1) throws {
        try scheduler.add(Array(operations), weight: progressWeight, to: self)
    }

    static func requireLimit(_ limit: Int, of name: String?) {
        precondition(
            limit >= 0 || limit == OperationQueue.defaultMaxConcurrentOperationCount,
            "OperationKit: the limit of “\(name ?? "CompoundOperation")” cannot be \(limit)")
    }
}

/// What the first failure among several operations, items or batches means for the others.
public enum FailurePolicy: Hashable, Sendable {
    /// Nothing: all of them run, and all errors are reported.
    case continueAll
    /// The first failure cancels the others, and those that are added later. The failures are reported, the cancellations
    /// are not.
    case cancelRemaining
}
