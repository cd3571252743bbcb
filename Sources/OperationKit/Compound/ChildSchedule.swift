import Foundation

/// Who among the children of a compound is ready, who is next, and what is left, as a value.
///
/// It knows children by their slots, numbers that are used again once a child has ended, so that a compound that is fed
/// for ever stays small. It holds no lock and touches no operation and no queue: ``ChildScheduler`` does. Each event
/// costs O(1), and O(log n) at the worst for one that makes a child ready, plus the dependents of the child that it
/// concerns.
struct ChildSchedule {
    /// Where a child stands.
    enum Phase {
        /// No child has this slot.
        case free
        /// Some of what it depends on has not ended, or is not known yet.
        case waiting
        /// Among those that may begin.
        case ready
        /// A worker is inside `start()` of the child.
        case starting
        /// As `starting`, and the child has reported its end meanwhile.
        case endedWhileStarting
        /// Begun, and going on without a worker's thread.
        case running
        /// Left to the operation queue, because its readiness is its own affair.
        case queued
        /// It has ended before the children it depends on, so they still know its slot.
        case gone
    }

    /// Who keeps the place of a child on the queue.
    enum Place {
        /// The worker that is inside `start()`, or the child itself.
        case worker
        /// A worker that waits for the end of the child.
        case parked
        /// Nobody: there was no limit when the child was begun.
        case none
    }

    struct Record {
        var phase: Phase = .free
        var ordinal = 0
        /// How many of the children it depends on have not ended.
        var open = 0
        /// Whether all dependencies are counted, so that the child may become ready.
        var isKnown = false
        /// Whether the child was cancelled by itself, and does not wait for its dependencies.
        var isReleased = false
        var priority: Operation.QueuePriority = .normal
        var dependents: [Int] = []
        /// Who keeps its place on the queue while it runs on.
        var place = Place.worker
        /// Twice the number of the last search that came here, and one more once it was through with everything behind.
        var search = 0
    }

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
    /// How many children are left to the operation queue.
    private(set) var queued = 0
    private var running = 0
    /// How many children run on without a worker that keeps their place on the queue.
    private var withoutPlace = 0
    var searches = 0

    /// How many children may run at once; negative for as many as the system likes.
    var limit: Int
    var isSuspended = false

    // Workers are on their way, at work, or keeping the place of a child that runs on without them.
    private var awaited = 0
    private var active = 0
    private var parked = 0
    /// How many workers there may be when there is no limit: as many as libdispatch would give threads at most.
    private static let mostWorkers = 64

    init(limit: Int) {
        self.limit = limit
    }

    func ordinal(of slot: Int) -> Int { records[slot].ordinal }

    /// What the private queue is limited to: children that were begun without a limit have no place on it. Cancelled
    /// children have to end, also where the limit is 0 or the compound is suspended.
    var limitInForce: Int {
        if isCancelled { return limit == 0 ? 1 : limit }
        return limit < 0 ? limit : max(limit - withoutPlace, 0)
    }
    var isSuspendedInForce: Bool { isSuspended && !isCancelled }
}

// Children come.
extension ChildSchedule {
    /// A child was added. It waits until ``known(_:priority:)``.
    ///
    /// - Returns: Its slot.
    mutating func addedChild() -> Int {
        let slot = freeSlots.popLast() ?? records.count
        if slot == records.count { records.append(Record()) }
        records[slot].phase = .waiting
        records[slot].ordinal = added
        added += 1
        remaining += 1
        return slot
    }

    /// A child depends on another one. This makes no difference to a child that has had its turn.
    mutating func depends(_ slot: Int, on dependency: Int) {
        records[dependency].dependents.append(slot)
        records[slot].open += 1
    }

    /// A child does not depend on another one any more.
    mutating func dependsNoMore(_ slot: Int, on dependency: Int) {
        guard let index = records[dependency].dependents.firstIndex(of: slot) else { return }
        records[dependency].dependents.remove(at: index)
        dependencyEnded(of: slot)
    }

    /// All that a child depends on is counted. Where `cancelsNewChildren` holds, the child has been cancelled.
    mutating func known(_ slot: Int, priority: Operation.QueuePriority) {
        records[slot].isKnown = true
        records[slot].priority = priority
        becomeReadyIfDue(slot)
    }

    /// A child that this one depends on has ended, or was taken back.
    private mutating func dependencyEnded(of slot: Int) {
        records[slot].open -= 1
        becomeReadyIfDue(slot)
        freeIfDue(slot)
    }

    /// A child was cancelled by itself: what it depends on does not matter any more.
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

    private mutating func becomeReadyIfDue(_ slot: Int) {
        guard hasBegun, records[slot].phase == .waiting, records[slot].isKnown else { return }
        guard records[slot].open == 0 || records[slot].isReleased || isCancelled else { return }
        records[slot].phase = .ready
        ready.insert(.init(ordinal: records[slot].ordinal, slot: slot), priority: records[slot].priority)
    }
}

// Children begin and end.
extension ChildSchedule {
    /// The next child to begin, which is `starting` from now on, or `nil` if none may.
    mutating func next() -> Int? {
        guard mayBegin, let slot = ready.popFirst()?.slot else { return nil }
        records[slot].phase = .starting
        running += 1
        return slot
    }

    /// A child could not be begun by a worker and is left to the queue.
    mutating func leftToQueue(_ slot: Int) {
        records[slot].phase = .queued
        running -= 1
        queued += 1
    }

    /// `start()` of a child returned.
    ///
    /// - Returns: Whether the child has ended, so that ``ended(_:)`` is due.
    mutating func startReturned(_ slot: Int) -> Bool {
        if records[slot].phase == .endedWhileStarting { return true }
        records[slot].phase = .running
        return false
    }

    /// A child reported its end.
    ///
    /// - Returns: Whether ``ended(_:)`` is due. If not, the worker that is inside `start()` sees to it.
    mutating func reportedEnd(_ slot: Int) -> Bool {
        guard records[slot].phase == .starting else { return true }
        records[slot].phase = .endedWhileStarting
        return false
    }

    /// A child has ended: its dependents may be ready, and its slot is free.
    mutating func ended(_ slot: Int) {
        switch records[slot].phase {
        case .queued: queued -= 1
        case .starting, .endedWhileStarting, .running: running -= 1
        case .waiting: break
        case .ready, .gone, .free: preconditionFailure("OperationKit: a child that was not begun has ended")
        }
        switch records[slot].place {
        case .worker: break
        case .parked: parked -= 1
        case .none: withoutPlace -= 1
        }
        leave(slot)
    }

    /// Takes back a child that is not known yet and depends on none, as if it had never been there.
    ///
    /// - Returns: Those that waited for it. They wait for something outside now.
    mutating func removed(_ slot: Int) -> [Int] {
        let dependents = records[slot].dependents
        if records[slot].ordinal == added - 1 { added -= 1 }
        leave(slot)
        return dependents
    }

    private mutating func leave(_ slot: Int) {
        let dependents = records[slot].dependents
        records[slot].dependents = []
        records[slot].phase = .gone
        remaining -= 1
        freeIfDue(slot)
        for dependent in dependents { dependencyEnded(of: dependent) }
    }

    /// A slot is used again once no other child knows it.
    private mutating func freeIfDue(_ slot: Int) {
        guard records[slot].phase == .gone, records[slot].open == 0 else { return }
        records[slot] = Record()
        freeSlots.append(slot)
    }

    private var mayBegin: Bool {
        if isCancelled { return true }
        return !isCancelling && !isSuspended && (limit < 0 || running < limit)
    }
}

// Workers, each an operation on the private queue that begins one child after the other.
extension ChildSchedule {
    /// How many workers have to be sent for, so that all who may begin do. They count as awaited from now on.
    mutating func workersToSendFor() -> Int {
        guard hasBegun, mayBegin, !ready.isEmpty else { return 0 }
        var count = ready.count - awaited
        if limit < 0 {
            count = min(count, ChildSchedule.mostWorkers - awaited - active)
        } else {
            count = min(count, limitInForce - awaited - active - parked)
        }
        if count <= 0 { return 0 }
        awaited += count
        return count
    }

    /// A worker has arrived.
    mutating func workerCame() {
        awaited -= 1
        active += 1
    }

    /// A worker leaves.
    mutating func workerLeft() {
        active -= 1
    }

    /// Whether a worker has to keep its place on the queue for a child that runs on: there is a limit, and the queue
    /// counts for it.
    mutating func parksWorker(on slot: Int) -> Bool {
        guard limit >= 0 else {
            records[slot].place = .none
            withoutPlace += 1
            return false
        }
        records[slot].place = .parked
        active -= 1
        parked += 1
        return true
    }
}
