/// Calls closures when time has passed. One sleep serves all deadlines of a clock: that of a thread for the clocks of the
/// system, and that of a task for others.
///
/// A timer lives as long as a deadline of it is held, or its thread or task sleeps. Nothing but the timer runs on its thread, so
/// no code of users and no queue can hold up its deadlines.
package final class DeadlineTimer: Sendable {
    /// What is called, unless its target is gone.
    struct Expiration {
        weak var target: (any AnyObject & Sendable)?
        let expired: @Sendable (any AnyObject & Sendable) -> Void

        func call() {
            if let target { expired(target) }
        }
    }

    struct State {
        var machine: TimerStateMachine<Reference<Expiration>>
        var task: Task<Void, Never>?
        var hasThread = false
    }

    // The timers that all deadlines of a clock share.
    static let continuous = DeadlineTimer(TimeSource(ContinuousClock()), usesThread: true)
    fileprivate static let suspending = DeadlineTimer(TimeSource(SuspendingClock()), usesThread: true)

    /// The timers of clocks that are classes. A timer holds its clock, so no identity is used again while it is in use.
    fileprivate static let shared = KeyedObjects<DeadlineTimer>()

    /// A thread stands still while the machine is suspended, unlike a `ContinuousClock`. So it never waits longer.
    private static let longestWait = Duration.seconds(60)
    /// For how long a thread stays without deadlines.
    private static let idleTime = Duration.seconds(5)

    private let time: TimeSource
    let state: ThreadCondition<State>
    private let usesThread: Bool
    private let released: @Sendable () -> Void

    /// Creates a timer.
    ///
    /// - Parameters:
    ///   - time: Says what time it is, and is slept on by a task.
    ///   - usesThread: Whether a thread sleeps instead of a task. The time passes as that of the system does.
    ///   - released: Called when the timer is released.
    init(_ time: TimeSource, usesThread: Bool = false, released: @escaping @Sendable () -> Void = {}) {
        self.time = time
        self.usesThread = usesThread
        self.released = released
        // A thread whose last deadline is disarmed sleeps on, and serves the next ones.
        state = ThreadCondition(State(machine: TimerStateMachine(lingers: usesThread)))
    }

    deinit {
        released()
    }

    /// Calls a closure when a duration has passed, unless the deadline is disarmed before.
    ///
    /// It is called once, on a thread of ``DedicatedThreads/callbacks`` and without a lock. Closures that are due together
    /// are called in the order of their deadlines, and in that of their arming where these are equal, one after the other unless
    /// one blocks.
    ///
    /// - Parameters:
    ///   - target: What the closure is about. It is not kept alive, and without it nothing is called.
    ///   - duration: The time until the deadline. With zero, or less, the closure is called soon. More than a century
    ///     counts as a century.
    ///   - expired: The closure. It is given the target, which it keeps if it captures it. One that captures nothing costs no memory.
    /// - Returns: The deadline, which is armed as long as it is held.
    ///
    /// Complexity: O(log n) for n deadlines that are armed, and the same to disarm it.
    package func arm(
        for target: any AnyObject & Sendable, after duration: Duration,
        expired: @escaping @Sendable (any AnyObject & Sendable) -> Void
    ) -> ArmedDeadline {
        // A reference, because weak references cost much to move.
        let expiration = Reference(Expiration(target: target, expired: expired))
        let deadline = time.now() + min(max(duration, .zero), .century)
        let (id, sleep) = state.withLock { $0.machine.armed(expiration, at: deadline) }
        if let sleep { begin(sleep) }
        return ArmedDeadline(id, in: self)
    }

    /// - Returns: Whether the deadline had been armed until now, so that its closure is not called.
    fileprivate func disarm(_ id: HeapElementID) -> Bool {
        let (expiration, task, next) = state.withLock { state in
            let (expiration, endsSleep, next) = state.machine.disarmed(id)
            return (expiration, endsSleep ? state.task.take() : nil, next)
        }
        task?.cancel()
        if let next { begin(next) }
        // The closure is released here, without the lock.
        return expiration != nil
    }

    // MARK: - Sleeping

    /// Begins a sleep in place of the one before.
    private func begin(_ sleep: TimerSleep) {
        if usesThread {
            if state.withLock({ exchange(&$0.hasThread, with: true) }) { return state.signal() }
            return detachThread { while let due = self.nextDue() { self.call(due) } }
        }
        // Before the next one sleeps: who waits for sleepers of a clock counts both.
        state.withLock { $0.machine.sleep?.task == sleep.task ? $0.task.take() : nil }?.cancel()
        let task = startLibraryTask(priority: .high) { await self.run(sleep) }
        let replaced = state.withLock { state in
            // Another thread may have replaced the sleep meanwhile, or ended it.
            state.machine.sleep?.task == sleep.task ? exchange(&state.task, with: task) : task
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
        call(due)
        return next
    }

    /// Blocks the timer's thread until something is due. Returns `nil` when the thread is to end.
    private func nextDue() -> [Reference<Expiration>]? {
        var isIdle = false
        return state.wait { state, isOver in
            if let sleep = state.machine.sleep {
                isIdle = false
                let now = time.now()
                let (due, next) = state.machine.woke(sleep.task, at: now)
                if !due.isEmpty { return .ended(due) }
                if let next { return .waiting(atMost: min(next.deadline - now, DeadlineTimer.longestWait)) }
            }
            if isIdle && isOver {
                state.hasThread = false
                return .ended(nil)
            }
            isIdle = true
            return .waiting(atMost: DeadlineTimer.idleTime)
        }
    }

    private func call(_ due: [Reference<Expiration>]) {
        for expiration in due { DedicatedThreads.callbacks.performAsync { expiration.value.call() } }
    }
}

/// A deadline of a timer, which is disarmed when this is released.
///
/// Don't release it with a lock held: that may cancel a sleep, and the clock may be a class of the user's.
package final class ArmedDeadline: Sendable {
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

/// The latest of deadlines that follow one another: it alone stays armed.
///
/// Several threads may be about to arm one, and a deadline may expire, and its closure arm the next one, before the thread that armed it
/// is back.
package final class LatestDeadline: Sendable {
    private let count = AtomicCounter()
    private let current = Locked<(number: Int, deadline: ArmedDeadline?)>((0, nil))

    package init() {}

    /// Arms a deadline and holds it, unless a call that began later was quicker. The other one is released.
    package func replace(arming arm: () -> ArmedDeadline) {
        let number = count.add(1)
        hold(arm(), number: number)
    }

    /// Releases the deadline. From now on, none stays armed.
    package func end() {
        hold(nil, number: .max)
    }

    private func hold(_ deadline: ArmedDeadline?, number: Int) {
        // Released after unlocking, as it takes the lock of the timer.
        _ = current.withLock { current in
            current.number > number ? deadline : exchange(&current, with: (number, deadline)).deadline
        }
    }
}

/// A state machine that decides how long the one sleep of a timer lasts, and what is due after it.
///
/// A sleep that turns out to be too long is replaced by a shorter one, in a task of its own if tasks sleep. One that is too short,
/// because the earliest deadline was disarmed, is left alone by a thread: it ends, nothing is due, and the next one begins. So
/// operations that end in time cost no sleep each, as their deadlines are armed and disarmed in turn. A task begins a longer one, as
/// a clock for tests shows until when it sleeps.
struct TimerStateMachine<Element: Sendable> {
    private(set) var deadlines = IndexedHeap<Duration, Element>()
    /// The sleep that goes on; those of other tasks are over, or to be cancelled.
    private(set) var sleep: TimerSleep?
    private var lastTask = 0
    /// Whether a sleep goes on when its deadline is disarmed.
    private let lingers: Bool

    /// - Parameter lingers: Whether a sleep goes on when its deadline is disarmed, and serves the next ones.
    init(lingers: Bool) {
        self.lingers = lingers
    }

    /// A deadline was armed.
    ///
    /// - Returns: The identifier under which it can be disarmed, and a sleep to begin in a new task, in place of the current
    ///   one, if that is too long.
    mutating func armed(_ element: Element, at deadline: Duration) -> (id: HeapElementID, sleep: TimerSleep?) {
        let id = deadlines.insert(element, key: deadline)
        if let sleep, sleep.deadline <= deadline { return (id, nil) }
        return (id, begin(until: deadline))
    }

    /// A deadline is not wanted any more.
    ///
    /// - Returns: The element, or `nil` if it was due before; whether the current task is to be cancelled; and a sleep to begin in a
    ///   new one.
    mutating func disarmed(_ id: HeapElementID) -> (element: Element?, endsSleep: Bool, sleep: TimerSleep?) {
        let element = deadlines.remove(id)
        let first = deadlines.first?.key
        if lingers || first == sleep?.deadline { return (element, false, nil) }
        return (element, true, begin(until: first))
    }

    private mutating func begin(until deadline: Duration?) -> TimerSleep? {
        lastTask += 1
        sleep = deadline.map { TimerSleep(task: lastTask, deadline: $0) }
        return sleep
    }

    /// A task has slept.
    ///
    /// - Returns: What is due, in the order of the deadlines, and the next sleep of the task. Without one, the task ends.
    mutating func woke(_ task: Int, at now: Duration) -> (due: [Element], sleep: TimerSleep?) {
        guard task == sleep?.task else { return ([], nil) }
        var due: [Element] = []
        while let first = deadlines.first, first.key <= now, let element = deadlines.popFirst() { due.append(element) }
        sleep = deadlines.first.map { TimerSleep(task: task, deadline: $0.key) }
        return (due, sleep)
    }
}

/// A sleep of a task. When it ends, the task reports ``TimerStateMachine/woke(_:at:)``, whether or not it was cancelled.
struct TimerSleep: Equatable {
    /// The number of the task that sleeps.
    let task: Int
    let deadline: Duration
}

extension Clock where Duration == Swift.Duration {
    /// The timer for deadlines of this clock: always the same one for a `ContinuousClock`, a `SuspendingClock` and a clock that
    /// is a class, while it lasts; another one each time for other clocks.
    package var timer: DeadlineTimer {
        if self is ContinuousClock { return .continuous }
        if self is SuspendingClock { return .suspending }
        guard Self.self is AnyClass else { return DeadlineTimer(TimeSource(self)) }
        return DeadlineTimer.shared.object(for: ObjectIdentifier(self as AnyObject)) { released in
            DeadlineTimer(TimeSource(self), released: released)
        }
    }
}

/// A clock without its type, whose time is the duration since it was made a source.
package struct TimeSource: Sendable {
    /// The time that has passed.
    package let now: @Sendable () -> Duration
    /// Suspends until so much time has passed. Throws if the task is cancelled before.
    let sleep: @Sendable (_ deadline: Duration) async throws -> Void

    package init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
