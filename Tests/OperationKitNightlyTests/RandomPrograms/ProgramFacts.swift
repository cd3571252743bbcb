import OperationKitTestSupport

/// What a program alone says about what has to happen, before anything has run.
struct ProgramFacts {
    let program: StressProgram
    private(set) var nodes: [Int: StressNode] = [:]
    private(set) var parents: [Int: Int] = [:]
    /// The actions by their targets.
    private var actions: [Int: [StressAction]] = [:]
    /// The nodes that something may keep from running, or make end otherwise.
    private var disturbed: Set<Int> = []
    /// The nodes that an operation beside them may cancel with its queue.
    private var cancelledWithQueue: Set<Int> = []
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
        noteQueueCancellations()
        // What disturbs an operation disturbs those that require its success, and these may come before it.
        var count = -1
        while count < disturbed.count {
            count = disturbed.count
            disturb(program.root, false)
            // An addition may be to an addition, but only to an earlier one.
            for (_, node, target) in program.additions { disturb(node, disturbsChildren(of: target)) }
        }
    }

    /// Those that a queue begins are cancelled with it: operations that do not finish by themselves, and others whose
    /// dependencies are just being counted down when their turn comes.
    private mutating func noteQueueCancellations() {
        for action in program.actions {
            guard case .cancelQueue(let id) = action.effect, let parent = parents[id] else { continue }
            let dependents = Set(
                program.actions.compactMap { if case .depend(let id, _) = $0.effect { id } else { nil } })
            for node in children(of: parent) {
                let waits =
                    !node.awaited.isEmpty || node.waitsForExternal || node.dropsDependency || isStep(node.id)
                    || dependents.contains(node.id)
                if waits || node.leaf?.isStock == true { cancelledWithQueue.insert(node.id) }
            }
        }
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
        if node.requires.contains(where: { !mustSucceed($0) }) { return true }
        if node.limitedChildren?.policy == .cancelRemaining {
            return mayFail(node, additionsToo: true)
        }
        return node.isChain && node.children.contains { isInterrupted($0.id) }
    }

    func actions(on id: Int) -> [StressAction] { actions[id] ?? [] }

    func isInterrupted(_ id: Int) -> Bool {
        nodes[id]?.entry.isCancelled == true || cancelledWithQueue.contains(id)
            || actions(on: id).contains(where: \.effect.interrupts)
    }

    /// Whether nothing can keep it from succeeding.
    private func mustSucceed(_ id: Int) -> Bool {
        guard let node = nodes[id] else { return false }
        return !isDisturbed(id) && predicted(node) == .success
    }

    /// Whether it was started by hand, so that it does not heed what is around it.
    func isStarted(_ id: Int) -> Bool { nodes[id]?.entry.isStarted == true }

    func isDisturbed(_ id: Int) -> Bool { disturbed.contains(id) }

    func isSqueezed(_ id: Int) -> Bool {
        actions(on: id).contains { if case .squeeze = $0.effect { true } else { false } }
    }

    /// Whether an operation of another library, inside a compound, finishes in its own `cancel()`.
    func endsInCancel(_ node: StressNode) -> Bool {
        node.leaf?.kind == .foreign && parents[node.id] != nil && !isStep(node.id) && node.id % 3 == 1
    }

    /// Whether such an operation is ready only some time after it was made.
    func isReadyLate(_ node: StressNode) -> Bool {
        node.leaf?.kind == .foreign && parents[node.id] != nil && !isStep(node.id) && node.id % 3 == 2
    }

    /// Whether its work may begin when it has ended already: that of a task does, if it was finished by others meanwhile.
    func mayBeLeftBehind(_ id: Int) -> Bool {
        if let node = nodes[id], endsInCancel(node) { return true }
        guard nodes[id]?.leaf?.isTask == true else { return false }
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
            case .cancel, .cancelSuspended, .pause, .squeeze, .add, .cancelTask, .cancelQueue, .useQueue, .depend,
                .addAgain, .addCycle, .describe:
                false
            }
        }
        if isGivenFailure || !node.requires.isEmpty { return true }
        if let leaf = node.leaf { return leaf.outcome(of: node.id) != .success }
        return children(of: node.id).contains { mayFail($0, additionsToo: additionsToo) }
    }
}

// What can be predicted exactly.
extension ProgramFacts {
    /// How a node has to end if it runs, where nothing makes that uncertain.
    func predicted(_ node: StressNode) -> StressOutcome? {
        if isDisturbed(node.id) { return nil }
        for id in node.requires {
            guard let source = nodes[id], let outcome = predicted(source) else { return nil }
            if outcome != .success { return dependency(of: source, outcome) }
        }
        switch node.work {
        case .leaf(let leaf):
            return canFail(node, leaf) ? leaf.outcome(of: node.id) : .success
        case .macro(let steps), .waterfall(let steps):
            if steps.contains(where: { isDisturbed($0.id) }) { return nil }
            for step in steps {
                if let outcome = step.leaf?.outcome(of: step.id), outcome != .success { return outcome }
            }
            return .success
        case .recovery(let source, let made):
            guard !isDisturbed(made.id), let outcome = predicted(source) else { return nil }
            return outcome == .success ? .success : predicted(made)
        case .compound(let compound), .gathering(let compound):
            if children(of: node.id).count != compound.children.count { return nil }
            var outcomes: [StressOutcome] = []
            for child in compound.children {
                guard let outcome = predicted(child) else { return nil }
                outcomes.append(outcome)
            }
            let causes = causes(in: node, zip(compound.children, outcomes).filter { $1.isFailure })
            var failures = causes.compactMap { cause in
                compound.children.firstIndex { $0.id == cause.reported[0] }.map { index in
                    StressReport.Failure(
                        name: compound.children[index].name, index: index, outcome: outcomes[index],
                        siblings: outcomes.count, blocked: cause.blocked)
                }
            }
            failures.sort { $0.index < $1.index }
            if failures.isEmpty { return .success }
            return .report(StressReport(isCancellation: false, name: node.name, failures: failures))
        }
    }

    /// Whether a node has to run, provided that it was made and accepted.
    func mustRun(_ id: Int) -> Bool {
        if isDisturbed(id) { return false }
        if nodes[id]?.requires.contains(where: { !mustSucceed($0) }) == true { return false }
        guard let parent = parents[id] else { return true }
        guard let around = nodes[parent], mustRun(parent) else { return false }
        guard around.isChain else { return true }
        return around.children.prefix { $0.id != id }.allSatisfy { step in
            guard let outcome = predicted(step) else { return false }
            return leadsOn(outcome, in: around)
        }
    }

    /// Whether the next step runs after one that has ended so.
    func leadsOn(_ outcome: StressOutcome, in chain: StressNode) -> Bool {
        chain.isRecovery ? outcome.isFailure : outcome == .success
    }

    func isStep(_ id: Int) -> Bool { parents[id].flatMap { nodes[$0] }?.hasSteps ?? false }

    /// Whether the node becomes an operation. Some jobs of waterfalls do not.
    func isOperation(_ node: StressNode) -> Bool {
        if let parent = parents[node.id], nodes[parent]?.isWaterfall == true { return !node.isClosure }
        return true
    }

    /// Whether it calls an `asyncCompletionBlock`.
    func isAsynchronous(_ node: StressNode) -> Bool {
        isStep(node.id) || node.isAsynchronous
    }

    /// Whether a leaf that is to fail does.
    func canFail(_ node: StressNode, _ leaf: StressLeaf) -> Bool {
        leaf.kind != .block && leaf.kind != .foreign || isStep(node.id)
    }
}

// Causes of failures.
extension ProgramFacts {
    /// What those end with that require the success of a node, which ended so. Only the root is carried.
    func dependency(of source: StressNode, _ outcome: StressOutcome) -> StressOutcome {
        root(of: source, outcome) ?? .dependency(source.name, outcome)
    }

    /// If a node ended so only because of one outside it, what those end with that require the success of that.
    private func root(of node: StressNode, _ outcome: StressOutcome) -> StressOutcome? {
        if case .dependency = outcome { return outcome }
        guard case .report(let report) = outcome, node.limitedChildren != nil else { return nil }
        if report.reason?.isFailure == true { return nil }
        let children = Dictionary(uniqueKeysWithValues: children(of: node.id).map { ($0.name, $0) })
        let roots = report.failures.map { failure -> StressOutcome? in
            guard let child = children[failure.name], let root = root(of: child, failure.outcome),
                case .dependency(let name, _) = root, let cause = nodes.values.first(where: { $0.name == name })
            else { return nil }
            return ancestors(of: cause.id).contains(node.id) ? nil : root
        }
        return roots.contains(nil) ? nil : roots.first ?? nil
    }

    /// Puts children that failed to what is responsible.
    ///
    /// - Returns: For each cause, the child that reports it, or, if it is no child that failed, those of which the first one
    ///   does; and how many others did not run because of it.
    func causes(
        in node: StressNode, _ failed: [(child: StressNode, outcome: StressOutcome)]
    ) -> [(reported: [Int], blocked: Int)] {
        var own: [Int] = []
        var blocked: [Int: [Int]] = [:]
        for (child, outcome) in failed {
            guard case .dependency(let name, _)? = root(of: child, outcome),
                let cause = nodes.values.first(where: { $0.name == name })?.id
            else {
                own.append(child.id)
                continue
            }
            // The child that is responsible, or has the cause inside it.
            let sibling = ([cause] + ancestors(of: cause)).first { parents[$0] == node.id }
            if sibling == child.id {
                own.append(child.id)
            } else {
                blocked[sibling ?? cause, default: []].append(child.id)
            }
        }
        let reporting = own.map { (reported: [$0], blocked: blocked[$0]?.count ?? 0) }
        return reporting + blocked.filter { !own.contains($0.key) }.map { ($1, $1.count - 1) }
    }
}
