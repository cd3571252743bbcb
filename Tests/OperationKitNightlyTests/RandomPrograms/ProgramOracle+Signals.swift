import OperationKitTestSupport

// What observers are told agrees with what has happened.
extension ProgramOracle {
    mutating func judgeSignals(of node: StressNode) {
        let signals = log.signals[node.id] ?? []
        judgeEachSignal(of: node, signals.map(\.signal))
        judgeOrder(of: node, signals.map(\.signal))
        if facts.program.observation == .none || !facts.isOperation(node) || !facts.isAsynchronous(node) {
            if !signals.isEmpty { complain("\(node.name) has events, and no observer") }
            return
        }
        judgeWork(of: node, signals)
        judgeEnd(of: node, signals)
    }

    /// Each event that is none of several comes at most once, and nothing comes after the end.
    private mutating func judgeEachSignal(of node: StressNode, _ signals: [StressSignal]) {
        for signal in [StressSignal.added, .started, .running, .cancelled] {
            let count = signals.count { $0 == signal }
            if count > 1 { complain("\(node.name) was \(signal) \(count) times") }
        }
        let ends = signals.count { $0.isEnd }
        if ends > 1 { complain("\(node.name) had \(ends) ends") }
        if ends > 0, signals.last?.isEnd != true { complain("\(node.name) had events after its end: \(signals)") }
    }

    private mutating func judgeOrder(of node: StressNode, _ signals: [StressSignal]) {
        if let started = signals.firstIndex(of: .started), let waiting = signals.firstIndex(of: .waiting),
            waiting < started
        {
            complain("\(node.name) waited before it started: \(signals)")
        }
        guard let running = signals.firstIndex(of: .running) else {
            return
        }
        if let started = signals.firstIndex(of: .started), started > running {
            complain("\(node.name) started after it ran: \(signals)")
        }
        if let waiting = signals.lastIndex(of: .waiting), waiting > running {
            complain("\(node.name) waited after it ran: \(signals)")
        }
    }

    /// What the work says, and its events.
    private mutating func judgeWork(of node: StressNode, _ signals: [(position: Int, signal: StressSignal)]) {
        let kinds = signals.map(\.signal)
        let running = signals.first { $0.signal == .running }?.position
        if let begin = beginning(of: node), isSeenFromItsStart(node) {
            // It may go on while another thread still delivers that it waits, and is left the event that it runs, too.
            let latest = kinds.contains(.waiting) ? .max : begin
            if running.map({ $0 > latest }) != false { complain("\(node.name) worked before its event: \(kinds)") }
        }
        if let waited = signals.first(where: { $0.signal == .started || $0.signal == .waiting }),
            let stopper = cancelledBeforeStart(node.id)
        {
            complain("\(node.name) was \(waited.signal), although n\(stopper) had been told to end before the start")
        }
        if isSeenFromItsStart(node) {
            let later = kinds.first { [.waiting, .running].contains($0) }
            if let later, !kinds.contains(.started) { complain("\(node.name) was \(later), and never started") }
        }
        if running != nil {
            if let outcome = dependencyOutcome(of: node) {
                complain("\(node.name) was running, and should have ended with \(outcome)")
            }
            if node.waitsForever { complain("\(node.name) was running before what never begins") }
            // It was called, so that it writes this down, unless its work was ended before.
            let tells = node.leaf?.isTask == false
            if tells, !facts.isDisturbed(node.id), log.began[node.id] == nil {
                complain("\(node.name) was running, and did not work")
            }
        }
        guard let end = log.completed[node.id]?.first else { return }
        if kinds.contains(.cancelled), !end.isCancelled { complain("\(node.name) has the event of a cancellation") }
        if !kinds.contains(.cancelled), end.isCancelled, isSeenFromTheBeginning(node) {
            complain("\(node.name) was cancelled without an event: \(kinds)")
        }
    }

    private mutating func judgeEnd(of node: StressNode, _ signals: [(position: Int, signal: StressSignal)]) {
        let end = signals.last { $0.signal.isEnd }
        if let completion = log.completed[node.id]?.first {
            if let end, end.signal != .finished(completion.outcome) || end.position < completion.position {
                complain("\(node.name) completed with \(completion.outcome), and its last event is \(end.signal)")
            }
            if end == nil, isThere(node.id), isSeenFromItsStart(node) {
                complain("\(node.name) ended without an event")
            }
        } else if let end {
            complain("\(node.name) has not completed, and its last event is \(end.signal)")
        }
    }

    /// Whether it had an observer before it could start.
    private func isSeenFromItsStart(_ node: StressNode) -> Bool {
        if facts.program.observation == .each { return true }
        return ([node.id] + facts.ancestors(of: node.id)).allSatisfy { isThere($0) && !facts.isStarted($0) }
    }

    /// Whether it had an observer before it could be cancelled, too.
    private func isSeenFromTheBeginning(_ node: StressNode) -> Bool {
        if facts.program.observation == .each { return true }
        let ancestors = facts.ancestors(of: node.id).compactMap { facts.nodes[$0] }
        // What these make while they run is not inside them yet when it can be cancelled.
        if ancestors.contains(where: { $0.compound?.prepares == true || $0.isWaterfall || $0.isRecovery }) {
            return false
        }
        return isSeenFromItsStart(node) && facts.addedBy[node.id] == nil
            && ([node] + ancestors).allSatisfy { !$0.entry.isCancelled }
    }
}
