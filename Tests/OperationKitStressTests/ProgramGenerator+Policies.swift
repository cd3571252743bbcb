import OperationKitTestSupport

// Conditions and timeouts.
extension ProgramGenerator {
    /// Gives an operation policies, once in so many times.
    mutating func addPolicies(to node: inout StressNode) {
        if node.leaf?.kind == .stuck { node.policies.timeout = .seconds(1 + pick(6)) }
        guard node.isAsynchronous, chance(4) else { return }
        if chance(2) {
            for _ in 0...pick(2) { node.policies.conditions.append(condition()) }
        }
        if node.policies.timeout == nil, chance(2) { node.policies.timeout = timeout() }
    }

    /// Policies that let the root run.
    mutating func rootPolicies() -> StressPolicies {
        var policies = StressPolicies()
        if chance(8) {
            var condition = condition()
            if isCalm {
                condition.answer = .satisfied
                condition.prerequisite?.fails = false
            }
            policies.conditions = [condition]
        }
        if chance(8) { policies.timeout = isCalm ? .never : timeout() }
        return policies
    }

    /// One that answers only when its operation is cancelled, for one that certainly is.
    mutating func conditionUntilCancelled() -> StressCondition {
        StressCondition(answer: element(of: StressCondition.Answer.allCases), wait: .untilCancelled)
    }

    private mutating func condition() -> StressCondition {
        var condition = StressCondition(wait: element(of: [.none, .yields, .yields, .gate]))
        if chance(3) { condition.answer = element(of: StressCondition.Answer.allCases) }
        if chance(4) { condition.prerequisite = StressPrerequisite(fails: chance(5), isShared: chance(2)) }
        return condition
    }

    private mutating func timeout() -> StressTimeout {
        element(of: [.never, .never, .seconds(1 + pick(6)), isCalm || chance(2) ? .never : .zero])
    }
}
