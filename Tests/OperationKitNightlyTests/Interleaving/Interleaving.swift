#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// One run of several virtual threads, of which exactly one moves at any time.
final class Interleaving: @unchecked Sendable {
    enum Grain {
        /// Others come in before a lock is taken and at the places of the test: what is between two is one step.
        case regions
        /// Others come in also after a lock is released, and around announcements.
        case everyPlace
    }

    struct Announcement {
        let operation: ObjectIdentifier
        let thread: String
        let text: String
    }

    private struct State {
        var choices: Choices
        var threads: [VirtualThread] = []
        /// Whether none moves until a virtual thread returns from a call that blocks for real.
        var isIdle = false
        var isOver = false
        var problems: [String] = []
        var trace: [String] = []
        var announcements: [Announcement] = []
    }

    let grain: Grain
    /// What the run has to leave nothing of.
    let leaks = LeakTracker()
    private let state: Shared<State>
    private let over = DispatchSemaphore(value: 0)

    init(_ choices: Choices, grain: Grain) {
        self.grain = grain
        state = Shared(State(choices: choices))
    }

    /// Adds a virtual thread, which begins when it is chosen.
    func add(_ name: String, _ status: VirtualThread.Status = .ready, _ body: @escaping () -> Void) {
        let thread = VirtualThread(name, self, status: status, body)
        state.change { $0.threads.append(thread) }
    }

    /// Makes something for the run, on the current thread and before any virtual thread moves.
    func prepare<Answer>(_ body: () -> Answer) -> Answer {
        let thread = VirtualThread("preparation", self, status: .ended) {}
        return SchedulingProbe.observed(by: thread) { VirtualThread.inOneStep(body) }
    }

    /// Lets the virtual threads move until all have ended.
    ///
    /// - Returns: The choices, and what was found to be wrong.
    func run() -> (choices: Choices, problems: [String]) {
        next(after: nil)?.resume()
        if over.wait(timeout: .now() + hangTimeout) == .timedOut { found("a virtual thread is blocked for good") }
        return state.change {
            if $0.choices.areContradictory { $0.problems.append("the run cannot be repeated") }
            // The virtual threads hold the run.
            $0.threads = []
            return ($0.choices, $0.problems)
        }
    }

    /// What is still alive, though the subject of the run is gone. Threads that come to their end let go of things a
    /// moment later.
    func leftBehind() -> [String] {
        let deadline = Date(timeIntervalSinceNow: hangTimeout / 10)
        while !leaks.alive.isEmpty, Date() < deadline { sched_yield() }
        return leaks.alive.map { "\($0) is left behind" }
    }

    var trace: String { state.value.trace.joined(separator: " | ") }
    var announcements: [Announcement] { state.value.announcements }

    func found(_ problem: String) { state.change { $0.problems.append(problem) } }
    func announced(_ announcement: Announcement) { state.change { $0.announcements.append(announcement) } }
    func arrived(_ thread: VirtualThread, _ label: String) {
        state.change { $0.trace.append("\(thread.name): \(label)") }
    }
}

// Whose turn it is.
extension Interleaving {
    /// The virtual thread that moves next, if there is one that can.
    func next(after current: VirtualThread?) -> VirtualThread? {
        state.change { state in
            if case .ended = current?.status { state.threads.removeAll { $0 === current } }
            var able = state.threads.filter(\.isAble)
            let goesOn = able.firstIndex { $0 === current }
            if let goesOn { able.swapAt(0, goesOn) }
            if able.isEmpty { able = Array(state.threads.filter(\.isLast).prefix(1)) }
            if able.isEmpty { able = Array(state.threads.filter(\.hasReturned).prefix(1)) }
            if able.isEmpty {
                state.isIdle = state.threads.contains(where: \.isOutside)
                if !state.isIdle {
                    if !state.threads.isEmpty {
                        state.problems.append(
                            "no thread can go on: \(state.threads.map(\.name).joined(separator: ", "))")
                    }
                    state.isOver = true
                }
                return nil
            }
            let thread = able[state.choices.choose(of: able.count, firstGoesOn: goesOn != nil)]
            thread.status = .ready
            return thread
        }
    }

    /// A virtual thread does not go on, and this one comes next.
    func leave(to next: VirtualThread?) {
        if let next { next.resume() } else if state.value.isOver { over.signal() }
    }

    /// A virtual thread has returned from a call that blocks for real.
    ///
    /// - Returns: Whether it goes on immediately, because no other one can.
    func returned(_ thread: VirtualThread) -> Bool {
        state.change { state in
            thread.status = state.isIdle ? .ready : .returned
            defer { state.isIdle = false }
            return state.isIdle
        }
    }
}

extension VirtualThread {
    fileprivate var isAble: Bool {
        switch status {
        case .ready: true
        case .waiting(let condition): condition()
        case .last, .outside, .returned, .ended: false
        }
    }

    fileprivate var isLast: Bool { if case .last = status { true } else { false } }
    fileprivate var isOutside: Bool { if case .outside = status { true } else { false } }
    fileprivate var hasReturned: Bool { if case .returned = status { true } else { false } }
}
#endif
