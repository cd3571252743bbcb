/// A state machine that decides which operations have executed for too long, and when to look for them.
///
/// A composite waits for what is inside it, so it is no suspect as long as a child of it executes: that child is watched
/// itself. One in which children come and go works.
///
/// ```
///               ┌───── the last child has ended ─────── parked
///               ▼                                          ▲ a child executes
/// started ──▶ watched ──the time has passed──▶ suspect ────┴── no progress ──▶ stalled
///               ▲                                 │
///               └──────────── progress ───────────┘
/// ```
///
/// An operation that is released without having ended after it was found stalled leaves its record behind.
struct StallStateMachine<Element> {
    fileprivate struct Watch {
        /// The operation, and the time of its start; `nil` as long as only the start of a child is known.
        var start: (element: Element, time: Duration)?
        var parent: OperationID?
        var executingChildren = 0
        /// When a child has ended for the last time, or else when the operation has started.
        var lastActivity = Duration.zero
        /// How far its children had come when that was last looked at.
        var fraction = 0.0
        /// Its place among the deadlines; `nil` if it is a suspect, parked, or stalled.
        var deadline: HeapElementID?
        var isStalled = false
    }

    /// An operation that has executed for too long, unless something goes on inside it.
    struct Suspect {
        let id: OperationID
        let element: Element
    }

    /// The next time to look for suspects. It replaces the one before, which has come.
    struct Alarm: Equatable, Sendable {
        fileprivate let number: Int
        let time: Duration
    }

    /// How long an operation may execute.
    let threshold: Duration
    private var watches: [OperationID: Watch] = [:]
    private var deadlines = IndexedHeap<Duration, OperationID>()
    /// It is not changed when the operation ends for which it was set: then nothing is found, and the next one is set.
    private(set) var alarm: Alarm?
    private var lastAlarm = 0

    /// - Parameter threshold: How long an operation may execute. Times plus this duration do not overflow.
    init(threshold: Duration) {
        self.threshold = threshold
    }

    /// The number of operations that are watched.
    var count: Int { watches.count }

    // MARK: - Events

    /// An operation has started.
    ///
    /// - Parameters:
    ///   - id: Its identifier.
    ///   - element: What a suspect is returned with.
    ///   - parent: The composite whose child it is.
    ///   - fraction: How far its children have come.
    ///   - now: The time.
    /// - Returns: An alarm to set.
    mutating func started(
        _ id: OperationID, _ element: Element, in parent: OperationID?, fraction: Double, at now: Duration
    ) -> Alarm? {
        if let parent { watches[parent, default: Watch()].executingChildren += 1 }
        var watch = watches[id] ?? Watch()
        watch.start = (element, now)
        watch.parent = parent
        watch.fraction = fraction
        watch.lastActivity = now
        watch.deadline = deadlines.insert(id, key: now + threshold)
        watches[id] = watch
        return setAlarm()
    }

    /// An operation has ended, or was released.
    ///
    /// - Returns: The element, to be released after unlocking, and an alarm to set.
    mutating func ended(_ id: OperationID, at now: Duration) -> (element: Element?, alarm: Alarm?) {
        // That of a composite which executes for longer than anything is watched waits for its children.
        guard let start = watches[id]?.start, let watch = watches.removeValue(forKey: id) else { return (nil, nil) }
        if let deadline = watch.deadline { _ = deadlines.remove(deadline) }
        if let parent = watch.parent { childEnded(of: parent, at: now) }
        return (start.element, setAlarm())
    }

    private mutating func childEnded(of parent: OperationID, at now: Duration) {
        guard var watch = watches[parent] else { return }
        watch.executingChildren -= 1
        watch.lastActivity = now
        let isIdle = watch.executingChildren == 0
        if isIdle, watch.deadline == nil, watch.start != nil {
            watch.deadline = deadlines.insert(parent, key: now + threshold)
        }
        watches[parent] = isIdle && watch.start == nil ? nil : watch
    }

    // MARK: - Suspects

    /// The time of an alarm has come.
    ///
    /// - Returns: What has executed for too long, oldest first, to be examined, and the next alarm to set.
    mutating func rang(_ alarm: Alarm, at now: Duration) -> (suspects: [Suspect], alarm: Alarm?) {
        guard alarm == self.alarm else { return ([], nil) }
        self.alarm = nil
        var suspects: [Suspect] = []
        while let first = deadlines.first, first.key <= now, let id = deadlines.popFirst() {
            guard let start = watches[id]?.start else { continue }
            watches[id]?.deadline = nil
            suspects.append(Suspect(id: id, element: start.element))
        }
        return (suspects, setAlarm())
    }

    /// It was found how far the children of a suspect have come.
    ///
    /// - Parameters:
    ///   - id: The suspect.
    ///   - fraction: How far its children have come.
    ///   - now: The time at which it became a suspect.
    /// - Returns: For how long it has executed, if it is stalled, which is returned once; and an alarm to set.
    mutating func examined(
        _ id: OperationID, fraction: Double, at now: Duration
    ) -> (age: Duration?, alarm: Alarm?) {
        guard let watch = watches[id], let start = watch.start, watch.deadline == nil, !watch.isStalled,
            watch.executingChildren == 0
        else { return (nil, nil) }
        let isActive = watch.lastActivity + threshold > now
        if !isActive, watch.fraction == fraction {
            watches[id]?.isStalled = true
            return (now - start.time, nil)
        }
        // When what is not watched has ended is not known.
        let time = isActive ? watch.lastActivity : now
        watches[id]?.fraction = fraction
        watches[id]?.deadline = deadlines.insert(id, key: time + threshold)
        return (nil, setAlarm())
    }

    private mutating func setAlarm() -> Alarm? {
        guard alarm == nil, let first = deadlines.first else { return nil }
        lastAlarm += 1
        alarm = Alarm(number: lastAlarm, time: first.key)
        return alarm
    }
}

extension StallStateMachine.Watch: Sendable where Element: Sendable {}
extension StallStateMachine.Suspect: Sendable where Element: Sendable {}
extension StallStateMachine: Sendable where Element: Sendable {}
