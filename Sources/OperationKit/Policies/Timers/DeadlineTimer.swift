import Dispatch

/// Calls closures when time has passed. One sleeping task serves all deadlines of a clock.
///
/// A timer lives as long as a deadline of it is held, or its task sleeps.
final class DeadlineTimer: Sendable {
    /// What is called, unless its target is gone.
    private struct Expiration: Sendable {
        weak var target: (any AnyObject & Sendable)?
        let expired: @Sendable (any AnyObject & Sendable) -> Void

        func call() {
            if let target { expired(target) }
        }
    }

    private struct State {
        var machine: TimerStateMachine<Expiration>
        var task: Task<Void, Never>?
    }

    private let time: TimeSource
    private let state: Locked<State>
    private let released: @Sendable () -> Void

    /// - Parameters:
    ///   - time: Says what time it is, and is slept on.
    ///   - lingers: Whether a sleep goes on when the last deadline is disarmed.
    ///   - released: Called when the timer is released.
    init(_ time: TimeSource, lingers: Bool = false, released: @escaping @Sendable () -> Void = {}) {
        self.time = time
        self.released = released
        state = Locked(State(machine: TimerStateMachine(lingers: lingers)))
    }

    deinit {
        released()
    }

    /// Calls a closure when a duration has passed, unless the deadline is disarmed before.
    ///
    /// It is called once, on a thread of a global queue, where it may block, and without a lock. Closures that are due
    /// together are called one after the other, in the order of their deadlines, and in that of their arming where these are
    /// equal.
    ///
    /// - Parameters:
    ///   - target: What the closure is about. It is not kept alive, and without it nothing is called.
    ///   - duration: The time until the deadline. With zero, or less, the closure is called soon. More than a century
    ///     counts as a century.
    ///   - expired: The closure. It is given the target, and must not capture it.
    /// - Returns: The deadline, which is armed as long as it is held.
    ///
    /// Complexity: O(log n) for n deadlines that are armed, and the same to disarm it.
    func arm<Target: AnyObject & Sendable>(
        for target: Target, after duration: Duration, expired: @escaping @Sendable (Target) -> Void
    ) -> ArmedDeadline {
        arm(forAny: target, after: duration) { target in
            if let target = target as? Target { expired(target) }
        }
    }

    /// The same for a target whose type the closure finds out itself. One that captures nothing costs no memory.
    func arm(
        forAny target: any AnyObject & Sendable, after duration: Duration,
        expired: @escaping @Sendable (any AnyObject & Sendable) -> Void
    ) -> ArmedDeadline {
        let expiration = Expiration(target: target, expired: expired)
        let deadline = time.now() + min(max(duration, .zero), .century)
        let (id, sleep) = state.withLock { $0.machine.armed(expiration, at: deadline) }
        if let sleep { begin(sleep) }
        return ArmedDeadline(id, in: self)
    }

    /// - Returns: Whether the deadline had been armed until now, so that its closure is not called.
    fileprivate func disarm(_ id: HeapElementID) -> Bool {
        let (expiration, task) = state.withLock { state in
            let (expiration, endsSleep) = state.machine.disarmed(id)
            return (expiration, endsSleep ? state.task.take() : nil)
        }
        task?.cancel()
        // The closure is released here, without the lock.
        return expiration != nil
    }

    // MARK: - Sleeping

    /// Begins a sleep in a new task, and cancels the one before.
    private func begin(_ sleep: TimerSleep) {
        let task = Task.detached(priority: .high) { await self.run(sleep) }
        let replaced = state.withLock { state in
            // Another thread may have begun an even shorter sleep meanwhile.
            state.machine.currentTask == sleep.task ? exchange(&state.task, with: task) : task
        }
        replaced?.cancel()
    }

    private func run(_ first: TimerSleep) async {
        var next: TimerSleep? = first
        while let sleep = next {
            try? await time.sleep(sleep.deadline)
            // Clocks for tests may return early, or have a time that stands still. That must not become an endless loop.
            next = sleepEnded(sleep, at: max(time.now(), sleep.deadline))
        }
    }

    /// Calls what is due.
    ///
    /// - Returns: The next sleep of the task.
    func sleepEnded(_ sleep: TimerSleep, at now: Duration) -> TimerSleep? {
        let (due, next) = state.withLock { $0.machine.woke(sleep.task, at: now) }
        if !due.isEmpty {
            // Closures may block, which the threads of tasks must not, and the next sleep begins meanwhile.
            DispatchQueue.global(qos: .userInitiated).performAsync { for expiration in due { expiration.call() } }
        }
        return next
    }

    /// The number of deadlines that are armed.
    var armedCount: Int { state.withLock { $0.machine.armedCount } }
}

/// A deadline of a timer, which is disarmed when this is released.
///
/// Don't release it with a lock held: that may cancel a sleep, and the clock may be a class of the user's.
final class ArmedDeadline: Sendable {
    private let timer: DeadlineTimer
    private let id: HeapElementID

    fileprivate init(_ id: HeapElementID, in timer: DeadlineTimer) {
        self.id = id
        self.timer = timer
    }

    deinit {
        disarm()
    }

    /// Disarms the deadline, if it has not expired.
    ///
    /// - Returns: Whether the closure is not called. `false` means that it was called, is being called, or will be soon.
    @discardableResult
    func disarm() -> Bool {
        timer.disarm(id)
    }
}

/// A deadline by which an operation has to end is disarmed when the operation does.
extension ArmedDeadline: FinishObserving {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Worklist) {
        disarm()
    }
}
