#if DEBUG
import Dispatch
import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// One run of several strands, of which exactly one moves at any time.
final class Interleaving: @unchecked Sendable {
    enum Grain {
        /// Others come in before a lock is taken and at the places of the test: what is between two is one step.
        case regions
        /// Others come in also after a lock is released, and around announcements.
        case everyPlace
    }

    struct Announcement {
        let operation: ObjectIdentifier
        let strand: String
        let text: String
    }

    private struct State {
        var choices: Choices
        var strands: [Strand] = []
        /// Whether nobody moves until a strand returns from outside.
        var isIdle = false
        var isOver = false
        var problems: [String] = []
        var trace: [String] = []
        var announcements: [Announcement] = []
    }

    let grain: Grain
    let lanes: Lanes
    /// What the run has to leave nothing of.
    let leaks = LeakTracker()
    private let state: Shared<State>
    private let over = DispatchSemaphore(value: 0)

    init(_ choices: Choices, grain: Grain, lanes: Lanes) {
        self.grain = grain
        self.lanes = lanes
        state = Shared(State(choices: choices))
    }

    /// Adds a strand, which begins when it is chosen.
    func add(_ name: String, _ standing: Strand.Standing = .ready, _ body: @escaping () -> Void) {
        let strand = Strand(name, self, standing: standing, body)
        state.change { $0.strands.append(strand) }
    }

    /// Makes something for the run, on the current thread and before any strand moves.
    func prepare<Answer>(_ body: () -> Answer) -> Answer {
        let strand = Strand("preparation", self, standing: .ended) {}
        return SchedulingProbe.observed(by: strand) { Strand.inOneStep(body) }
    }

    /// Lets the strands move until all have ended.
    ///
    /// - Returns: The choices, and what was found to be wrong.
    func run() -> (choices: Choices, problems: [String]) {
        next(after: nil)?.resume()
        if over.wait(timeout: .now() + patience) == .timedOut { found("a strand is blocked for good") }
        return state.change {
            if $0.choices.areContradictory { $0.problems.append("the run cannot be repeated") }
            // The strands hold the run.
            $0.strands = []
            return ($0.choices, $0.problems)
        }
    }

    /// What is still alive, though the subject of the run is gone. Threads that come to their end let go of things a
    /// moment later.
    func leftBehind() -> [String] {
        let deadline = Date(timeIntervalSinceNow: patience / 10)
        while !leaks.alive.isEmpty, Date() < deadline { sched_yield() }
        return leaks.alive.map { "\($0) is left behind" }
    }

    var trace: String { state.value.trace.joined(separator: " | ") }
    var announcements: [Announcement] { state.value.announcements }

    func found(_ problem: String) { state.change { $0.problems.append(problem) } }
    func announced(_ announcement: Announcement) { state.change { $0.announcements.append(announcement) } }
    func arrived(_ strand: Strand, _ label: String) { state.change { $0.trace.append("\(strand.name): \(label)") } }
}

// Whose turn it is.
extension Interleaving {
    /// The strand that moves next, if there is one that can.
    func next(after current: Strand?) -> Strand? {
        state.change { state in
            if case .ended = current?.standing { state.strands.removeAll { $0 === current } }
            var able = state.strands.filter(\.isAble)
            let goesOn = able.firstIndex { $0 === current }
            if let goesOn { able.swapAt(0, goesOn) }
            if able.isEmpty { able = Array(state.strands.filter(\.isLast).prefix(1)) }
            if able.isEmpty { able = Array(state.strands.filter(\.hasReturned).prefix(1)) }
            if able.isEmpty {
                state.isIdle = state.strands.contains(where: \.isOutside)
                if !state.isIdle {
                    if !state.strands.isEmpty {
                        state.problems.append("nobody can go on: \(state.strands.map(\.name).joined(separator: ", "))")
                    }
                    state.isOver = true
                }
                return nil
            }
            let strand = able[state.choices.choose(of: able.count, firstGoesOn: goesOn != nil)]
            strand.standing = .ready
            return strand
        }
    }

    /// A strand does not go on, and this one comes next.
    func leave(to next: Strand?) {
        if let next { next.resume() } else if state.value.isOver { over.signal() }
    }

    /// A strand has returned from outside.
    ///
    /// - Returns: Whether it goes on at once, because nobody else can.
    func returned(_ strand: Strand) -> Bool {
        state.change { state in
            strand.standing = state.isIdle ? .ready : .returned
            defer { state.isIdle = false }
            return state.isIdle
        }
    }
}

extension Strand {
    fileprivate var isAble: Bool {
        switch standing {
        case .ready: true
        case .waiting(let condition): condition()
        case .last, .outside, .returned, .ended: false
        }
    }

    fileprivate var isLast: Bool { if case .last = standing { true } else { false } }
    fileprivate var isOutside: Bool { if case .outside = standing { true } else { false } }
    fileprivate var hasReturned: Bool { if case .returned = standing { true } else { false } }
}
#endif
