#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A queue that starts its operations when it is told to, on the thread that tells it.
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

/// Gives all composites that are created on the observed thread the same queue, and counts what that thread does.
final class HeldComposites: SchedulingProbe.Observer {
    let queue: HeldQueue
    private(set) var locks = 0
    /// The changes that were announced, and what the operations read as right before that.
    private(set) var announcements: [String] = []
    /// The first one is under way.
    private var jobs: [@Sendable () -> Void] = []

    init(_ queue: HeldQueue = HeldQueue()) {
        self.queue = queue
    }

    /// Runs a body on this thread, whose composites have the queue.
    static func run(on queue: HeldQueue = HeldQueue(), _ body: (HeldQueue) throws -> Void) rethrows {
        try SchedulingProbe.observed(by: HeldComposites(queue)) { try body(queue) }
    }

    /// Returns what a body on this thread does, whose composites have one queue.
    static func count(_ body: (HeldQueue) throws -> Void) rethrows -> HeldComposites {
        let composites = HeldComposites()
        try SchedulingProbe.observed(by: composites) { try body(composites.queue) }
        return composites
    }

    func reached(_ place: SchedulingProbe.Place) {
        switch place {
        case .locking: locks += 1
        case .willChange(let operation, let key): note("will change", key, operation)
        case .didChange(let operation, let key): note("did change", key, operation)
        case .unlocked, .told, .handlerBegan, .handlerEnded: break
        }
    }

    private func note(_ announcement: String, _ key: String, _ operation: Operation) {
        // What is read here takes the lock, too.
        let before = locks
        announcements.append("\(announcement) \(key): \(operation.isExecuting) \(operation.isFinished)")
        locks = before
    }

    func makeQueue() -> CompositeQueue { queue }

    /// Runs a job on this thread, after those that are under way: inside each other, they would fill the stack.
    func runWorker(_ work: @escaping @Sendable () -> Void) {
        jobs.append(work)
        if jobs.count > 1 { return }
        while let job = jobs.first {
            job()
            jobs.removeFirst()
        }
    }
}
#endif
