import Foundation
import OperationKit

// Programs that are a little smaller than a program, for the shrinker.
extension StressProgram {
    /// The program without these nodes and all that is inside them, and without these actions; and without the
    /// dependencies and actions that concern what is gone.
    func removing(nodes removed: Set<Int>, actions removedActions: Set<Int> = []) -> StressProgram {
        var program = self
        program.root = root.removing(removed) ?? root
        program.actions = actions.indices.compactMap { index -> StressAction? in
            if removedActions.contains(index) { return nil }
            guard case .add(let node, let target) = actions[index].effect else { return actions[index] }
            return node.removing(removed).map {
                StressAction(trigger: actions[index].trigger, effect: .add($0, to: target))
            }
        }
        return program.withoutLooseEnds
    }

    private var withoutLooseEnds: StressProgram {
        var program = self
        while true {
            let ids = Set(program.nodes.map(\.id))
            let kept = program.actions.filter { action in
                if case .inside(let id) = action.trigger, !ids.contains(id) { return false }
                if let source = action.effect.source, !ids.contains(source) { return false }
                return ids.contains(action.effect.target)
            }
            if kept.count < program.actions.count {
                program.actions = kept
                continue
            }
            program.root = program.root.keepingDependencies(on: ids)
            for index in program.actions.indices {
                guard case .add(let node, let target) = program.actions[index].effect else { continue }
                program.actions[index].effect = .add(node.keepingDependencies(on: ids), to: target)
            }
            return program
        }
    }

    /// Every program that differs from this one in a single thing, which is simpler in it.
    var simplifications: [StressProgram] {
        var programs: [StressProgram] = []
        for node in nodes {
            for simpler in node.simplifications { programs.append(replacing(node.id, by: simpler)) }
        }
        for index in actions.indices {
            for simpler in actions[index].simplifications {
                var program = self
                program.actions[index] = simpler
                programs.append(program)
            }
        }
        for (index, node, target) in additions {
            if let program = settling(index, node, target) { programs.append(program) }
        }
        func add(_ change: (inout StressProgram) -> Void) {
            var program = self
            change(&program)
            if program != self { programs.append(program) }
        }
        add { $0.start = .queue }
        add { $0.keepsReferences = true }
        add { $0.observesProgress = false }
        add { $0.sharesProgress = false }
        add { $0.probesLocks = false }
        add { $0.isExternalStock = false }
        add { $0.observation = .none }
        return programs
    }

    /// The program with the node of an addition there from the beginning.
    private func settling(_ action: Int, _ node: StressNode, _ target: Int) -> StressProgram? {
        guard let around = nodes.first(where: { $0.id == target }) else { return nil }
        var program = self
        program.actions.remove(at: action)
        return program.replacing(target, by: [around.with(children: around.children + [node])])
    }

    private func replacing(_ id: Int, by nodes: [StressNode]) -> StressProgram {
        var program = self
        if id == root.id {
            guard nodes.count == 1, nodes[0].compound != nil else { return self }
            program.root = nodes[0]
        } else {
            program.root = root.replacing(id, by: nodes)
        }
        for index in actions.indices {
            guard case .add(let node, let target) = actions[index].effect else { continue }
            let replaced = node.id == id ? nodes : [node.replacing(id, by: nodes)]
            if replaced.count == 1 { program.actions[index].effect = .add(replaced[0], to: target) }
        }
        return program.withoutLooseEnds
    }
}

extension StressNode {
    /// The node with other nodes inside.
    func with(children: [StressNode]) -> StressNode {
        var node = self
        switch work {
        case .leaf, .collection, .retry: break
        case .compound(var compound):
            compound.children = children
            node.work = .compound(compound)
        case .gathering(var compound):
            compound.children = children
            node.work = .gathering(compound)
        case .macro: node.work = .macro(children)
        case .waterfall: node.work = .waterfall(children)
        case .recovery: if children.count == 2 { node.work = .recovery(children[0], children[1]) }
        }
        return node
    }

    /// - Returns: `nil` if nothing is left of it. A macro has at least one step, and a recovery has both.
    fileprivate func removing(_ removed: Set<Int>) -> StressNode? {
        if removed.contains(id) || isRecovery && children.contains(where: { removed.contains($0.id) }) { return nil }
        let node = with(children: children.compactMap { $0.removing(removed) })
        if case .macro(let steps) = node.work, steps.isEmpty { return nil }
        return node
    }

    fileprivate func keepingDependencies(on ids: Set<Int>) -> StressNode {
        var node = with(children: children.map { $0.keepingDependencies(on: ids) })
        node.after.removeAll { !ids.contains($0) }
        node.requires.removeAll { !ids.contains($0) }
        return node
    }

    fileprivate func replacing(_ id: Int, by nodes: [StressNode]) -> StressNode {
        with(children: children.flatMap { $0.id == id ? nodes : [$0.replacing(id, by: nodes)] })
    }

    /// What may be in its place: each has one thing less.
    fileprivate var simplifications: [[StressNode]] {
        var all: [[StressNode]] = []
        func add(_ change: (inout StressNode) -> Void) {
            var node = self
            change(&node)
            if node != self { all.append([node]) }
        }
        for index in after.indices { add { $0.after.remove(at: index) } }
        for index in requires.indices { add { $0.requires.remove(at: index) } }
        add { $0.waitsForExternal = false }
        add { $0.waitsForever = false }
        add { $0.dropsDependency = false }
        for index in policies.conditions.indices {
            add { $0.policies.conditions.remove(at: index) }
            add { $0.policies.conditions[index].prerequisite = nil }
            let isCertain = policies.conditions[index].wait != .untilCancelled
            if isCertain { add { $0.policies.conditions[index].wait = .none } }
        }
        for index in policies.resources.indices {
            add {
                $0.policies.resources.remove(at: index)
                if $0.policies.resources.isEmpty { $0.policies.patience = nil }
            }
        }
        add { $0.policies.hasCircuit = false }
        // What waits forever would never end.
        if leaf?.kind != .stuck { add { $0.policies.timeout = nil } }
        let waits = waitsForever || policies.conditions.contains { $0.wait == .untilCancelled }
        if !waits { add { $0.entry = .fresh } }
        add { $0.priority = .normal }
        switch work {
        case .leaf(let leaf):
            add { $0.work = .leaf(StressLeaf(kind: .inline, fails: leaf.fails, finishesTwice: leaf.finishesTwice)) }
            add { $0.work = .leaf(StressLeaf(kind: leaf.kind, fails: false, finishesTwice: leaf.finishesTwice)) }
            add { $0.work = .leaf(StressLeaf(kind: leaf.kind, fails: leaf.fails, finishesTwice: false)) }
        case .compound(let compound):
            // Its children in its place: those are without dependencies on others then.
            all.append(compound.children)
            let children = compound.children
            add {
                $0.work = .compound(StressCompound(limit: compound.limit, policy: compound.policy, children: children))
            }
            add {
                $0.work = .compound(
                    StressCompound(policy: compound.policy, prepares: compound.prepares, children: children))
            }
            add {
                $0.work = .compound(
                    StressCompound(limit: compound.limit, prepares: compound.prepares, children: children))
            }
        case .gathering(let compound):
            add { $0.work = .gathering(StressCompound(limit: compound.limit, children: compound.children)) }
            add { $0.work = .gathering(StressCompound(policy: compound.policy, children: compound.children)) }
            if let first = children.first { add { $0.work = first.work } }
        case .macro, .waterfall, .recovery:
            // A single step with the same number.
            if let first = children.first { add { $0.work = first.work } }
        case .collection(let collection):
            for index in collection.units.indices {
                var smaller = collection
                smaller.units.remove(at: index)
                add { $0.work = .collection(smaller) }
            }
            var complete = collection
            complete.lostUnit = nil
            add { $0.work = .collection(complete) }
            add { $0.work = .leaf(StressLeaf(kind: .inline)) }
        case .retry(let retry):
            add { $0.work = .retry(StressRetry(failures: 0, maximum: 1, delay: 0, resource: retry.resource)) }
            if retry.resource != nil {
                var simple = retry
                simple.resource = nil
                add { $0.work = .retry(simple) }
            }
            add { $0.work = .leaf(StressLeaf(kind: .inline)) }
        }
        return all
    }
}

extension StressAction {
    fileprivate var simplifications: [StressAction] {
        var triggers: [Trigger] = []
        switch trigger {
        case .beforeStart: break
        case .inside: triggers = [.beforeStart]
        case .outside(let thread, let delay):
            triggers = [.beforeStart]
            if delay > 1 { triggers.append(.outside(thread: thread, delay: 1)) }
        }
        var simpler = triggers.map { StressAction(trigger: $0, effect: effect) }
        if case .cancelWithReason(let id) = effect {
            simpler.append(StressAction(trigger: trigger, effect: .cancel(id)))
        }
        if case .cancelSuspended(let id) = effect {
            simpler.append(StressAction(trigger: trigger, effect: .cancel(id)))
        }
        return simpler
    }
}
