import Foundation

/// Who among the children of a compound is ready, who is next, and what is left, as a value.
///
/// It knows children by their slots, numbers that are used again once a child has ended, so that a compound that is fed
/// for ever stays small. It holds no lock and touches no operation and no queue: ``ChildScheduler`` does. Each event
/// costs O(1), and O(log n) at the worst for one that makes a child ready, plus the dependents of the child that it
/// concerns.
struct ChildSchedule {
    var records: [Record] = []
    private var freeSlots: [Int] = []
    private var ready = ReadyQueue()

    /// How many children were added so far: the index of the next one.
    private(set) var added = 0
    /// How many children have not ended.
    private(set) var remaining = 0
    private(set) var hasBegun = false
    /// Whether the children are being cancelled, so that none may begin until all of them are.
    private var isCancelling = false
    /// Whether the children were all cancelled. Then nothing waits for anything: they only have to end.
    private(set) var isCancelled = false
    /// Whether a child that comes now has to be cancelled.
    var cancelsNewChildren: Bool { isCancelling || isCancelled }
    /// Whether all children have ended, and none can be added any more.
    private(set) var hasEnded = false
    /// How many children the operation queue was handed.
    private(set) var queued = 0
    /// The priority of the child that was left to the operation queue last.
    private var queuedPriority = Operation.QueuePriority.normal
    /// How many children were begun by workers and have not ended.
    private(set) var begun = 0
    /// How many of these run on without a place on the queue.
    private var withoutPlace = 0
    var searches = 0

    /// How many children may run at once; negative for as many as the system likes.
    var limit: Int
    var isSuspended = false

    // Workers are on their way, one at a time, or at work.
    private var isWorkerAwaited = false
    private var active = 0
    /// Whether a child whose dependencies do not matter any more waits for its siblings nevertheless: steps have their
    /// turns.
    private let keepsOrder: Bool

    init(limit: Int, keepsOrder: Bool = false) {
        self.limit = limit
        self.keepsOrder = keepsOrder
    }

    func ordinal(of slot: Int) -> Int { records[slot].ordinal }

    /// What the private queue is limited to. Children that run on have no place on it, which matters where it begins
    /// children itself. Cancelled children have to end, also where the limit is 0 or the compound is suspended, and so
    /// has a worker that is still on its way when the last child has ended.
    var limitInForce: Int {
        if isCancelled || hasEnded { return limit == 0 ? 1 : limit }
        return limit < 0 || queued == 0 ? limit : max(limit - withoutPlace, 0)
    }
    var isSuspendedInForce: Bool { isSuspended && !isCancelled && !hasEnded }
}

// Children come.
extension ChildSchedule {
    /// A child was added. It waits until ``known(_:priority:)``.
    ///
    /// - Returns: Its slot.
    mutating func addedChild() -> Int {
        let slot = takeSlot()
        becomeChild(slot)
        return slot
    }

    /// Children wait for an operation that is none.
    ///
    /// - Returns: Its slot.
    mutating func addedOutside() -> Int {
        let slot = takeSlot()
        records[slot].phase = .outside
        return slot
    }

    /// An operation for which children wait becomes a child itself.
    mutating func adopted(_ slot: Int) {
        becomeChild(slot)
        for dependent in records[slot].dependents { records[dependent].openOutside -= 1 }
    }

    private mutating func takeSlot() -> Int {
        if let slot = freeSlots.popLast() { return slot }
        records.append(Record())
        return records.count - 1
    }

    private mutating func becomeChild(_ slot: Int) {
        records[slot].phase = .waiting
        records[slot].ordinal = added
        added += 1
        remaining += 1
    }

    /// A child depends on another one, or on an operation outside.
    mutating func depends(_ slot: Int, on dependency: Int) {
        records[dependency].dependents.append(slot)
        records[slot].open += 1
        if records[dependency].phase == .outside { records[slot].openOutside += 1 }
    }

    /// A child that is not known yet does not depend on another one after all. Complexity: O(1) for what was the last to
    /// come.
    mutating func dependsNoMore(_ slot: Int, on dependency: Int) {
        guard let index = records[dependency].dependents.lastIndex(of: slot) else { return }
        records[dependency].dependents.remove(at: index)
        records[slot].open -= 1
        if records[dependency].phase == .outside { records[slot].openOutside -= 1 }
    }

    /// How many children wait for a child, or for an operation outside.
    func dependentCount(of slot: Int) -> Int { records[slot].dependents.count }

    /// Removes those that have ended from the dependents of a child, or of an operation outside. Complexity: linear in
    /// its dependents.
    mutating func forgetEndedDependents(of slot: Int) {
        let dependents = records[slot].dependents
        records[slot].dependents = dependents.filter { records[$0].phase != .gone }
        for dependent in dependents where records[dependent].phase == .gone {
            records[dependent].open -= 1
            if records[slot].phase == .outside { records[dependent].openOutside -= 1 }
            freeIfDue(dependent)
        }
    }

    /// Nobody depends on anybody, as long as nothing has begun. The slots of operations outside are free.
    mutating func forgetDependencies() {
        for slot in records.indices {
            records[slot].dependents = []
            records[slot].open = 0
            records[slot].openOutside = 0
            if case .outside = records[slot].phase { records[slot].phase = .gone }
            freeIfDue(slot)
        }
    }

    /// All that a child depends on is counted. Where `cancelsNewChildren` holds, the child has been cancelled.
    mutating func known(_ slot: Int, priority: Operation.QueuePriority) {
        records[slot].isKnown = true
        records[slot].priority = priority
        becomeReadyIfDue(slot)
    }

    /// What a child depends on does not matter any more, because it was cancelled by itself, for example.
    mutating func released(_ slot: Int) {
        records[slot].isReleased = true
        becomeReadyIfDue(slot)
    }

    /// The compound begins, so its children may.
    mutating func began() {
        hasBegun = true
        for slot in records.indices { becomeReadyIfDue(slot) }
    }

    /// The children are about to be cancelled.
    mutating func cancelling() {
        isCancelling = true
    }

    /// All children are cancelled. Their dependencies do not matter any more.
    mutating func cancelled() {
        isCancelled = true
        for slot in records.indices { becomeReadyIfDue(slot) }
    }

    /// All children have ended, and the compound takes no more.
    mutating func finished() {
        hasEnded = true
    }

    private mutating func becomeReadyIfDue(_ slot: Int) {
        guard hasBegun, records[slot].phase == .waiting, records[slot].isKnown else { return }
        guard records[slot].open == 0 || isCancelled || isReleased(slot) else { return }
        records[slot].phase = .ready
        ready.insert(.init(ordinal: records[slot].ordinal, slot: slot), priority: records[slot].priority)
    }
}

extension ChildSchedule {
    private func isReleased(_ slot: Int) -> Bool {
        records[slot].isReleased && (!keepsOrder || records[slot].open == records[slot].openOutside)
    }
}

// Children begin and end.
extension ChildSchedule {
    /// The next child to begin, which is `starting` from now on, or `nil` if none may.
    mutating func next() -> Int? {
        guard mayBegin, let slot = ready.popFirst()?.slot else { return nil }
        records[slot].phase = .starting
        begun += 1
        return slot
    }

    /// A child is handed to the queue, which begins it.
    mutating func handedToQueue(_ slot: Int) {
        queuedPriority = records[slot].priority
        records[slot].phase = .queued
        begun -= 1
        queued += 1
    }

    /// `start()` of a child returned, and the child has not ended.
    mutating func wentOn(_ slot: Int) {
        records[slot].phase = .running
        withoutPlace += 1
    }

    /// A child has ended: its dependents may be ready, and its slot is free.
    mutating func ended(_ slot: Int) {
        switch records[slot].phase {
        case .waiting: break
        case .starting: begun -= 1
        case .running:
            begun -= 1
            withoutPlace -= 1
        case .queued: queued -= 1
        case .ready, .gone, .free, .outside: preconditionFailure("OperationKit: a child that was not begun has ended")
        }
        remaining -= 1
        leave(slot)
    }

    /// An operation outside, for which children wait, has ended.
    mutating func outsideEnded(_ slot: Int) {
        for dependent in records[slot].dependents { records[dependent].openOutside -= 1 }
        leave(slot)
    }

    /// Takes back a child that is not known yet and depends on none, as if it had never been there. If others wait for
    /// it, it keeps its slot as an operation outside.
    mutating func removed(_ slot: Int) {
        if records[slot].ordinal == added - 1 { added -= 1 }
        remaining -= 1
        if records[slot].dependents.isEmpty { return leave(slot) }
        records[slot].phase = .outside
        for dependent in records[slot].dependents { records[dependent].openOutside += 1 }
    }

    private mutating func leave(_ slot: Int) {
        let dependents = records[slot].dependents
        records[slot].dependents = []
        records[slot].phase = .gone
        freeIfDue(slot)
        for dependent in dependents {
            records[dependent].open -= 1
            becomeReadyIfDue(dependent)
            freeIfDue(dependent)
        }
    }

    /// A slot is used again once nobody knows it.
    private mutating func freeIfDue(_ slot: Int) {
        guard records[slot].phase == .gone, records[slot].open == 0 else { return }
        records[slot] = Record()
        freeSlots.append(slot)
    }

    private var mayBegin: Bool {
        if isCancelled { return true }
        return !isCancelling && !isSuspended && (limit < 0 || begun < limit)
    }
}

// Workers, each of which begins one child after the other.
extension ChildSchedule {
    /// Whether a worker has to be sent for, because a child may begin. It counts as awaited from now on.
    ///
    /// One is awaited at a time: where there is more to begin when it comes, the next one is sent for.
    mutating func sendsForWorker() -> Bool {
        guard hasBegun, !isWorkerAwaited, mayBegin, !ready.isEmpty, active < mostWorkers else { return false }
        isWorkerAwaited = true
        return true
    }

    /// How many workers may be at work: as many as there are places, and where there is no limit, as many as libdispatch
    /// would give threads at most.
    private var mostWorkers: Int {
        if limit < 0 { return 64 }
        return isCancelled ? max(limit, 1) : limit - withoutPlace
    }

    /// The priority of the next worker on the operation queue, where it must not overtake a child that was left to the queue
    /// before.
    var workerPriority: Operation.QueuePriority {
        queued > 0 && queuedPriority.rawValue < 0 ? queuedPriority : .normal
    }

    /// A worker has arrived.
    mutating func workerCame() {
        isWorkerAwaited = false
        active += 1
    }

    /// A worker leaves.
    mutating func workerLeft() {
        active -= 1
    }

    /// Whether a worker may go on to its next child. Where children that the queue begins wait for a place, the worker
    /// leaves and is sent for again, so that they get their turn.
    var hasRoomForWorker: Bool {
        queued == 0 || limit < 0 || active + queued < limit - withoutPlace
    }
}
