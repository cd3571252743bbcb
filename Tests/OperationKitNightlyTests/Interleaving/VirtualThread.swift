#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A thread of a run. It moves only when it is its turn, and gives others their turn at every place that it comes to.
final class VirtualThread: SchedulingProbe.Observer, @unchecked Sendable {
    enum Status {
        case ready
        /// Not before this holds.
        case waiting(until: () -> Bool)
        /// Only when no other virtual thread can go on.
        case last
        /// In a call that blocks for real.
        case outside
        case returned
        case ended
    }

    let name: String
    let interleaving: Interleaving
    /// Changed with the state of the run only.
    var status: Status
    private let body: () -> Void
    private let turn = DispatchSemaphore(value: 0)
    private var hasBegun = false
    /// How many locks the thread holds, of the library or of the runtime. While it holds one, it goes on, so no virtual
    /// thread ever waits for such a lock.
    private var locks = 0
    /// The queue that began what the virtual thread runs.
    var queue: VirtualThreadQueue?
    /// Above 0 in calls that are one step, because Foundation may hold locks of its own in them.
    private var isOneStep = 0

    /// Creates a virtual thread. The status says when it may begin.
    init(_ name: String, _ interleaving: Interleaving, status: Status, _ body: @escaping () -> Void) {
        self.name = name
        self.interleaving = interleaving
        self.status = status
        self.body = body
    }

    /// The virtual thread that runs on the current thread.
    static var current: VirtualThread? { SchedulingProbe.observer as? VirtualThread }

    /// A place of the test's own, in a callback: others get their turn, and no lock may be held.
    static func place(_ label: String) {
        guard let thread = current, thread.isOneStep == 0, thread.holdsNoLock(at: label) else { return }
        thread.step(label)
    }

    /// Runs a call as one step that holds a lock of the runtime. Nothing of a user's may be called in it.
    static func withRuntimeLock(_ body: () -> Void) {
        current?.locks += 1
        body()
        current?.locks -= 1
    }

    /// While a lock is held, others that need it would block for real, so the virtual thread goes on.
    private func holdsNoLock(at label: String) -> Bool {
        if locks > 0 { interleaving.found("\(label) is called with the lock held") }
        return locks == 0
    }

    /// Expects that an object is freed after the run.
    static func expectRelease(of object: AnyObject, _ label: String) {
        current?.interleaving.leaks.track(object, label)
    }

    /// Runs a call as one step.
    static func inOneStep<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        try current?.inOneStep(body) ?? body()
    }

    private func inOneStep<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        isOneStep += 1
        defer { isOneStep -= 1 }
        return try body()
    }

    func reached(_ place: SchedulingProbe.Place) {
        switch place {
        case .locking where isOneStep == 0:
            if locks == 0 { step("locks") }
            locks += 1
        case .unlocked where isOneStep == 0:
            locks -= 1
            if locks == 0 { smallStep("unlocked") }
        case .willChange(let operation, let key): announce("will \(key)", of: operation)
        case .didChange(let operation, let key):
            announce("did \(key)", of: operation)
            isOneStep += 1
        case .told:
            isOneStep -= 1
            smallStep("told")
        case .handlerBegan: locks += 1
        case .handlerEnded: locks -= 1
        case .locking, .unlocked: break
        }
    }

    private func announce(_ text: String, of operation: Operation) {
        interleaving.announced(.init(operation: ObjectIdentifier(operation), thread: name, text: text))
        if locks > 0 { interleaving.found("\(text) with the lock held") }
        smallStep(text)
    }

    private func smallStep(_ label: String) {
        if isOneStep == 0, interleaving.grain == .everyPlace { step(label) }
    }

    func makeQueue() -> CompositeQueue { interleaving.leaks.track(VirtualThreadQueue(interleaving), "a private queue") }

    func runWorker(_ work: @escaping @Sendable () -> Void) { interleaving.add("worker") { work() } }

    private func step(_ label: String) {
        interleaving.arrived(self, label)
        let next = inOneStep { interleaving.next(after: self) }
        if next === self { return }
        interleaving.leave(to: next)
        turn.wait()
    }

    /// Calls something that blocks the thread for real. The virtual thread comes back when no other one can go on.
    static func outside(_ body: () -> Void) {
        guard let thread = current else { return body() }
        thread.interleaving.arrived(thread, "outside")
        thread.status = .outside
        thread.interleaving.leave(to: thread.inOneStep { thread.interleaving.next(after: thread) })
        thread.inOneStep(body)
        if !thread.interleaving.returned(thread) { thread.turn.wait() }
    }

    /// Gives the virtual thread its turn.
    func resume() {
        if hasBegun {
            turn.signal()
        } else {
            hasBegun = true
            // Dispatch uses threads again, and no other code those of this quality of service: it gets one immediately.
            DispatchQueue(label: name, qos: .userInteractive).async { [self] in
                SchedulingProbe.observed(by: self, body)
                status = .ended
                interleaving.leave(to: interleaving.next(after: self))
            }
        }
    }
}

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
