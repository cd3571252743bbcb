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
#endif
