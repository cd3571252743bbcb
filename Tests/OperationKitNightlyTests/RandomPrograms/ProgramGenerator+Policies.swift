import OperationKitTestSupport

// Conditions, timeouts, attempts and resources.
extension ProgramGenerator {
    /// Gives an operation policies, once in so many times.
    mutating func addPolicies(to node: inout StressNode) {
        if node.leaf?.kind == .stuck { node.policies.timeout = .seconds(1 + pick(6)) }
        guard node.isAsynchronous, chance(4) else { return }
        if chance(2) {
            for _ in 0...pick(2) { node.policies.conditions.append(condition()) }
        }
        if node.policies.timeout == nil, chance(2) { node.policies.timeout = timeout(ofLeaf: node.leaf != nil) }
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
        if chance(8) { policies.timeout = isCalm ? .never : timeout(ofLeaf: false) }
        return policies
    }

    /// One that answers only when its operation is cancelled, for one that certainly is.
    mutating func conditionUntilCancelled() -> StressCondition {
        StressCondition(answer: element(of: StressCondition.Answer.allCases), wait: .untilCancelled)
    }

    private mutating func condition() -> StressCondition {
        var condition = StressCondition(wait: element(of: [.none, .yields, .yields, .gate]))
        if chance(3) { condition.answer = element(of: StressCondition.Answer.allCases) }
        if chance(4) { condition.prerequisite = StressPrerequisite(fails: chance(5)) }
        return condition
    }

    /// Only leaves have no time at all: what a composite ends with then depends on its kind.
    private mutating func timeout(ofLeaf isLeaf: Bool) -> StressTimeout {
        element(of: [.never, .never, .seconds(1 + pick(6)), isCalm || !isLeaf || chance(2) ? .never : .zero])
    }

    mutating func retry() -> StressRetry {
        let form = element(of: [.retry] + StressRetry.Form.allCases)
        return StressRetry(
            form: form, failures: pick(4), maximum: 1 + pick(3), delay: pick(3), areStuck: form == .retry && chance(4),
            hops: chance(2))
    }
}

// Resources, when the program is complete.
extension ProgramGenerator {
    mutating func addResources(to program: inout StressProgram) {
        program.root = withResources(program.root, around: [])
        for index in program.actions.indices {
            guard case .add(let node, let target) = program.actions[index].effect else { continue }
            let held = program.resources(around: target)
            program.actions[index].effect = .add(withResources(node, around: held), to: target)
        }
    }

    /// Operations inside one that holds something may wait for good for what others hold, around operations that need what is
    /// held here. Time ends that.
    private mutating func withResources(_ node: StressNode, around: Set<StressResource>) -> StressNode {
        var node = node
        if node.isAsynchronous, !node.isClosure, chance(node.children.isEmpty ? 2 : 5) {
            node.policies.resources = chance(3) ? [.first, .second] : [element(of: StressResource.allCases)]
            if chance(5) { node.policies.resources = StressResource.allCases }
            if chance(isCalm ? 12 : 4) || !around.isEmpty { node.policies.patience = pick(4) }
        }
        if node.isAsynchronous, !node.isClosure, node.children.isEmpty, chance(6) { node.policies.hasCircuit = true }
        let held = around.union(node.policies.resources)
        if case .retry(var retry) = node.work, held.isEmpty, chance(2) {
            retry.resource = element(of: StressResource.allCases)
            node.work = .retry(retry)
        }
        return node.with(children: node.children.map { withResources($0, around: held) })
    }
}

extension StressProgram {
    /// What a node requires, and those that it is inside of.
    fileprivate func resources(around id: Int) -> Set<StressResource> {
        var resources: Set<StressResource> = []
        var next: Int? = id
        while let id = next {
            resources.formUnion(nodes.first { $0.id == id }?.policies.resources ?? [])
            next =
                additions.first { $0.node.id == id }?.target ?? nodes.first { $0.children.contains { $0.id == id } }?.id
        }
        return resources
    }
}
