#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Units of work in a run of virtual threads, which write down what happens to them, and of which some end only when the
/// test lets them.
final class WorkUnits: Sendable {
    typealias Completion = @Sendable ((any Error)?) -> Void

    struct State {
        var begun: [Int] = []
        var inFlight: Set<Int> = []
        var kept: [Int: Completion] = [:]
        /// Held units that may end, or lose their completions.
        var released: Set<Int> = []
        var problems: [String] = []
    }

    let state = Shared(State())
    let held, failing: Set<Int>
    private let limit: Int

    /// With so many units in flight, and these that do not end by themselves, or fail.
    init(limit: Int, held: Set<Int>, failing: Set<Int>) {
        (self.limit, self.held, self.failing) = (limit, held, failing)
    }

    /// A unit begins, and ends unless it is held.
    func begin(_ unit: Int, _ completion: @escaping Completion) {
        state.change { state in
            state.begun.append(unit)
            state.inFlight.insert(unit)
            if state.inFlight.count > limit { state.problems.append("\(state.inFlight.count) are in flight") }
        }
        VirtualThread.place("unit")
        let end: Completion = { [state, failing] error in
            state.change { _ = $0.inFlight.remove(unit) }
            completion(failing.contains(unit) ? TestError.first : error)
        }
        let isOver = state.change { state in
            if held.contains(unit), !state.released.contains(unit) { state.kept[unit] = end }
            return state.kept[unit] == nil
        }
        if isOver { end(nil) }
    }

    /// Returns the completion of a held unit, if it has begun. If it begins later, it ends by itself.
    func release(_ unit: Int) -> Completion? {
        state.change { state in
            state.released.insert(unit)
            return state.kept.removeValue(forKey: unit)
        }
    }

    /// Lets a held unit end, now or as soon as it begins.
    func end(_ unit: Int) { release(unit)?(nil) }

    func endAll() { for unit in held { end(unit) } }
}
#endif
