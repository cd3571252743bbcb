#if DEBUG
import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// A queue that starts each of its operations on a virtual thread: in the order of their addition, when they are ready
/// and have a place.
final class VirtualThreadQueue: CompositeQueue, @unchecked Sendable {
    private let interleaving: Interleaving
    private let waiting = Shared<[Operation]>([])
    private let begun = Shared<[Operation]>([])

    init(_ interleaving: Interleaving) {
        self.interleaving = interleaving
        super.init()
    }

    override func addChild(_ operation: Operation) {
        VirtualThread.place("enqueues")
        waiting.change { $0.append(operation) }
        interleaving.add("queue", .waiting { [unowned self] in mayBegin(operation) }) { [self] in
            waiting.change { $0.removeAll { $0 === operation } }
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
        for operation in waiting.value + begun.value { operation.cancel() }
    }

    private func mayBegin(_ operation: Operation) -> Bool {
        guard !childSettings.isSuspended, waiting.value.first(where: \.isReady) === operation else { return false }
        let running = begun.change { begun in
            begun.removeAll(where: \.isFinished)
            return begun.count
        }
        return childSettings.limit < 0 || running < childSettings.limit
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
