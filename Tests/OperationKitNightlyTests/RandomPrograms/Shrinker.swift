import OperationKitTestSupport

/// Makes a program that fails smaller, as long as it still fails: removes nodes and actions, many at the same time and then fewer
/// (delta debugging).
struct Shrinker {
    /// Whether a program fails. Where a race decides, it has to be run often enough.
    let fails: (StressProgram) -> Bool
    /// How many programs to try at most.
    var budget = 2_000

    /// - Returns: A program that fails, and no longer does without any of its parts, unless the budget was used up.
    mutating func shrink(_ program: StressProgram) -> StressProgram {
        var smallest = program
        var size = max(1, parts(of: smallest).count / 2)
        while true {
            var start = 0
            while start < parts(of: smallest).count {
                let chosen = parts(of: smallest)[start...].prefix(size)
                let candidate = smallest.removing(
                    nodes: Set(chosen.compactMap(\.node)), actions: Set(chosen.compactMap(\.action)))
                if isBetter(candidate, than: smallest) { smallest = candidate } else { start += size }
            }
            if size == 1 { return smallest }
            size = max(1, size / 2)
        }
    }

    /// Whether the candidate is another program, and fails.
    private mutating func isBetter(_ candidate: StressProgram, than program: StressProgram) -> Bool {
        guard candidate != program, budget > 0 else { return false }
        budget -= 1
        return fails(candidate)
    }

    private enum Part {
        case node(Int), action(Int)

        var node: Int? { if case .node(let id) = self { id } else { nil } }
        var action: Int? { if case .action(let index) = self { index } else { nil } }
    }

    /// Actions first: most of them have nothing to do with a failure, and without them more nodes can go.
    private func parts(of program: StressProgram) -> [Part] {
        program.actions.indices.map(Part.action)
            + program.nodes.filter { $0.id != program.root.id }.map { .node($0.id) }
    }
}

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
}

extension StressNode {
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

    /// The node with other nodes inside.
    private func with(children: [StressNode]) -> StressNode {
        var node = self
        switch work {
        case .leaf: break
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
}
