import Foundation

/// An operation of the private queue that starts children.
///
/// On Linux it has a `start()` of its own and no `main()`. A queue looks for itself whether an operation has finished
/// inside its `start()`, so nothing has to be announced.
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
        ends.add(1)
    }
    #endif
}
