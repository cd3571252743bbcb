import Foundation

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
        if scheduler.mayLeave(self) { ends.add(1) }
    }

    /// Ends a worker that has returned from its `start()`.
    func end() {
        ends.add(1)
        didChangeValue(forKey: "isFinished")
    }
    #endif
}
