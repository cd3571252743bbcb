#if DEBUG
import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// A queue that starts its operations when it is told to, on the thread that tells it. So a test knows when everything
/// has started that may start.
final class HeldQueue: CompositeQueue, @unchecked Sendable {
    private let held = Shared<[Operation]>([])
    private(set) var additions = 0

    override func addChild(_ operation: Operation) {
        additions += 1
        held.change { $0.append(operation) }
    }

    /// Starts the operations, in the order of their addition, until none is left or the queue is suspended.
    func startAll() {
        while !childSettings.isSuspended, let next = held.change({ $0.isEmpty ? nil : $0.removeFirst() }) {
            next.start()
        }
    }
}

/// Gives all composites that are created on the observed thread the same private queue, which starts their children when
/// it is told to.
final class HeldComposites: SchedulingProbe.Observer {
    let queue: HeldQueue

    private init(_ queue: HeldQueue) {
        self.queue = queue
    }

    /// Runs a body on this thread, whose composites have the queue.
    static func run(on queue: HeldQueue = HeldQueue(), _ body: (HeldQueue) throws -> Void) rethrows {
        try SchedulingProbe.observed(by: HeldComposites(queue)) { try body(queue) }
    }

    func reached(_ place: SchedulingProbe.Place) {}

    func makeQueue() -> CompositeQueue { queue }

    func runWorker(_ work: @escaping @Sendable () -> Void) { work() }
}
#endif
