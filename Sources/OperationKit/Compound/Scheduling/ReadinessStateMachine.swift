import Foundation

/// A state machine that decides which children can start, and in which order.
///
/// It knows children by their slots in its ``ChildTable``, holds no lock and calls nothing. Each event costs O(1), and
/// O(log n) at the worst for one that makes a child ready, plus the dependents of the child that it concerns.
struct ReadinessStateMachine {
    /// How far the composite has come.
    enum Stage { case idle, gathering, running, finished }

    /// How far the cancellation of all children has come.
    enum Cancellation {
        case none
        /// The children are being cancelled, so that none may start until all of them are.
        case inProgress
        /// The children are cancelled. Then nothing waits for anything: they only have to end.
        case complete
    }

    var table = ChildTable()
    /// Empty until the composite has started.
    private var ready = ReadyQueue()
    var places: WorkerPlaces
    private(set) var stage = Stage.idle
    private(set) var cancellation = Cancellation.none
    /// Whether a child whose dependencies do not matter any more waits for its siblings nevertheless, so that the steps
    /// of a chain end in their order.
    private let keepsOrder: Bool

    init(limit: Int, keepsOrder: Bool = false) {
        places = WorkerPlaces(limit: limit)
        self.keepsOrder = keepsOrder
    }

    /// Whether a child that is added now has to be cancelled.
    var cancelsNewChildren: Bool { cancellation != .none }
    var isStarted: Bool { stage == .running || stage == .finished }

    /// The settings that the private queue is given. Cancelled children have to end, even if the limit is 0 or the
    /// composite is suspended. So has a worker that is still on its way when the last child has ended, or the queue
    /// would not be freed.
    var queueSettings: QueueSettings {
        if !places.isKeptByQueue { return .immediate }
        if cancellation == .complete || stage == .finished {
            return QueueSettings(limit: places.limit == 0 ? 1 : places.limit, isSuspended: false)
        }
        return QueueSettings(limit: places.effectiveLimit, isSuspended: places.isSuspended)
    }
}

// MARK: - Adding children

extension ReadinessStateMachine {
    /// An external dependency becomes a child itself.
    mutating func adopted(_ slot: Int, _ operation: Operation, weight: Int64 = 1, phase: ChildPhase = .added) {
        table.adopt(slot, operation, weight: weight, phase: phase)
        table.changeOpenExternal(ofDependentsOf: slot, by: -1)
    }

    /// All that a child depends on is counted. Where ``cancelsNewChildren`` holds, the child has been cancelled.
    mutating func registered(_ slot: Int, priority: Operation.QueuePriority) {
        switch table.records[slot].phase {
        case .adding, .added: table.records[slot].phase = .waiting
        case .waiting: break
        default: preconditionFailure("OperationKit: a child is registered that is \(table.records[slot].phase)")
        }
        table.records[slot].priority = priority
        becomeReadyIfDue(slot)
    }

    /// What a child depends on does not matter any more, because it was cancelled by itself, for example.
    mutating func ignoresDependencies(_ slot: Int) {
        table.records[slot].ignoresDependencies = true
        becomeReadyIfDue(slot)
    }

    /// Takes back the child that was added last, is not registered and depends on none, as if it had never been there. If others wait
    /// for it, it keeps its slot as an external dependency.
    mutating func takenBack(_ slot: Int) {
        table.returnOrdinal()
        table.remove(slot)
        if table.records[slot].dependents.isEmpty { return leave(slot) }
        table.records[slot].phase = .external
        table.changeOpenExternal(ofDependentsOf: slot, by: 1)
    }
}

// MARK: - The composite

extension ReadinessStateMachine {
    /// The composite starts. The dependencies of the children are read again.
    mutating func prepared() {
        stage = .gathering
        if table.hasDependencies { table.removeDependencies() }
    }

    /// The children may start.
    mutating func started() {
        stage = .running
        for slot in table.records.indices { becomeReadyIfDue(slot) }
    }

    /// The children are about to be cancelled.
    mutating func cancellationStarted() {
        if cancellation == .none { cancellation = .inProgress }
    }

    /// All children are cancelled. Their dependencies do not matter any more.
    mutating func cancelled() {
        cancellation = .complete
        for slot in table.records.indices { becomeReadyIfDue(slot) }
    }

    /// All children have ended, and the composite takes no more.
    mutating func finished() {
        stage = .finished
    }

    private mutating func becomeReadyIfDue(_ slot: Int) {
        guard isStarted, case .waiting = table.records[slot].phase,
            table.records[slot].open == 0 || cancellation == .complete || waitsForNothing(slot)
        else { return }
        becomeReady(slot)
    }

    private mutating func becomeReady(_ slot: Int) {
        table.records[slot].phase = .ready
        ready.insert((table.records[slot].ordinal, slot), priority: table.records[slot].priority)
    }

    private func waitsForNothing(_ slot: Int) -> Bool {
        table.records[slot].ignoresDependencies
            && (!keepsOrder || table.records[slot].open == table.records[slot].openExternal)
    }
}

// MARK: - Starting and ending children

extension ReadinessStateMachine {
    /// Takes the next child, which is `starting` from now on; `nil` if none may start.
    mutating func startNext() -> Int? {
        guard mayStart, let slot = ready.popFirst() else { return nil }
        table.records[slot].phase = .starting
        places.childStarted()
        return slot
    }

    /// Whether the next child is one that the queue has to start.
    var isNextSynchronous: Bool { ready.first.map { table.records[$0].isSynchronous } == true }

    /// Takes the next child, and hands it to the queue without a worker.
    ///
    /// - Returns: The child; `nil` if none may start, or a worker is to start it, or has been requested.
    mutating func handNextToQueue() -> ChildReference? {
        guard cancellation == .none, mayStart, !places.isKeptByQueue, !places.isWorkerRequested,
            isNextSynchronous, let slot = startNext()
        else { return nil }
        handedToQueue(slot)
        return table.child(in: slot)
    }

    /// A child that a worker was to start has been given a dependency. ``registered(_:priority:)`` follows.
    mutating func putBack(_ slot: Int) {
        places.ended(in: .worker)
        table.records[slot].phase = .added
    }

    /// A child that the queue was to be handed has been started by another thread. A worker looks at it.
    mutating func handedBack(_ slot: Int) {
        places.ended(in: .queue)
        becomeReady(slot)
    }

    /// A child is handed to the queue, which starts it.
    mutating func handedToQueue(_ slot: Int) {
        table.records[slot].phase = .queued
        if cancellation == .complete { places.isKeptByQueue = true }
        places.handedToQueue()
    }

    /// A child that the queue was handed is not ready, and waits there.
    mutating func waitsOnQueue(_ slot: Int) {
        guard case .queued = table.records[slot].phase else { return }
        table.records[slot].phase = .queuedUnready
        places.waitsOnQueue()
    }

    /// `start()` of a child returned, and the child has not ended. The report of its end may be under way. One that has ended
    /// meanwhile may have been added again.
    mutating func detached(_ slot: Int) {
        switch table.records[slot].phase {
        case .starting: table.records[slot].phase = .detached
        case .ending(.worker): table.records[slot].phase = .ending(.detached)
        default: return
        }
        places.detached()
    }

    /// A child has ended, and keeps its place until ``ended(_:)``.
    mutating func ending(_ slot: Int) {
        table.records[slot].phase = .ending(table.records[slot].phase.place)
    }

    /// A child has ended: its dependents may be ready, and its slot is free. The caller holds the child.
    mutating func ended(_ slot: Int) {
        switch table.records[slot].phase {
        case .adding, .added, .waiting, .starting, .detached, .queued, .queuedUnready, .ending: break
        default: preconditionFailure("OperationKit: a child ends that is \(table.records[slot].phase)")
        }
        if let place = table.records[slot].phase.place {
            places.ended(in: place)
            if place.isOnQueue, places.queued == 0, cancellation != .complete { places.isKeptByQueue = false }
        }
        table.remove(slot)
        leave(slot)
        if case .gone = table.records[slot].phase { table.endedEarly() }
    }

    /// An external dependency has ended.
    mutating func externalEnded(_ slot: Int) {
        table.changeOpenExternal(ofDependentsOf: slot, by: -1)
        leave(slot)
    }

    private mutating func leave(_ slot: Int) {
        let dependents = table.records[slot].dependents
        table.records[slot].dependents = []
        table.records[slot].phase = .gone
        table.freeIfUnused(slot)
        for dependent in dependents {
            table.records[dependent].open -= 1
            becomeReadyIfDue(dependent)
            table.freeIfUnused(dependent)
        }
    }

    /// Requests a worker if a child may start.
    ///
    /// - Returns: Whether a worker has to be sent.
    mutating func requestWorkerIfNeeded() -> Bool {
        mayStart && !ready.isEmpty && places.requestWorker(isCancelled: cancellation == .complete)
    }

    private var mayStart: Bool {
        switch cancellation {
        case .none: !places.isSuspended && places.hasPlaceForChild
        case .inProgress: false
        case .complete: true
        }
    }
}

// MARK: - Children that can start

/// The children that can start, in the order in which they should: by priority, then by the order of their addition.
///
/// Complexity: additions in increasing order, the common case, and their removals cost O(1); others cost O(log n).
struct ReadyQueue {
    typealias Entry = (ordinal: Int, slot: Int)

    /// For each priority, most urgent first.
    private var levels = [Level](repeating: Level(), count: level(of: .veryLow) + 1)

    var isEmpty: Bool { first == nil }

    mutating func insert(_ entry: Entry, priority: Operation.QueuePriority) {
        levels[ReadyQueue.level(of: priority)].insert(entry)
    }

    /// The slot of the first child.
    var first: Int? { levels.first { !$0.isEmpty }?.first }

    /// - Returns: The slot of the first child.
    mutating func popFirst() -> Int? {
        guard let level = levels.firstIndex(where: { !$0.isEmpty }) else { return nil }
        return levels[level].popFirst()
    }

    /// The values of Foundation's five priorities are 8, 4, 0, -4 and -8. An override may return another value.
    private static func level(of priority: Operation.QueuePriority) -> Int {
        (8 - min(max(priority.rawValue, -8), 8)) / 4
    }

    /// One priority: a run that arrived in order, and a heap of those that came late.
    private struct Level {
        private var run: [Entry] = []
        private var head = 0
        /// Those in the heap come before the last of the run, so the run is not empty before the heap is.
        private var late: IndexedHeap<Int, Int>?

        var isEmpty: Bool { head == run.count }

        /// Valid only if the level is not empty.
        var first: Int { lateFirst ?? run[head].slot }

        /// The first of the heap, if it comes before the run.
        private var lateFirst: Int? {
            late?.first.flatMap { $0.key < run[head].ordinal ? $0.element : nil }
        }

        mutating func insert(_ entry: Entry) {
            if let last = run.last, !isEmpty, entry.ordinal < last.ordinal {
                late = late ?? IndexedHeap()
                _ = late?.insert(entry.slot, key: entry.ordinal)
            } else {
                run.append(entry)
            }
        }

        /// Valid only if the level is not empty.
        mutating func popFirst() -> Int {
            if lateFirst != nil, let slot = late?.popFirst() { return slot }
            defer {
                head += 1
                // Forget what was taken once it is the larger half, so that a queue that is fed forever stays small.
                if head * 2 > run.count {
                    run.removeFirst(head)
                    head = 0
                }
            }
            return run[head].slot
        }
    }
}
