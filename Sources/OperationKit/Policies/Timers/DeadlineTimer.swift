import Dispatch

/// Calls closures when time has passed. One sleep serves all deadlines of a clock: that of a task, or for the clocks of the system
/// the time until an alarm rings.
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
    /// What ends its sleeps, if that is not a task.
    private let alarm: SystemAlarm?

    /// Creates a timer whose sleep is that of a task, and ends with the last deadline.
    ///
    /// - Parameters:
    ///   - time: Says what time it is, and is slept on.
    ///   - released: Called when the timer is released.
    init(_ time: TimeSource, released: @escaping @Sendable () -> Void = {}) {
        self.time = time
        self.released = released
        alarm = nil
        state = Locked(State(machine: TimerStateMachine(lingers: false)))
    }

    /// Creates a timer whose sleep is the time until an alarm rings. It goes on when the last deadline is disarmed, and serves the
    /// next ones.
    ///
    /// - Parameter time: Says what time it is. It passes as that of the system's clocks does.
    init(ofSystem time: TimeSource) {
        let alarm = SystemAlarm()
        self.time = time
        self.alarm = alarm
        released = {}
        state = Locked(State(machine: TimerStateMachine(lingers: true)))
        alarm.activate { [weak self] in self?.alarmRang() }
    }

    deinit {
        released()
    }

    /// Calls a closure when a duration has passed, unless the deadline is disarmed before.
    ///
    /// It is called once, on a thread of a dispatch queue, where it may block, and without a lock. Closures that are due
    /// together are called one after the other, in the order of their deadlines, and in that of their arming where these are
    /// equal, so one that blocks holds up those after it.
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

    /// Begins a sleep in place of the one before: sets the alarm, or begins a new task and cancels the old one.
    private func begin(_ sleep: TimerSleep) {
        if let alarm { return set(alarm, for: sleep) }
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

    private func alarmRang() {
        guard let alarm, let sleep = state.withLock({ $0.machine.sleep }) else { return }
        // Maybe too early: then nothing is due.
        if let next = sleepEnded(sleep, at: time.now()) { set(alarm, for: next) }
    }

    /// Sets the alarm for a sleep, and for those that other threads have begun meanwhile: the last one that sets it must not set it
    /// for a longer sleep than the last one that has begun.
    private func set(_ alarm: SystemAlarm, for sleep: TimerSleep) {
        var next: TimerSleep? = sleep
        while let sleep = next {
            alarm.set(after: sleep.deadline - time.now())
            next = state.withLock { $0.machine.sleep == sleep ? nil : $0.machine.sleep }
        }
    }

    /// Calls what is due.
    ///
    /// - Returns: The next sleep of the task.
    func sleepEnded(_ sleep: TimerSleep, at now: Duration) -> TimerSleep? {
        let (due, next) = state.withLock { $0.machine.woke(sleep.task, at: now) }
        if !due.isEmpty {
            // Closures may block, which the threads of tasks must not, and the next sleep begins meanwhile. They may stop work
            // that blocks all threads of the global queues.
            DispatchQueue.makeUnoccupied().performAsync { for expiration in due { expiration.call() } }
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
