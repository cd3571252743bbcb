import OperationKitTestSupport

// How operations have to end, from what is predicted and from what happened inside them.
extension ProgramOracle {
    mutating func judgeOutcome(_ node: StressNode) {
        guard runs(node), facts.isOperation(node), facts.isAsynchronous(node) else { return }
        guard let (_, outcome, isCancelled) = log.completed[node.id]?.first else { return }
        let isCertain = facts.mustRun(node.id) && (facts.addedBy[node.id] == nil || !requiresOthers(node))
        if isCertain, let predicted = facts.predicted(node), outcome != predicted {
            return complain("\(node.name) ended with \(outcome) instead of \(predicted)")
        }
        if isCancelled, !facts.isDisturbed(node.id), !isInFailingChain(node.id) {
            complain("\(node.name) was cancelled without a cause")
        }
        if let rest = log.rest[node.id], rest.isCancelled != isCancelled {
            complain("\(node.name) was \(isCancelled ? "" : "not ")cancelled when it completed, and changed its mind")
        }
        if outcome == .cancelled, !isCancelled, node.leaf != nil {
            complain("\(node.name) ended as cancelled, and is not")
        }
        if outcome == .lost(node.id), let end = log.ended[node.id]?.first, wasCancelled(node.id, before: end) {
            complain("\(node.name) was lost, although it had been cancelled")
        }
        if let given = given(to: node) {
            if !given.contains(outcome) { complain("\(node.name) ended with \(outcome) instead of \(given)") }
            return
        }
        if node.requires.contains(where: { failure(of: $0) == outcome }), beginning(of: node) == nil { return }
        let possible = possible(node, isCancelled: isCancelled)
        if let possible, !possible.contains(outcome) {
            complain("\(node.name) ended with \(outcome) instead of \(possible)")
        } else if let compound = node.limitedChildren {
            judgeReport(of: node, compound, outcome, isCancelled: isCancelled)
        }
    }

    /// Whether the node, or one inside it, requires the success of one that is not inside it. One that is gone when the node is
    /// made has ended, and is not required then.
    private func requiresOthers(_ node: StressNode) -> Bool {
        let inside = Set(node.subtree.map(\.id))
        return node.subtree.contains { !inside.isSuperset(of: $0.requires) }
    }

    /// What the first one of those whose success it requires has it end with, if they were there when it was made.
    func dependencyOutcome(of node: StressNode) -> StressOutcome? {
        if facts.addedBy[node.id] != nil { return nil }
        return node.requires.lazy.compactMap { failure(of: $0) }.first
    }

    /// What those end with that require the success of a node.
    private func failure(of id: Int) -> StressOutcome? {
        guard let source = facts.nodes[id], let outcome = ending(of: source), outcome != .success else { return nil }
        return facts.dependency(of: source, outcome)
    }

    private func isInFailingChain(_ id: Int) -> Bool {
        ([id] + facts.ancestors(of: id)).contains { facts.isStep($0) && !facts.mustRun($0) }
    }

    /// The outcome that an action gave the node by a call of `finish` that returned true.
    func given(to node: StressNode) -> [StressOutcome]? {
        for (index, action) in facts.program.actions.enumerated() where log.isAccepted[index] == true {
            guard case .finish(node.id, let fails) = action.effect else { continue }
            if fails { return [.given(node.id)] }
            // Success without an output is none for an operation that has one.
            let needsOutput = facts.isStep(node.id) || node.hasSteps
            guard needsOutput else { return [.success] }
            return log.outcome(of: node.id).map { outcome in
                if case .other(let text) = outcome, text.hasPrefix("missingOutput") { [outcome] } else { [] }
            }
        }
        return nil
    }

    /// Whether an action had cancelled the node itself before this position of the log.
    func wasCancelled(_ id: Int, before position: Int) -> Bool {
        facts.program.actions.enumerated().contains { index, action in
            guard log.isAccepted[index] == true, (log.acted[index] ?? .max) < position else { return false }
            return action.effect == .cancel(id) || action.effect == .cancelWithReason(id)
        }
    }

    /// The reason with which the node was cancelled, if that was the case.
    private func reasons(_ node: StressNode) -> [StressOutcome] {
        let hasReason = facts.actions(on: node.id).contains { $0.effect == .cancelWithReason(node.id) }
        return hasReason ? [.reason(node.id)] : []
    }

    /// The outcomes of which the node must have one; `nil` for a compound, whose report is looked at in detail.
    private func possible(_ node: StressNode, isCancelled: Bool) -> [StressOutcome]? {
        let asCancelled = isCancelled ? [.cancelled] + reasons(node) : []
        switch node.work {
        case .leaf(let leaf):
            if log.began[node.id] == nil { return asCancelled }
            let own = leaf.outcome(of: node.id)
            return endsWhenCancelled(node, leaf) ? [own] + asCancelled : [own]
        case .macro(let steps), .waterfall(let steps):
            var outcomes = asCancelled
            for step in steps {
                if let outcome = ending(of: step), outcome != .success { outcomes.append(outcome) }
            }
            if steps.allSatisfy({ ending(of: $0) == .success }) { outcomes.append(.success) }
            return outcomes
        case .recovery(let source, let made):
            let last = log.built.contains(made.id) ? made : source
            return asCancelled + [ending(of: last)].compactMap { $0 }
        case .compound, .gathering:
            return nil
        }
    }

    private func endsWhenCancelled(_ node: StressNode, _ leaf: StressLeaf) -> Bool {
        if leaf.kind == .losing { return true }
        guard facts.isStep(node.id) else { return leaf.stops }
        return !leaf.isTask && leaf.kind != .block && leaf.kind != .throwing
    }

    /// How a child ended, from its report or, if it makes none, from its work.
    private func ending(of node: StressNode) -> StressOutcome? {
        if facts.isOperation(node), facts.isAsynchronous(node) { return log.outcome(of: node.id) }
        guard let leaf = node.leaf, log.began[node.id] != nil else { return .cancelled }
        return facts.canFail(node, leaf) ? leaf.outcome(of: node.id) : .success
    }
}

// The report of a compound.
extension ProgramOracle {
    private mutating func judgeReport(
        of node: StressNode, _ compound: StressCompound, _ outcome: StressOutcome, isCancelled: Bool
    ) {
        let children = facts.children(of: node.id).filter { isThere($0.id) }
        let endings = children.compactMap { child in ending(of: child).map { (child, $0) } }
        var failed: [String: StressOutcome] = [:]
        var blocked: [String: Int] = [:]
        for cause in facts.causes(in: node, endings.filter { $1.isFailure }) {
            // Which of several additions came first is not known.
            let first = cause.reported.first { id in isReported(id, in: outcome) && facts.addedBy[id] != nil }
            let isCertain = facts.addedBy[cause.reported[0]] == nil && compound.prepares == false
            let reporting = (isCertain ? nil : first) ?? cause.reported[0]
            guard let child = facts.nodes[reporting] else { continue }
            failed[child.name] = ending(of: child)
            blocked[child.name] = cause.blocked
        }
        var isCancelled = isCancelled
        if node.isGathering {
            // It succeeds with all outputs, and reports each other end that is no failure as a cancellation.
            let hasOutputs = children.allSatisfy { ending(of: $0) == .success }
            if cancelledBeforeStart(node.id) != nil, outcome == .success {
                complain("\(node.name) succeeded, and had been told to end before the start")
            }
            if hasOutputs {
                // Without operations it may have ended before its cancellation, or have been cancelled before its start.
                isCancelled = isCancelled && children.isEmpty && outcome != .success
            } else {
                isCancelled = isCancelled || failed.isEmpty
            }
        }
        guard case .report(let report) = outcome else {
            let isRight = outcome == .success && !isCancelled && failed.isEmpty
            if !isRight { complain("\(node.name) ended with \(outcome), cancelled \(isCancelled), failed \(failed)") }
            return
        }
        if !isCancelled, failed.isEmpty { complain("\(node.name) reports \(report), and nothing failed") }
        if report.name != node.name { complain("\(node.name) is called \(report.name) in its own report") }
        if report.isCancellation != isCancelled { complain("\(node.name) was cancelled or not, but reports \(report)") }
        if let reason = report.reason, !(isCancelled && reasons(node).contains(reason)) {
            complain("\(node.name) reports the reason \(reason)")
        }
        let reported = Dictionary(report.failures.map { ($0.name, $0.outcome) }) { first, _ in first }
        if reported != failed || reported.count != report.failures.count {
            complain("\(node.name) reports \(report.failures), but these failed: \(failed)")
        }
        if report.failures.contains(where: { $0.blocked != blocked[$0.name, default: 0] }) {
            complain("\(node.name) reports \(report.failures), but these kept others from running: \(blocked)")
        }
        judgeIndices(of: node, compound, report, count: children.count)
    }

    private func isReported(_ id: Int, in outcome: StressOutcome) -> Bool {
        guard case .report(let report) = outcome, let name = facts.nodes[id]?.name else { return false }
        return report.failures.contains { $0.name == name }
    }

    /// Children that were there from the beginning are counted first, and the others in the order of their additions.
    private mutating func judgeIndices(
        of node: StressNode, _ compound: StressCompound, _ report: StressReport, count: Int
    ) {
        if report.failures.contains(where: { $0.siblings != count }) {
            complain("\(node.name) has \(count) children, and reports \(report.failures)")
        }
        let indices = report.failures.map(\.index)
        if indices != Array(Set(indices)).sorted() { complain("\(node.name) reports in the order \(indices)") }
        // Those that `prepare()` adds come after those that were added before the start, or meanwhile.
        let hasAdditions = facts.children(of: node.id).count > compound.children.count
        if compound.prepares, hasAdditions { return }
        for failure in report.failures {
            let place = compound.children.firstIndex { $0.name == failure.name }
            let isRight = place.map { $0 == failure.index } ?? (compound.children.count..<count ~= failure.index)
            if !isRight { complain("\(node.name) reports \(failure.name) with the index \(failure.index)") }
        }
    }
}

// What was done.
extension ProgramOracle {
    mutating func judgeActions() {
        for (index, action) in facts.program.actions.enumerated() {
            if case .inside(let id) = action.trigger, log.began[id] != nil, log.isAccepted[index] == nil {
                complain("action \(index) was not done, although n\(id) ran")
            }
            if case .add(let node, let target) = action.effect { judgeAddition(index, node, target, action.trigger) }
            judgeSerialCancellation(index, action)
            switch action.effect {
            case .addAgain where log.isAccepted[index] == true, .addCycle where log.isAccepted[index] == true:
                complain("action \(index) was not refused")
            default: break
            }
        }
    }

    /// The task that awaits the root is told how that ended, afterward.
    mutating func judgeAwaiting() {
        guard facts.program.start.isAwaited else { return }
        guard let (position, outcome, _) = log.completed[0]?.first else { return }
        if log.awaited.count != 1 { return complain("the task that awaits n0 was told \(log.awaited.count) times") }
        let awaited = log.awaited[0]
        if isLeftBehind(by: awaited.outcome) { return }
        if awaited.outcome != outcome { complain("the task that awaits n0 was told \(awaited.outcome)") }
        if awaited.position < position { complain("the task that awaits n0 went on before its end") }
    }

    /// A task that is cancelled does not wait for the root if that has not been started, and never runs.
    private func isLeftBehind(by outcome: StressOutcome) -> Bool {
        let isCancelled = facts.program.actions.enumerated().contains {
            $1.effect == .cancelTask && log.isAccepted[$0] == true
        }
        // The queue may be about to end it, and then its outcome is known already.
        let isCancellation =
            if case .report(let report) = outcome {
                report.isCancellation
            } else {
                [.cancelled, .reason(0), .given(0)].contains(outcome)
            }
        return facts.program.start == .task && isCancelled && isCancellation && beginning(of: facts.program.root) == nil
    }

    /// A child, and code that runs before the start, can always add.
    private mutating func judgeAddition(
        _ index: Int, _ node: StressNode, _ target: Int, _ trigger: StressAction.Trigger
    ) {
        guard log.isAccepted[index] == false, log.built.contains(node.id) else { return }
        switch trigger {
        case .beforeStart:
            complain("\(node.name) was refused by n\(target) before the start")
        case .inside(let id):
            // Unless the leaf was ended by others while it worked.
            guard facts.ancestors(of: id).contains(target), !isEndedByOthers(id), !facts.mayBeLeftBehind(id) else {
                return
            }
            complain("\(node.name) was refused by n\(target), although n\(id) was still working inside it")
        case .outside:
            break
        }
    }

    private func isEndedByOthers(_ id: Int) -> Bool {
        facts.isStep(id) || facts.isInterrupted(id) || facts.isStarted(id) || facts.nodes[id]?.leaf?.stops == true
    }

    /// In a serial compound, a child that cancels it is the last one to run: nothing else can be about to begin.
    private mutating func judgeSerialCancellation(_ index: Int, _ action: StressAction) {
        guard case .inside(let id) = action.trigger, let position = log.acted[index] else { return }
        let target = action.effect.target
        guard facts.parents[id] == target, facts.nodes[target]?.compound?.limit == 1, action.effect.interrupts,
            action.effect != .cancelTask, log.isAccepted[index] == true, !facts.isSqueezed(target),
            !facts.isInterrupted(id)
        else { return }
        guard let leaf = facts.nodes[id]?.leaf, !leaf.stops else { return }
        for other in facts.descendants(of: target)
        where other != id && !facts.mayBeLeftBehind(other) && !facts.isStarted(other) {
            if let begin = log.began[other]?.last, begin > position {
                complain("n\(other) ran after n\(id) had cancelled n\(target)")
            }
        }
    }
}
