import OperationKitTestSupport

/// Judges what happened in a run of a program: a function of the program and the log of events alone.
///
/// Where nothing disturbs an operation, its outcome is predicted exactly. Where a cancellation or the like makes it
/// uncertain, what its parts reported is known from the log, and it has to agree with these.
struct ProgramOracle {
    let facts: ProgramFacts
    let log: LogIndex
    private(set) var violations: [String] = []

    /// What is wrong; empty if nothing is.
    static func violations(of program: StressProgram, _ events: [StressEvent]) -> [String] {
        violations(of: ProgramFacts(program), events)
    }

    static func violations(of facts: ProgramFacts, _ events: [StressEvent]) -> [String] {
        var oracle = ProgramOracle(facts: facts, log: LogIndex(events))
        oracle.judge()
        return oracle.violations
    }

    private init(facts: ProgramFacts, log: LogIndex) {
        self.facts = facts
        self.log = log
    }

    private mutating func judge() {
        for event in log.events {
            if case .hung(let state) = event { return complain("it hangs: \(state.joined(separator: "; "))") }
            if case .reported(let mistake) = event { complain("reported: \(mistake)") }
            if case .leaked(let labels) = event { complain("leaked: \(labels.joined(separator: ", "))") }
        }
        for node in facts.nodes.values.sorted(by: { $0.id < $1.id }) {
            judgeCalls(node)
            judgeRunning(node)
            judgeOrder(node)
            judgeOutcome(node)
            judgeLimit(node)
            judgeSignals(of: node)
        }
        judgeActions()
        judgeAwaiting()
    }

    mutating func complain(_ violation: String) {
        violations.append(violation)
    }

    /// Whether the node was made and taken by its compound.
    func isThere(_ id: Int) -> Bool {
        log.built.contains(id) && !isRefused(id)
    }

    /// Whether the node is there, or was started by hand before it was refused.
    func runs(_ node: StressNode) -> Bool {
        isThere(node.id) || node.entry.isStarted && log.built.contains(node.id)
    }

    func isRefused(_ id: Int) -> Bool {
        guard let action = facts.addedBy[id] else { return false }
        if log.isAccepted[action] != true { return true }
        // It is inside of an addition to an addition.
        return facts.ancestors(of: id).contains { facts.addedBy[$0] != action && isRefused($0) }
    }
}

// Each operation by itself.
extension ProgramOracle {
    private mutating func judgeCalls(_ node: StressNode) {
        let began = log.began[node.id]?.count ?? 0
        let ended = log.ended[node.id]?.count ?? 0
        let completed = log.completed[node.id] ?? []
        let finished = log.finished[node.id] ?? []
        if began > 1 { complain("\(node.name) ran \(began) times") }
        if node.leaf != nil, ended != began { complain("\(node.name) began \(began) times and ended \(ended) times") }
        guard facts.isOperation(node) else { return }
        if !runs(node) {
            // The run cancels it, if it finishes in its own `cancel()`.
            let isEnded = facts.endsInCancel(node) && log.built.contains(node.id)
            let rest = log.rest[node.id] ?? (isEnded, false, isEnded)
            let mayBeCancelled =
                isEnded || ([node.id] + facts.ancestors(of: node.id)).contains { facts.isInterrupted($0) }
            if began + completed.count > 0 || finished.count != (isEnded ? 1 : 0) || rest.isFinished != isEnded
                || rest.isExecuting || rest.isCancelled && !mayBeCancelled
            {
                complain("\(node.name) was refused, and is not untouched")
            }
            return
        }
        if finished.count != 1 { complain("the completion block of \(node.name) was called \(finished.count) times") }
        if facts.isAsynchronous(node) {
            if completed.count != 1 {
                complain("the async completion block of \(node.name) was called \(completed.count) times")
            } else if let last = finished.first, completed[0].position > last {
                complain("the async completion block of \(node.name) came after the completion block")
            }
        }
        if let rest = log.rest[node.id], !rest.isFinished || rest.isExecuting {
            complain("\(node.name) has not finished")
        }
    }

    private mutating func judgeRunning(_ node: StressNode) {
        let hasBegun = log.began[node.id] != nil
        if facts.mustRun(node.id), !isRefused(node.id) {
            let isAdded = facts.addedBy[node.id] != nil
            if facts.isOperation(node), !isAdded, !log.built.contains(node.id) {
                complain("\(node.name) was never made")
            } else if node.leaf != nil || node.compound != nil, !hasBegun,
                !isAdded || log.built.contains(node.id)
            {
                complain("\(node.name) did not run")
            }
        }
        if hasBegun, let stopper = cancelledBeforeStart(node.id) {
            complain("\(node.name) ran, although n\(stopper) had been told to end before the start")
        }
        if hasBegun, node.waitsForever, facts.isOperation(node) {
            complain("\(node.name) ran before what never begins")
        }
        if let outcome = dependencyOutcome(of: node), beginning(of: node) != nil {
            complain("\(node.name) ran, and should have ended with \(outcome)")
        }
    }

    /// The node itself, or one that it is inside of, that was told to end before the start.
    func cancelledBeforeStart(_ id: Int) -> Int? {
        if facts.isStarted(id) { return nil }
        return ([id] + facts.ancestors(of: id)).first { id in
            if let node = facts.nodes[id], node.entry == .cancelled, facts.isOperation(node) { return true }
            return facts.program.actions.indices.contains { index in
                let action = facts.program.actions[index]
                return action.trigger == .beforeStart && action.effect.target == id && action.effect.interrupts
                    && log.isAccepted[index] == true
            }
        }
    }
}

// Operations and each other.
extension ProgramOracle {
    private mutating func judgeOrder(_ node: StressNode) {
        guard isThere(node.id) else { return }
        if let begin = beginning(of: node) {
            for id in node.awaited { requireEnd(of: id, before: begin, of: node) }
            if node.waitsForExternal, (log.externalEnded ?? .max) > begin {
                complain("\(node.name) began before its external dependency had ended")
            }
            if let chain = facts.parents[node.id].flatMap({ facts.nodes[$0] }), chain.isChain {
                if let previous = chain.children.last(where: { $0.id < node.id }) {
                    requireEnd(of: previous.id, before: begin, of: node)
                    if let outcome = log.outcome(of: previous.id), !facts.leadsOn(outcome, in: chain) {
                        complain("\(node.name) ran, although \(previous.name) had ended with \(outcome)")
                    }
                }
            }
        }
        if let end = log.completed[node.id]?.first?.position { judgeInside(node, end) }
    }

    /// Nothing inside a composite begins or completes after it has.
    private mutating func judgeInside(_ node: StressNode, _ end: Int) {
        for id in facts.descendants(of: node.id) where isThere(id) {
            let begin = facts.mayBeLeftBehind(id) ? -1 : log.began[id]?.last ?? -1
            let last = max(begin, log.completed[id]?.last?.position ?? -1)
            if last > end { complain("n\(id) outlived \(node.name)") }
            guard let inner = facts.nodes[id], let ended = log.ended[id]?.last else { continue }
            if facts.isOperation(inner), !facts.isAsynchronous(inner), !facts.mayBeLeftBehind(id), ended > end {
                complain("n\(id) worked on when \(node.name) had ended")
            }
        }
    }

    mutating func requireEnd(of id: Int, before begin: Int, of node: StressNode) {
        guard let other = facts.nodes[id], isThere(id) || !facts.isOperation(other) else { return }
        let end = end(of: other)
        if end == nil, !facts.isAsynchronous(other), log.began[id] == nil { return }
        if facts.endsInCancel(other) { return }
        if (end ?? .max) > begin { complain("\(node.name) began before n\(id) had ended") }
    }

    /// The first that is seen of a node's work.
    func beginning(of node: StressNode) -> Int? {
        var first = log.began[node.id]?.first
        for child in facts.children(of: node.id) where !child.entry.isStarted {
            if let begin = beginning(of: child) { first = min(first ?? .max, begin) }
        }
        return first
    }

    /// The moment at which a node is over, or shortly before.
    func end(of node: StressNode) -> Int? {
        if facts.isOperation(node), facts.isAsynchronous(node) { return log.completed[node.id]?.first?.position }
        return log.ended[node.id]?.first
    }

    /// Never more children run at the same time than the limit allows.
    private mutating func judgeLimit(_ node: StressNode) {
        guard let limit = node.limitedChildren?.limit, limit >= 0, !facts.isSqueezed(node.id) else { return }
        var changes: [(position: Int, change: Int)] = []
        for child in facts.children(of: node.id) where !child.entry.isStarted && !facts.endsInCancel(child) {
            guard let begin = beginning(of: child), var end = end(of: child) else { continue }
            // The work of a leaf is over before it is reported, unless it was finished by others meanwhile.
            if let ended = log.ended[child.id]?.first { end = min(end, ended) }
            if begin > end { continue }
            changes += [(begin, 1), (end, -1)]
        }
        var running = 0
        for (_, change) in changes.sorted(by: { $0.position < $1.position }) {
            running += change
            if running > limit { return complain("more than \(limit) children of \(node.name) ran at the same time") }
        }
    }
}
