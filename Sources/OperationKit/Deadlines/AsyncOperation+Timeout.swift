public import Foundation

extension AsyncOperation {
    /// The maximum time from ``main()`` to the end of the work. `nil`, the default, for no limit.
    ///
    /// ```swift
    /// let download = TaskOperation(name: "download") { try await Task.sleep(for: .seconds(60)) }
    /// download.timeout = .seconds(5)
    /// ```
    ///
    /// An operation that takes longer is cancelled, with an ``OperationTimeoutError`` as the reason: `didCancel()` and handlers
    /// of cancellations stop the work, and it ends with that error, which is a failure. The operation ends when its work does.
    /// Any outcome other than a cancellation that the work reports meanwhile stands, success included. An operation that has
    /// been cancelled before, or has its outcome, is left alone, unless the block of a ``ThrowingBlockOperation`` goes on. The
    /// cancellation comes from a thread of the library, which is there even if work blocks the cooperative pool and all threads of
    /// dispatch queues.
    ///
    /// The time begins right before `main()`, after everything that the operation waits for first. What a retry or a repetition requires
    /// is requested for each attempt, so that wait is inside the time. A composite counts from its own `main()`, or `prepare()`, on, also
    /// while it is suspended, and ends after its children. A ``CompoundOperation`` ends with
    /// ``CompoundOperationError/cancelled(name:errors:reason:)``, whose `reason` is the error.
    ///
    /// An operation whose timeout is zero or less is cancelled in the same way instead of its `main()`, after everything that it
    /// waits for first. Set the timeout before the start. Later it has no effect, which debug builds report
    /// (``MisuseReport/latePolicy(operation:policy:)``). Time is measured with ``clock``. The deadline does not keep the
    /// operation alive, and is removed when the operation ends.
    ///
    /// Complexity: O(log n) for n deadlines of the same clock, when it begins and when it ends.
    public final var timeout: Duration? {
        get { withState { $0.gates?.timeout } }
        set {
            setPolicy("a timeout") {
                $0.timeout = newValue
                $0.beginLimit = { $0.beginTimeout() }
            }
        }
    }

    /// What the times of the operation are measured with: a `ContinuousClock`, unless another one is set before the start. Later
    /// it cannot be changed, which debug builds report (``MisuseReport/latePolicy(operation:policy:)``).
    ///
    /// It measures ``timeout`` and all other times of the operation. Children have clocks of their own, but an attempt that was given none
    /// takes that of the operation around it.
    ///
    /// One thread serves the deadlines of all operations with a `ContinuousClock`, another one those with a `SuspendingClock`, and one
    /// sleeping task at a time those with the same clock that is an object: another one when what it sleeps for has ended. Other clocks
    /// cost a task for each deadline. Where the `sleep` of a clock throws, or returns early, the time counts as over.
    public final var clock: any Clock<Duration> {
        get { withState { $0.gates?.clock }?.value ?? ContinuousClock() }
        set { setPolicy("a clock") { exchange(&$0.clock, with: Reference(newValue)) } }
    }

    /// Suspends until the operation is finished, but not longer than a certain time, and throws the error it ended with.
    ///
    /// ```swift
    /// func stop(_ download: AsyncOperation) async throws {
    ///     download.cancel()
    ///     if try await !download.finished(within: .seconds(3)) { print("still busy") }
    /// }
    /// ```
    ///
    /// When the time is over, the operation is left alone, as it is when the waiting task is cancelled. For a finished operation
    /// the call returns immediately. An operation that does not end is kept alive for the time of the wait.
    ///
    /// - Parameters:
    ///   - duration: How long to wait. With zero, or less, the call returns soon.
    ///   - clock: What the time is measured with; `nil` for the operation's ``clock``.
    /// - Returns: Whether the operation is finished, and its observers know.
    /// - Throws: ``error``, if the operation is finished. `CancellationError` when the waiting task is cancelled before.
    public final func finished(within duration: Duration, clock: (any Clock<Duration>)? = nil) async throws -> Bool {
        if !withState(\.isOver) {
            let id = TaskWaiter()
            let deadline = (clock?.timer ?? timer).arm(for: self, after: duration) {
                ($0 as? AsyncOperation)?.cancelWait(id)
            }
            let isOver = await wait(id)
            deadline.disarm()
            if !isOver {
                try Task.checkCancellation()
                return false
            }
        }
        if let error { throw error }
        return true
    }

    /// The timer for deadlines of the operation's ``clock``.
    var timer: DeadlineTimer {
        withState { $0.gates?.clock }?.value.timer ?? .continuous
    }

    /// Sets a policy, unless the operation has started: that is reported, and has no effect.
    ///
    /// - Parameters:
    ///   - policy: What the report calls it.
    ///   - change: Called with the lock held. It returns what was replaced.
    func setPolicy<Replaced>(_ policy: @autoclosure () -> String, _ change: (StartGates) -> Replaced) {
        let replaced = withState { state in
            state.lifecycle.isPending ? change(state.requiredGates()) : nil
        }
        if replaced == nil { ExecutionRecording.report(.latePolicy(operation: displayName, policy: policy())) }
        // Released after unlocking; its deinitializer may run arbitrary code.
        withExtendedLifetime(replaced) {}
    }

    /// Begins the time in which the work has to end, if that is limited.
    ///
    /// - Returns: The deadline, which is armed as long as it is held.
    private func beginTimeout() -> ArmedDeadline? {
        guard let timeout else { return nil }
        if timeout > .zero {
            // A closure that captures nothing needs no memory.
            return timer.arm(for: self, after: timeout) { ($0 as? AsyncOperation)?.timeoutExpired() }
        }
        timeoutExpired()
        return nil
    }

    private func timeoutExpired() {
        guard let timeout else { return }
        cancel(withError: OperationTimeoutError(operation: displayName, timeout: timeout))
    }
}

/// An operation took longer than its timeout.
///
/// It is a failure: `isCancellation` is false. Code 1.
public struct OperationTimeoutError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The name of the operation, or else its type.
    public let operation: String
    /// How long it was allowed to take.
    public let timeout: Duration

    /// Creates the error.
    ///
    /// - Parameters:
    ///   - operation: The name of the operation.
    ///   - timeout: How long it was allowed to take.
    public init(operation: String, timeout: Duration) {
        self.operation = operation
        self.timeout = timeout
    }

    package func text(depth: Int) -> String {
        "The operation “\(operation)” took longer than its timeout of \(timeout)."
    }

    package var remark: String? { "longer than its timeout of \(timeout)" }
}
