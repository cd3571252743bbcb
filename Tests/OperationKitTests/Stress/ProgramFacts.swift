import Foundation
import OperationKit

/// What a program alone says about what has to happen, before anything has run.
struct ProgramFacts {
    let program: StressProgram
    private(set) var nodes: [Int: StressNode] = [:]
    private(set) var parents: [Int: Int] = [:]
    /// The actions by their targets.
    private var actions: [Int: [StressAction]] = [:]
    /// The nodes that something may keep from running, or make end otherwise.
    private var disturbed: Set<Int> = []
    /// The nodes that are, or are inside of, an addition, with the number of that action.
    private(set) var addedBy: [Int: Int] = [:]

    init(_ program: StressProgram) {
        self.program = program
        for action in program.actions { actions[action.effect.target, default: []].append(action) }
        note(program.root)
        for (index, node, target) in program.additions {
            parents[node.id] = target
            note(node)
            for node in node.subtree { addedBy[node.id] = index }
        }
        disturb(program.root, false)
        // An addition may be to an addition, but only to an earlier one.
        for (_, node, target) in program.additions { disturb(node, disturbsChildren(of: target)) }
    }

    private mutating func note(_ node: StressNode) {
        nodes[node.id] = node
        for child in node.children {
            parents[child.id] = node.id
            note(child)
        }
    }

    private mutating func disturb(_ node: StressNode, _ isAroundDisturbed: Bool) {
        if isAroundDisturbed || isInterrupted(node.id) { disturbed.insert(node.id) }
        let disturbsChildren = disturbsChildren(of: node.id)
        for child in node.children { disturb(child, disturbsChildren) }
    }

    private func disturbsChildren(of id: Int) -> Bool {
        guard let node = nodes[id] else { return true }
        if disturbed.contains(id) { return true }
        if node.compound?.policy == .cancelRemaining {
            return mayFail(node, additionsToo: true)
        }
        return node.isChain && node.children.contains { isInterrupted($0.id) }
    }

    func actions(on id: Int) -> [StressAction] { actions[id] ?? [] }

    func isInterrupted(_ id: Int) -> Bool { actions(on: id).contains(where: \.effect.interrupts) }

    func isDisturbed(_ id: Int) -> Bool { disturbed.contains(id) }

    func isSqueezed(_ id: Int) -> Bool {
        actions(on: id).contains { if case .squeeze = $0.effect { true } else { false } }
    }

    /// Whether its work may begin when it has ended already: that of a task does, if it was finished by others meanwhile.
    func mayBeLeftBehind(_ id: Int) -> Bool {
        guard nodes[id]?.leaf?.kind == .task else { return false }
        return actions(on: id).contains { if case .finish = $0.effect { true } else { false } }
    }

    /// Those that it is inside of, from the nearest to the root.
    func ancestors(of id: Int) -> [Int] {
        Array(sequence(first: id) { parents[$0] }.dropFirst())
    }

    /// Its direct children, those that may be added included, in the order of their indices as far as that is known.
    func children(of id: Int) -> [StressNode] {
        (nodes[id]?.children ?? []) + program.additions.filter { $0.target == id }.map(\.node)
    }

    /// All inside it, additions included.
    func descendants(of id: Int) -> [Int] {
        children(of: id).flatMap { [$0.id] + descendants(of: $0.id) }
    }

    /// Whether it could end with a failure, as far as one can tell.
    private func mayFail(_ node: StressNode, additionsToo: Bool) -> Bool {
        let isGivenFailure = actions(on: node.id).contains { action in
            switch action.effect {
            case .cancelWithReason, .finish: true
            case .cancel, .cancelSuspended, .pause, .squeeze, .add: false
            }
        }
        if isGivenFailure || node.leaf?.fails == true { return true }
        if case .collection(let collection) = node.work { return collection.units.contains(true) }
        return children(of: node.id).contains { mayFail($0, additionsToo: additionsToo) }
    }
}

// What can be predicted exactly.
extension ProgramFacts {
    /// How a node has to end if it runs, where nothing makes that uncertain.
    func predicted(_ node: StressNode) -> StressOutcome? {
        if isDisturbed(node.id) { return nil }
        switch node.work {
        case .leaf(let leaf):
            let canFail = leaf.kind != .block && leaf.kind != .foreign || isStep(node.id)
            return leaf.fails && canFail ? .failed(node.id) : .success
        case .macro(let steps), .waterfall(let steps):
            if steps.contains(where: { isDisturbed($0.id) }) { return nil }
            return steps.first { $0.leaf?.fails == true }.map { .failed($0.id) } ?? .success
        case .collection(let collection):
            let failing = collection.units.indices.filter { collection.units[$0] }
            if collection.policy == .cancelRemaining, !failing.isEmpty { return nil }
            return ProgramFacts.report(of: node, units: collection, failing: failing, isCancelled: false)
        case .compound(let compound):
            if children(of: node.id).count != compound.children.count { return nil }
            var failures: [StressReport.Failure] = []
            for (index, child) in compound.children.enumerated() {
                guard let outcome = predicted(child) else { return nil }
                if outcome.isFailure {
                    let siblings = compound.children.count
                    failures.append(.init(name: child.name, index: index, outcome: outcome, siblings: siblings))
                }
            }
            if failures.isEmpty { return .success }
            return .report(StressReport(isCancellation: false, name: node.name, failures: failures))
        }
    }

    /// Whether a node has to run, provided that it was made and accepted.
    func mustRun(_ id: Int) -> Bool {
        if isDisturbed(id) { return false }
        guard let parent = parents[id] else { return true }
        guard let around = nodes[parent], mustRun(parent) else { return false }
        guard around.isChain else { return true }
        return around.children.prefix { $0.id != id }.allSatisfy { predicted($0) == .success }
    }

    func isStep(_ id: Int) -> Bool { parents[id].flatMap { nodes[$0] }?.isChain ?? false }

    /// Whether the node becomes an operation. Some jobs of waterfalls do not.
    func isOperation(_ node: StressNode) -> Bool {
        if let parent = parents[node.id], nodes[parent]?.isWaterfall == true { return !node.isClosure }
        return true
    }

    /// Whether it calls an `asyncCompletionBlock`.
    func isAsynchronous(_ node: StressNode) -> Bool {
        guard let leaf = node.leaf, !isStep(node.id) else { return true }
        return leaf.kind != .block && leaf.kind != .throwing && leaf.kind != .foreign
    }

    /// How a collection has to end with these units failing.
    static func report(
        of node: StressNode, units: StressCollection, failing: [Int], isCancelled: Bool, reason: StressOutcome? = nil
    ) -> StressOutcome {
        let word = units.strategy.isBatch ? "batch" : "item"
        let failures = failing.map { unit in
            StressReport.Failure(
                name: "\(word) \(unit)", index: unit, outcome: .unit(unit), siblings: units.units.count)
        }
        if !isCancelled, failures.isEmpty { return .success }
        return .report(
            StressReport(isCancellation: isCancelled, name: node.name, failures: failures, reason: reason))
    }
}
