import Foundation
import OperationKit
import OperationKitTestSupport

// Conditions and timeouts.
extension ProgramOracle {
    mutating func judgePolicies(_ node: StressNode) {
        for index in node.policies.conditions.indices { judgeCondition(index, of: node) }
        judgeTime(node)
    }

    /// What its policies made the node end with, instead of its work.
    func policyOutcome(of node: StressNode) -> StressOutcome? {
        guard case .fails(let outcome) = node.decision else { return nil }
        if case .condition(_, let index) = outcome, log.evaluations[node.id]?[index]?.ended.isEmpty != false {
            return nil
        }
        return outcome
    }

    /// Conditions are evaluated at most once, in their order, after everything that the operation depends on, and before its
    /// work.
    private mutating func judgeCondition(_ index: Int, of node: StressNode) {
        let condition = node.policies.conditions[index]
        let name = "condition \(index) of \(node.name)"
        let (began, ended) = log.evaluations[node.id]?[index] ?? ([], [])
        if began.count > 1 { complain("\(name) was evaluated \(began.count) times") }
        if began.count != ended.count { complain("\(name) began \(began.count) times and ended \(ended.count) times") }
        if let begin = beginning(of: node) {
            if condition.answer != .satisfied || ended.first.map({ $0 > begin }) != false {
                complain("\(node.name) ran, although \(name) was not satisfied")
            }
        }
        guard let first = began.first else { return }
        if !runs(node) { complain("\(name) was evaluated, and \(node.name) was refused") }
        for id in node.awaited { requireEnd(of: id, before: first, of: node) }
        if node.waitsForExternal, (log.externalEnded ?? .max) > first || node.waitsForever {
            complain("\(name) was evaluated before its external dependency had ended")
        }
        if let stopper = cancelledBeforeStart(node.id) {
            complain("\(name) was evaluated, although n\(stopper) had been told to end before the start")
        }
        if let outcome = dependencyOutcome(of: node) {
            complain("\(name) was evaluated, although \(node.name) should have ended with \(outcome)")
        }
        if index > 0 {
            let previous = log.evaluations[node.id]?[index - 1]?.ended.first
            if previous ?? .max > first || node.policies.conditions[index - 1].answer != .satisfied {
                complain("\(name) was evaluated, and not the one before")
            }
        }
        if let prerequisite = condition.prerequisite {
            let ends = log.prerequisites[prerequisite.key(node.id, index)]?.ended ?? []
            if prerequisite.fails || !ends.contains(where: { $0.position < first }) {
                complain("\(name) was evaluated without its prerequisite")
            }
        }
        // The evaluation of an operation that is cancelled goes on without it.
        if let end = log.completed[node.id]?.first, !end.isCancelled, !facts.isDisturbed(node.id), end.position < first
        {
            complain("\(name) was evaluated after its end")
        }
    }

    /// A run that is shared is the only one, unless it was cancelled.
    mutating func judgePrerequisites() {
        for (key, runs) in log.prerequisites.sorted(by: { $0.key < $1.key }) {
            if runs.began.count != runs.ended.count {
                complain("prerequisite “\(key)” began \(runs.began.count) times, and ended \(runs.ended.count) times")
            }
            if !key.hasPrefix("shared"), runs.began.count > 1 {
                complain("prerequisite “\(key)” ran \(runs.began.count) times")
            }
            var open = 0
            var mayOverlap = false
            var changes = runs.began.map { ($0, true, false) } + runs.ended.map { ($0.position, false, $0.isCancelled) }
            changes.sort { $0.0 < $1.0 }
            for (_, begins, isCancelled) in changes {
                open += begins ? 1 : -1
                mayOverlap = mayOverlap || isCancelled
                if open > 1, !mayOverlap, !runs.ended.contains(where: \.isCancelled) {
                    return complain("prerequisite “\(key)” ran twice at the same time")
                }
            }
        }
    }

    /// Time is over for nothing earlier than it is.
    private mutating func judgeTime(_ node: StressNode) {
        guard let (position, outcome, _) = log.completed[node.id]?.first else { return }
        let earliest = log.earliestTime(at: earliestStart(of: node))
        let passed = log.latestTime(at: position) - earliest
        if node.leaf?.kind == .delay, outcome == .success, passed < node.delay, given(to: node) == nil {
            complain("\(node.name) ended after \(passed) s instead of \(node.delay) s")
        }
        if outcome == .impatient(node.id), let patience = node.policies.patience, passed < patience {
            complain("\(node.name) gave up after \(passed) s instead of \(patience) s")
        }
        guard isTimeout(outcome, of: node) else { return }
        switch node.policies.timeout {
        case nil, .never: complain("\(node.name) was too late, and has no timeout")
        case .zero: if beginning(of: node) != nil { complain("\(node.name) ran, and had no time") }
        case .seconds(let seconds):
            if passed < seconds { complain("\(node.name) was too late after \(passed) s instead of \(seconds) s") }
        }
    }

    private func isTimeout(_ outcome: StressOutcome, of node: StressNode) -> Bool {
        if case .report(let report) = outcome { return report.reason == .timeout(node.id) }
        return outcome == .timeout(node.id)
    }

    /// A position in the log before which the time of the node's work cannot have begun.
    func earliestStart(of node: StressNode) -> Int {
        let made = log.made[node.id] ?? 0
        let evaluated = (log.evaluations[node.id] ?? [:]).values.compactMap(\.ended.first).max() ?? 0
        let awaited = node.awaited.compactMap { log.completed[$0]?.first?.position }.max() ?? 0
        let around = facts.isStarted(node.id) ? nil : facts.parents[node.id].flatMap { log.began[$0]?.first }
        return max(made, evaluated, awaited, around ?? 0)
    }
}
