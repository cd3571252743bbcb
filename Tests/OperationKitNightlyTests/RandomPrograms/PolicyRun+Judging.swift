#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

// Judges what has become of the operations of a program.
extension PolicyRun {
    func judgeEnds() {
        for unit in units.value where !unit.isLoose && unit.node.kind != .foreign {
            let state = unit.state.value
            if state.ends > 1 || state.completions > state.ends || state.hasWorked && state.ends == 0 {
                problems.add("\(unit.name) has ended \(state.ends) times, and completed \(state.completions) times")
            }
            if state.hasWorked, !state.isSteered, let problem = lostError(of: unit, state.error) {
                problems.add("\(unit.name) \(problem)")
            }
        }
        for (limit, uses) in zip(Self.limits, uses.value).dropFirst(PolicyGenerator.heldCount) {
            for (first, next) in zip(uses.map(\.ready).sorted(), uses.map(\.main).sorted().dropFirst(limit)) {
                if next - first < Self.ratePeriod { problems.add("\(limit + 1) began within \(next - first)") }
            }
        }
        let retried = Set(units.value.filter { $0.node.kind == .retriedTask }.map(\.name))
        for (name, events) in Dictionary(grouping: observed.events, by: { String($0.dropFirst(2)) }) {
            // A closure that is retried runs again after each attempt that had to wait.
            let again = retried.contains(name) ? events.filter { $0.hasPrefix("2") }.dropFirst() : []
            if (Array(Set(events)) + again).sorted() != events { problems.add("events of \(name): \(events)") }
        }
    }

    private func lostError(of unit: PolicyUnit, _ error: (any Error)?) -> String? {
        let children = units.value.filter { $0.parent === unit }.map { ($0.name, $0.state.value) }.filter {
            $1.ends > 0 && !$1.isDropped
        }
        switch unit.node.kind {
        case .compound:
            // What did not run because of another child is counted with that.
            let failed = children.filter { $1.error?.isCancellation == false && !($1.error is DependencyError) }
                .map(\.0).sorted()
            let reported = (error as? CompoundOperationError)?.suboperationErrors.map(\.name) ?? []
            return failed == reported.sorted() ? nil : "reports \(reported) of \(failed)"
        case .macro, .waterfall, .workflow, .repetition, .gathering:
            // A step with an outcome that it was given from outside may decide.
            let isLost = children.contains { $1.error != nil } && !children.contains { $1.isSteered }
            return error == nil && isLost ? "loses an error" : nil
        case .losing: return error == nil ? "succeeds without an outcome" : nil
        case .retry, .hedge, .recovery:
            return error == nil && children.allSatisfy { $1.error != nil } ? "loses its error" : nil
        default: return nil
        }
    }

    /// Lets go of everything: nothing is left, and all resources can be had.
    func letGo() {
        (roots.value, tasks.value) = ([], [])
        let names = Set(resources.value.map(\.name))
        if !eventually({ names.isSuperset(of: tracker.alive) }) { problems.add("still alive: \(tracker.alive)") }
        for index in Self.limits.indices where !eventually({ canBeHad(index) }) {
            problems.add("“\(resources.value[index].name)” cannot be had")
        }
        if !eventually(isClosed) { problems.add("the circuit breaker stays \(circuit.value?.state as Any)") }
        if let manualClock { tracker.track(manualClock.timer, "timer") }
        resources.value = []
        circuit.value = nil
        if !eventually({ tracker.alive.isEmpty }) { problems.add("still alive: \(tracker.alive)") }
        if !eventually(passingTime: false, { manualClock?.deadlines.isEmpty ?? true }) {
            problems.add("the clock is slept on until \(manualClock?.deadlines ?? [])")
        }
    }

    /// Whether as many operations as may get a resource at the same time.
    private func canBeHad(_ index: Int) -> Bool {
        // Permits that were used return together if none is used meanwhile.
        let start = time
        if index >= PolicyGenerator.heldCount { _ = eventually { time - start > Self.ratePeriod * 2 } }
        // One that is granted just now on another thread may begin later.
        let begun = Shared<[FinishHandle<Void>]?>([])
        for _ in 0..<Self.limits[index] {
            let operation = AsyncBlockOperation(name: "p0.0") { finish in
                if begun.change({ $0?.append(finish) }) == nil { finish(nil) }
            }
            operation.require(resources.value[index], within: .zero)
            operation.start()
        }
        let finishes = begun.change { $0.take() } ?? []
        for finish in finishes { finish(nil) }
        return finishes.count == Self.limits[index]
    }

    private func isClosed() -> Bool {
        guard let circuit = circuit.value, circuit.state != .closed else { return true }
        let operation = AsyncBlockOperation { $0(nil) }
        operation.require(circuit)
        operation.start()
        return circuit.state == .closed
    }
}
#endif
