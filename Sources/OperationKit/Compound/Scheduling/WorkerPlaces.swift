import Foundation

/// The settings that the private queue of a composite is given.
struct QueueSettings: Equatable {
    /// The queue starts what it is given.
    static let immediate = QueueSettings(limit: OperationQueue.defaultMaxConcurrentOperationCount, isSuspended: false)

    var limit: Int
    var isSuspended: Bool
}

/// How many children may run at the same time, how many do, and how many workers start them. A child takes a
/// ``ChildPlace`` from just before its start to its end.
///
/// The limit is kept here, and the operation queue starts what it is given. There are cases in which the queue keeps the limit, until all
/// that it was handed has ended, and no worker is on its way:
///
/// - A child that it was handed is not ready. It takes no place here then, and the queue begins it when there is one.
/// - A worker follows a child that the queue has started, to start another one itself. When such a child has ended, Foundation tells those
///   that depend on it one after the other. The queue, which goes on after that, keeps the worker from finding them not ready, and
///   beginning others.
/// - The children are cancelled, and all of them can be handed to the queue.
struct WorkerPlaces {
    /// How many children may run at the same time; negative for as many as the system likes.
    var limit: Int
    var isSuspended = false

    /// How many children were started by workers and have not ended.
    private(set) var started = 0
    /// How many of these run without a worker.
    private(set) var detachedCount = 0
    /// How many children the operation queue was handed.
    private(set) var queued = 0
    /// How many of these were not ready, and take no place.
    private(set) var unreadyCount = 0
    /// Whether the operation queue keeps the limit.
    var isKeptByQueue = false
    /// Workers are requested one at a time.
    private(set) var isWorkerRequested = false
    /// Whether the worker that is on its way may have left the queue before that kept the limit.
    private(set) var isWorkerEarly = false
    /// How many workers are at work.
    private(set) var active = 0

    /// Whether one more child may run.
    var hasPlaceForChild: Bool { limit < 0 || started + queuedHere < limit }

    /// How many of those that the queue was handed take a place, also those on their way to the queue.
    private var queuedHere: Int { queued - unreadyCount }

    /// The limit of the operation queue while it keeps it. Detached children take no place on that queue, so their number is
    /// subtracted.
    var effectiveLimit: Int { limit < 0 ? limit : max(limit - detachedCount, 0) }
}

// MARK: - Children

extension WorkerPlaces {
    /// A worker is about to start a child.
    mutating func childStarted() {
        started += 1
    }

    /// The queue is handed the child, and starts it.
    mutating func handedToQueue() {
        started -= 1
        queued += 1
    }

    /// A child that the queue was handed is not ready.
    mutating func waitsOnQueue() {
        unreadyCount += 1
        if !isKeptByQueue, isWorkerRequested { isWorkerEarly = true }
        isKeptByQueue = true
    }

    /// A child goes on without its worker.
    mutating func detached() {
        detachedCount += 1
    }

    /// A child has ended.
    mutating func ended(in place: ChildPlace) {
        switch place {
        case .worker: started -= 1
        case .detached:
            started -= 1
            detachedCount -= 1
        case .queue: queued -= 1
        case .unreadyQueue:
            queued -= 1
            unreadyCount -= 1
        }
    }
}

// MARK: - Workers

extension WorkerPlaces {
    /// Requests a worker, unless one is on its way or there is no place for it.
    ///
    /// One is requested at a time: where there is more to start when it comes, the next one is requested.
    ///
    /// - Parameter isCancelled: Whether the children only have to end, also where the limit is 0.
    /// - Returns: Whether a worker has to be sent.
    mutating func requestWorker(isCancelled: Bool) -> Bool {
        guard !isWorkerRequested, active < mostWorkers(isCancelled: isCancelled) else { return false }
        isWorkerRequested = true
        return true
    }

    /// The maximum number of workers: one for each place, and without a limit as many as libdispatch has threads at
    /// most.
    private func mostWorkers(isCancelled: Bool) -> Int {
        if limit < 0 { return 64 }
        return isCancelled ? max(limit, 1) : limit - detachedCount - queuedHere
    }

    /// The priority of the next worker on the operation queue: it must not overtake a child that the queue was handed
    /// before, whatever the priority of that one is.
    var workerPriority: Operation.QueuePriority { queued > 0 ? .veryLow : .normal }

    /// A worker has arrived.
    ///
    /// - Returns: Whether it may take a child. An early one may not: if the child that was not ready has become so meanwhile, the queue
    ///   has begun that in the same place.
    mutating func workerStarted() -> Bool {
        isWorkerRequested = false
        active += 1
        return !exchange(&isWorkerEarly, with: false)
    }

    mutating func workerLeft() {
        active -= 1
    }

    /// Whether a worker may go on to its next child. Where children that the queue starts wait for a place, the worker
    /// leaves and is requested again, so that they get their turn.
    var hasRoomForWorker: Bool {
        !isKeptByQueue || limit < 0 || active + queued < limit - detachedCount
    }
}

/// An operation of the private queue that starts children.
///
/// On Linux it has a `start()` of its own and no `main()`. A queue looks for itself whether an operation has finished
/// inside its `start()`, so nothing has to be announced. One that must not leave its place on the queue yet ends later:
/// see ``ChildStateMachine/workerLeaves(_:)``.
final class ChildWorker: Operation, @unchecked Sendable {
    private let scheduler: ChildScheduler

    init(_ scheduler: ChildScheduler, priority: Operation.QueuePriority) {
        self.scheduler = scheduler
        super.init()
        if priority != .normal { queuePriority = priority }
    }

    /// Does nothing. A child that cancels all operations of its current queue also cancels the worker that is on its
    /// way, and the scheduler would wait forever for a worker that does not arrive.
    override func cancel() {}

    #if canImport(ObjectiveC)
    override func main() {
        scheduler.work()
    }
    #else
    /// How many times it has ended: once at most.
    private let ends = AtomicCounter()

    override var isFinished: Bool { ends.value > 0 }

    override func start() {
        scheduler.work()
        if scheduler.machine.withLock({ $0.workerLeaves(self) }) { ends.add(1) }
    }

    /// Ends a worker that has returned from its `start()`.
    func end() {
        ends.add(1)
        didChangeValue(forKey: "isFinished")
    }
    #endif
}
