public import Foundation

extension Sequence where Element: OutputOperation {
    /// Returns an operation that runs these operations, and whose output is all their outputs, in the order of the sequence.
    ///
    /// ```swift
    /// let pages = (1...3).map { page in
    ///     IOTaskOperation<Int, String>(name: "page \(page)") { "text of page \($0)" }.with(input: page)
    /// }
    /// let book = pages.gathered(maxConcurrentOperationCount: 2).map { $0.joined(separator: "\n") }
    /// let text = try await OperationQueue().run(book)
    /// ```
    ///
    /// The operations become the children of the new one, as those of a ``CompoundOperation`` do: on threads of a private queue,
    /// as many at the same time as the limit allows, and after their dependencies, which may be among them. Each has its input,
    /// is part of no other operation, and is started by the new one only. If one is there twice, or part of another operation,
    /// the new one ends with ``CompoundAdditionError/alreadyAdded(operation:compound:)`` when it is started, and none of them
    /// runs. Without operations the output is an empty array.
    ///
    /// The new operation ends after all of them, on the thread on which a compound of them would, and releases them then:
    ///
    /// | What happens | How the new operation ends |
    /// |---|---|
    /// | all have an output | with these, even if it was cancelled meanwhile, but not before its start |
    /// | some failed, or have no output | with one ``CompoundOperationError/suboperationFailure(name:errors:)`` |
    /// | it is cancelled, and with it all that have not finished | with ``CompoundOperationError/cancelled(name:errors:reason:)`` |
    /// | some were cancelled by themselves, and none failed | with that error, too |
    ///
    /// All operations count equally in ``AsyncOperation/progress``.
    ///
    /// - Parameters:
    ///   - name: The name of the new operation, for messages and errors.
    ///   - maxConcurrentOperationCount: How many of them may run at the same time. The default leaves it to the system. Traps
    ///     if it is 0, which nothing could raise, or another negative number.
    ///   - failurePolicy: What the first failure means for the others. An output that is missing is noticed at the end.
    /// - Returns: The new operation.
    public func gathered(
        name: String? = nil,
        maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        failurePolicy: FailurePolicy = .continueAll
    ) -> IOOperation<Void, [Element.Output]> {
        let title = name ?? "gathered()"
        CompoundOperation.requireLimit(maxConcurrentOperationCount, of: title)
        precondition(maxConcurrentOperationCount != 0, "OperationKit: the limit of “\(title)” cannot be 0")
        return GatheringOperation(
            Array(self), name: name, ChildScheduler(limit: maxConcurrentOperationCount, failurePolicy: failurePolicy))
    }
}

/// Runs operations, and collects their outputs.
private final class GatheringOperation<Source: OutputOperation>: IOOperation<Void, [Source.Output]>,
    @unchecked Sendable
{
    /// Set until the end. Freed before the scheduler, which takes long chains apart.
    private var sources: [Source]
    private let scheduler: ChildScheduler

    init(_ sources: [Source], name: String?, _ scheduler: ChildScheduler) {
        self.scheduler = scheduler
        self.sources = sources
        super.init()
        self.name = name
        scheduler.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned scheduler] in scheduler.run() },
                finished: { [unowned self] failures, list in sourcesFinished(failures: failures, &list) },
                countsChildren: true))
        scheduler.addInitial(sources, to: self)
    }

    override class var typeTitle: String { "gathered \(Source.typeTitle)" }

    override func main(input: Void) {}

    private func sourcesFinished(failures: ChildFailures, _ list: inout Trampoline) {
        let name = displayName
        // The operations are released before the end, and after unlocking: what they hold may run arbitrary code when it is freed.
        let ended = lock.withLock { exchange(&sources, with: []) }
        let results = ended.map { $0.error == nil ? $0.output : nil }
        let outputs = results.compactMap(\.self)
        let isComplete = outputs.count == results.count && hasReachedMain
        var failures = failures
        // Only a class of the user's own succeeds without an output.
        for (index, source) in ended.enumerated()
        where results[index] == nil && source.error == nil && !source.isCancelled {
            failures.cause = nil
            failures.errors.append(
                SuboperationError(
                    name: source.displayName(at: index), index: index, error: source.missingOutput,
                    siblingCount: ended.count))
        }
        failures.errors.sort { $0.index < $1.index }
        childrenFinished(
            withResult: { isCancelled, reason in
                if isComplete { return .success(outputs) }
                let isCancelled = isCancelled || failures.errors.isEmpty
                return failures.outcome(name: name, isCancelled: isCancelled, reason: reason).map { outputs }
            }, &list)
    }
}
