/// A state machine that decides how long the one sleep of a timer lasts, and what is due after it.
///
/// A sleep that turns out to be too long is replaced by a shorter one, in a task of its own if tasks sleep. One that is too short,
/// because the earliest deadline was disarmed, is left alone: it ends, nothing is due, and the next one begins. So operations
/// that end in time cost no sleep each, as their deadlines are armed and disarmed in turn.
struct TimerStateMachine<Element> {
    private var deadlines = IndexedHeap<Duration, Element>()
    /// The sleep that goes on; those of other tasks are over, or to be cancelled.
    private(set) var sleep: TimerSleep?
    private var lastTask = 0
    /// Whether a sleep goes on when there are no deadlines.
    private let lingers: Bool

    /// - Parameter lingers: Whether a sleep goes on when the last deadline is disarmed, and serves the next ones.
    init(lingers: Bool) {
        self.lingers = lingers
    }

    var armedCount: Int { deadlines.count }

    /// The number of the task that sleeps; those with other numbers are over, or to be cancelled.
    var currentTask: Int? { sleep?.task }

    /// A deadline was armed.
    ///
    /// - Returns: The identifier under which it can be disarmed, and a sleep to begin in a new task, in place of the current
    ///   one, if that is too long.
    mutating func armed(_ element: Element, at deadline: Duration) -> (id: HeapElementID, sleep: TimerSleep?) {
        let id = deadlines.insert(element, key: deadline)
        if let sleep, sleep.deadline <= deadline { return (id, nil) }
        lastTask += 1
        sleep = TimerSleep(task: lastTask, deadline: deadline)
        return (id, sleep)
    }

    /// A deadline is not wanted any more.
    ///
    /// - Returns: The element, or `nil` if it was due before, and whether the current task is to be cancelled.
    mutating func disarmed(_ id: HeapElementID) -> (element: Element?, endsSleep: Bool) {
        let element = deadlines.remove(id)
        guard deadlines.isEmpty, !lingers, sleep.take() != nil else { return (element, false) }
        return (element, true)
    }

    /// A task has slept.
    ///
    /// - Returns: What is due, in the order of the deadlines, and the next sleep of the task. Without one, the task ends.
    mutating func woke(_ task: Int, at now: Duration) -> (due: [Element], sleep: TimerSleep?) {
        guard task == currentTask else { return ([], nil) }
        var due: [Element] = []
        while let first = deadlines.first, first.key <= now, let element = deadlines.popFirst() { due.append(element) }
        sleep = deadlines.first.map { TimerSleep(task: task, deadline: $0.key) }
        return (due, sleep)
    }
}

extension TimerStateMachine: Sendable where Element: Sendable {}

/// A sleep of a task. When it ends, the task reports ``TimerStateMachine/woke(_:at:)``, whether or not it was cancelled.
struct TimerSleep: Equatable, Sendable {
    /// The number of the task that sleeps.
    let task: Int
    let deadline: Duration
}
