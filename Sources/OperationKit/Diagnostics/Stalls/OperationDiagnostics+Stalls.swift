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
    ///     “upload”: waiting for “login”, executing for 30 s
    /// ```
    ///
    /// Watched is every `AsyncOperation` in the process that starts from now on, in builds of every kind and at every
    /// ``level-swift.type.property``. The time begins with the start, so waiting for conditions and resources counts. An operation
    /// that was cancelled, because of its ``AsyncOperation/timeout`` for example, and does not end is reported in the same way.
    ///
    /// A composite is no stall of its own as long as something goes on inside it, but in the report of each operation that stalls there.
    /// It is reported if it has executed for longer than the time, and for at least the time no `AsyncOperation` in it
    /// has executed and nothing in it has ended: it is suspended, for example, or what its children depend on does not end. So
    /// may be one whose only child is an operation of another class, as those are not watched.
    ///
    /// The handler is called on a queue of its own, one report after the other, with nothing locked: it may block, and do
    /// with operations what it likes. Operations that finish before it is their turn are not reported. Nothing is
    /// kept alive by being watched. Several calls report independently of each other.
    ///
    /// May be called on any thread. Traps if the time is zero or less, because then everything would be a stall.
    ///
    /// Complexity: O(log n) for each of n operations that are executing, when it starts and when it ends. One deadline of
    /// the clock serves all of them.
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
        precondition(threshold > .zero, "OperationKit: operations can only stall after a time that is more than zero")
        let watcher = StallWatcher(threshold: threshold, clock: clock, handler: handler ?? StallWatcher.print)
        AsyncOperation.addGlobalObserver(watcher)
        return StallMonitor(watcher)
    }
}

/// Ends the reports of ``OperationDiagnostics/reportStalls(longerThan:clock:handler:)``.
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

    /// The number of operations that are watched.
    var watchedCount: Int { watcher.withLock(\.self)?.count ?? 0 }

    /// Waits until the reports up to now have been handed over.
    func waitForReports() {
        watcher.withLock(\.self)?.waitForReports()
    }
}
