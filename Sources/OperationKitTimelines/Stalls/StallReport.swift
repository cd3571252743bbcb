import Foundation
public import OperationKit

extension OperationDiagnostics {
    /// Reports operations that execute for longer than a time: each once, while it executes, with what it waits for.
    ///
    /// ```swift
    /// let stalls = OperationDiagnostics.reportStalls(longerThan: .seconds(30)) { report in
    ///     print(report)
    /// }
    /// // … when that is not wanted any more:
    /// stalls.stop()
    /// ```
    ///
    /// ```text
    /// OperationKit: “login” (Login) has not finished 30 s after its start: executing. It was started on the queue “Sync”.
    ///   “Sync”: executing for 30 s, 0 of 2 children have ended
    ///     “login”: executing for 30 s
    ///     “upload”: waiting for “login”, which is executing for 30 s
    /// ```
    ///
    /// Watched is every `AsyncOperation` in the process that starts from now on, in builds of every kind and at every
    /// ``/OperationKit/OperationDiagnostics/level-swift.type.property``. The time begins with the start, so waiting for conditions and resources counts. An operation
    /// that was cancelled, because of its `timeout` for example, and does not end is reported in the same way.
    ///
    /// A composite is no stall of its own as long as something goes on inside it, but is described in the report of the first operation that
    /// stalls there, and named in those of others at the same time.
    /// It is reported if it has executed for longer than the time, and for at least the time no `AsyncOperation` in it
    /// has executed and nothing in it has ended: it is suspended, for example, or what its children depend on does not end. So
    /// may be one whose only child is an operation of another class, as those are not watched: the end of one is noticed up to a
    /// sixteenth of the time later.
    ///
    /// The handler is called on a queue of its own, one report after the other, with nothing locked: it may block, and do
    /// with operations what it likes. Operations that finish before it is their turn are not reported. Nothing is
    /// kept alive by being watched. Several calls report independently of each other. No report follows on an operation of another class
    /// that holds the lock which its `isFinished` takes, and does not answer.
    ///
    /// May be called on any thread. Traps if the time is zero or less, because then everything would be a stall.
    ///
    /// Complexity: constant for the start and the end of an operation. As long as some execute, all of them are examined, 16
    /// times in the threshold; a report may come a sixteenth of it later.
    ///
    /// - Parameters:
    ///   - threshold: How long an operation may execute.
    ///   - clock: What the time is measured with.
    ///   - handler: Called with each report. `nil` prints its description to standard error.
    /// - Returns: What ends the reports. They go on if it is released.
    @discardableResult
    public static func reportStalls(
        longerThan threshold: Duration, clock: any Clock<Duration> = ContinuousClock(),
        handler: (@Sendable (StallReport) -> Void)? = nil
    ) -> StallMonitor {
        precondition(
            threshold > .zero,
            "OperationKit: operations can only stall after a time that is more than zero, not \(threshold)")
        let watcher = StallWatcher(
            threshold: threshold, clock: clock,
            handler: handler ?? { writeToStandardError("\($0)") })
        AsyncOperation.addGlobalObserver(watcher)
        return StallMonitor(watcher)
    }
}

/// Ends the reports of ``OperationKit/OperationDiagnostics/reportStalls(longerThan:clock:handler:)``.
public final class StallMonitor: Sendable {
    private let watcher: Locked<StallWatcher?>

    init(_ watcher: StallWatcher) {
        self.watcher = Locked(watcher)
    }

    /// Ends the reports, and releases the handler and the clock.
    ///
    /// May be called on any thread, also by the handler, and any number of times; all calls but the first do nothing. A report
    /// that is being made at this moment may still be handed over.
    public func stop() {
        watcher.withLock { $0.take() }?.stop()
    }
}

/// An operation that has executed for longer than ``OperationKit/OperationDiagnostics/reportStalls(longerThan:clock:handler:)`` allows.
///
/// It holds texts, not the operation: keeping a report keeps nothing alive.
public struct StallReport: Sendable, CustomStringConvertible {
    /// Identifies the operation, as in its events.
    public let operation: OperationID
    /// The name of the operation, or what errors call it: its type, in most cases.
    public let name: String
    /// Its type.
    public let type: AsyncOperation.Type
    /// The time that has passed since it started, measured with the clock of the reports.
    public let age: Duration
    /// What it does, as in its `debugDescription`, without times: “executing”, “waiting for exclusive access to
    /// “database”, held by “import””, “told to end, waiting for its children”, “delivering its outcome”.
    public let state: String
    /// Whether it was cancelled, which its work ignores, or takes long to do.
    public let isCancelled: Bool
    /// The timeout because of which it was cancelled: its own, or that of a composite around it. `nil` if there was none.
    public let exceededTimeout: Duration?
    /// Where it was started: the name of the operation queue, or of the thread. `nil` if the
    /// ``/OperationKit/OperationDiagnostics/level-swift.type.property`` is ``/OperationKit/OperationDiagnostics/Level/off``, and from the
    /// call of its `asyncCompletionBlock` on.
    public let origin: String?
    /// The call stack of its start, if the ``/OperationKit/OperationDiagnostics/level-swift.type.property`` is
    /// ``/OperationKit/OperationDiagnostics/Level/all``. Otherwise it is empty.
    public let callStack: [String]
    /// The `debugDescription` of the outermost composite around the operation, or of the operation itself if there is none.
    /// It says what the others in there wait for. Of those in one composite that are reported together, the first has it, and the others
    /// have a line that names the composite: in an outage there may be as many reports as lines.
    public let tree: String

    private let title: String
    private let isComposite: Bool
    /// The reason of the cancellation, other than a timeout.
    private let reason: String?

    /// A sentence about the operation, and below it the tree, unless there is no composite. The last is the call stack.
    public var description: String {
        let words = [
            isCancelled ? "cancelled" + (reason.map { " (“\($0)”)" } ?? "") : nil, state,
            exceededTimeout.map { "longer than the timeout of \($0)" },
        ].compactMap(\.self)
        let remark = title == name ? "" : " (\(title))"
        let sentence =
            "OperationKit: “\(name)”\(remark) has not finished \(age.shortText) after its start: "
            + words.joined(separator: ", ") + "." + (origin.map { " It was started on \($0)." } ?? "")
        return
            ([sentence.onOneLine] + (isComposite ? tree.split(separator: "\n").map { "  \($0)" } : [])
            + callStack.map { "    " + $0 }).joined(separator: "\n")
    }

    /// Asks the operation and those around it, so nothing may be locked. `nil` if it has finished.
    ///
    /// Complexity: that of `debugDescription` of the outermost composite, unless that has been described.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - id: Its identifier.
    ///   - age: The time since its start.
    ///   - described: The outermost composites that have been described, to which its own is added.
    init?(_ operation: AsyncOperation, _ id: OperationID, age: Duration, described: inout Set<OperationID>) {
        if operation.isFinished { return nil }
        self.operation = id
        self.age = age
        name = operation.displayName
        title = operation.titleInMessages
        type = Swift.type(of: operation)
        state = operation.activityInMessages
        isCancelled = operation.isCancelled
        origin = OperationDiagnostics.origin(of: operation)
        callStack = OperationDiagnostics.callStack(of: operation)
        var outermost = operation
        var cancellationReason = isCancelled ? operation.cancellationReason : nil
        while let composite = outermost.enclosingComposite {
            outermost = composite
            if isCancelled { cancellationReason = cancellationReason ?? composite.cancellationReason }
        }
        exceededTimeout = (cancellationReason as? OperationTimeoutError)?.timeout
        reason = exceededTimeout == nil ? cancellationReason?.eventText : nil
        isComposite = outermost.isComposite
        tree =
            described.insert(outermost.observationID).inserted
            ? outermost.debugDescription : "“\(outermost.displayName)”: see an earlier report".onOneLine
    }
}
