public import Foundation

/// Finds operations that never finish, and others that are not used as they should be.
///
/// An ``AsyncOperation`` that is never finished never ends, and neither does what waits for it. If it is still
/// referenced, the `debugDescription` of the compound around it shows it (`po compound`), and
/// ``operations(executingLongerThan:)`` lists it. If it is not, it can never be finished, and ``handler``
/// receives a ``MisuseReport``.
///
/// How much is recorded is the ``level-swift.type.property`` of the process.
public enum OperationDiagnostics {
    /// How much is recorded when an operation starts.
    public enum Level: String, Hashable, Sendable {
        /// Nothing. Descriptions have no ages, and no operation is reported.
        case off
        /// When and where it started. Costs one small object for each operation that executes.
        case starts
        /// The call stack of its start, too, and all operations that are executing can be listed. Slow: meant for the
        /// search for a mistake.
        case all
    }

    /// How much this process records: what the environment variable `OPERATIONKIT_DIAGNOSTICS` says, `off`, `starts` or
    /// `all`. Without it, `starts` if the library was built for debugging, and `off` otherwise.
    ///
    /// The variable is read once, at the first start at the latest. To decide it in code, call `setenv` before.
    public static let level = Level(rawValue: ExecutionRecording.current.rawValue) ?? .off

    /// Called with each ``MisuseReport``. The default handler prints the description to standard error.
    ///
    /// Called on a queue of its own, one report after the other, some time after the mistake. Nothing is locked, so the
    /// handler may do whatever it likes; further reports wait until it returns. It may be replaced at any time; the new
    /// handler gets the reports that come later. With `nil`, and at the level ``Level/off``, there are no reports.
    ///
    /// Releasing an operation while it is executing is a mistake in any case: its work goes on with no operation left
    /// to finish, and what depends on it never starts.
    public static var handler: (@Sendable (MisuseReport) -> Void)? {
        get { MisuseReporter.shared.handler }
        set { MisuseReporter.shared.handler = newValue }
    }

    /// The operations that are executing and have been for longer than a time, oldest first.
    ///
    /// Empty unless the ``level-swift.type.property`` is ``Level/all``. A composite is executing until its last child
    /// has ended, so it is in the list, too.
    ///
    /// Complexity: O(n log n) in the operations that are executing.
    ///
    /// - Parameter age: How long an operation must have been executing to be returned.
    /// - Returns: The operations. A caller that keeps them keeps them alive.
    public static func operations(executingLongerThan age: Duration) -> [AsyncOperation] {
        ExecutionRecording.registry?.operations(executingLongerThan: age, at: .now) ?? []
    }

    /// The operations of a queue that have not finished, with a line for each: its state, or why it has not started.
    ///
    /// ```text
    /// queue “uploads”: limit 1, 3 operations
    ///   “login”: executing for 31 s
    ///   “upload”: ready, but the limit of 1 of the queue is reached
    ///   “notify”: waiting for “upload”, which has not been started
    /// ```
    ///
    /// Those that are executing come first; composites have a line for each child, too. What `debugDescription` of an
    /// ``AsyncOperation`` says of limits, overrides and threads holds here. Works at every level, and for operations of
    /// every class.
    ///
    /// Complexity: linear in the operations of the queue.
    ///
    /// - Parameter queue: The queue. Not changed, and not kept alive.
    /// - Returns: The lines.
    public static func description(of queue: OperationQueue) -> String {
        OperationTree(queue, at: .now).text
    }

    /// Where an operation was started that is executing: the name of the operation queue, or of the thread.
    ///
    /// - Parameter operation: The operation.
    /// - Returns: A text with the name of the queue or the thread. `nil` if the operation is not executing, or has called its
    ///   `asyncCompletionBlock`, or if the ``level-swift.type.property`` is ``Level/off``.
    public static func origin(of operation: AsyncOperation) -> String? {
        operation.withState { $0.execution }?.origin
    }

    /// The call stack of the start of an operation that is executing.
    ///
    /// - Parameter operation: The operation.
    /// - Returns: The symbols. Empty if the operation is not executing, or if the ``level-swift.type.property`` is not
    ///   ``Level/all``.
    public static func callStack(of operation: AsyncOperation) -> [String] {
        operation.withState { $0.execution }?.callStack ?? []
    }
}

// What the other products of the package ask beside the public interface.
extension OperationDiagnostics {
    /// The queues with operations that have not been started, of those on which operations have been, or are awaited. None if the
    /// ``level-swift.type.property`` is ``Level/off``.
    package static var queuesWithUnstarted: [OperationQueue] {
        KnownQueues.shared.queues.filter { $0.addedOperations.contains { !$0.hasBeenStarted } }
    }
}

extension AsyncOperation {
    /// What the operation does, as in its `debugDescription`, without times.
    package var activityInMessages: String { status(at: nil).text }

    /// How far its children have come, in a text that changes when one ends, also if it has no weight.
    package var childrenProgress: String {
        "\((children as? ChildScheduler)?.count.finished ?? 0) \(children?.fraction ?? 0)"
    }

    /// Whether it consists of operations, and not of closures.
    package var consistsOfOperations: Bool { children is ChildScheduler }

    /// How many of its children run at the same time, if that is limited.
    package var childLimit: Int? {
        (children as? ChildScheduler).flatMap { $0.limit < 0 ? nil : $0.limit }
    }

    /// The children that have not finished, in the order in which they were added, with what messages call them.
    ///
    /// - Parameter count: How many of them are returned.
    /// - Returns: The children, how many others there are, and remarks on all of them. `nil` if it is no composite.
    package func unfinishedChildren(
        atMost count: Int
    ) -> (children: [(operation: Operation, name: String)], omitted: Int, remarks: [String])? {
        guard let snapshot = ownChildren?.snapshot(atMost: count) else { return nil }
        let children = snapshot.children.sorted { $0.index < $1.index }.map {
            ($0.operation, $0.operation.displayName(at: $0.index))
        }
        return (children, snapshot.omitted, snapshot.summary)
    }
}
