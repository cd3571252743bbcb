#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A queue that starts each of its operations on a virtual thread: in the order of their addition, when they are ready
/// and have a place. As on Foundation's, they take the place as soon as there is one, and begin at some time after that.
final class VirtualThreadQueue: CompositeQueue, @unchecked Sendable {
    private let interleaving: Interleaving
    private let waiting = Shared<[Operation]>([])
    private let placed = Shared<[Operation]>([])
    private let begun = Shared<[Operation]>([])

    init(_ interleaving: Interleaving) {
        self.interleaving = interleaving
        super.init()
    }

    override func addChild(_ operation: Operation) {
        VirtualThread.place("enqueues")
        waiting.change { $0.append(operation) }
        interleaving.add("queue", .waiting { [unowned self] in mayBegin(operation) }) { [self] in
            placed.change { $0.removeAll { $0 === operation } }
            begun.change { $0.append(operation) }
            VirtualThread.current?.queue = self
            operation.start()
            // A worker that stayed here would hold the queue, by way of its compound.
            VirtualThread.inOneStep { begun.change { $0.removeAll(where: \.isFinished) } }
        }
    }

    override func addOperation(_ operation: Operation) { addChild(operation) }

    /// The queue whose operation runs on the current virtual thread, as `OperationQueue.current` tells in earnest.
    static var ofCurrentVirtualThread: VirtualThreadQueue? { VirtualThread.current?.queue }

    override func cancelAllOperations() {
        for operation in waiting.value + placed.value + begun.value { operation.cancel() }
    }

    /// Asked after each step.
    private func mayBegin(_ operation: Operation) -> Bool {
        if placed.value.contains(operation) { return true }
        guard !childSettings.isSuspended, waiting.value.first(where: \.isReady) === operation else { return false }
        begun.change { $0.removeAll(where: \.isFinished) }
        let taken = begun.value.count + placed.value.count
        if childSettings.limit >= 0, taken >= childSettings.limit { return false }
        waiting.change { $0.removeAll { $0 === operation } }
        placed.change { $0.append(operation) }
        return true
    }
}

/// Runs each piece of a task, from one suspension to the next, on a virtual thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class VirtualThreadExecutor: TaskExecutor {
    private let interleaving: Interleaving

    init(_ interleaving: Interleaving) {
        self.interleaving = interleaving
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        interleaving.add("task") { [self] in
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
#endif
