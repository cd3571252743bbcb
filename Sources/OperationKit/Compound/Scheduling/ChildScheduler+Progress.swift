import Foundation

// How far the children have come.
extension ChildScheduler {
    typealias ProgressReport = (composite: AsyncOperation, fraction: Double)

    /// How far they are, from 0 to 1.
    var fraction: Double { withState { $0.ledger.fraction } }

    func report(_ progressed: ProgressReport) {
        progressed.composite.progressed(to: progressed.fraction)
    }

    /// Changes what is known of the progress, and reports it if somebody wants to know.
    func changeProgress(_ change: (inout ProgressLedger) -> Void) {
        let progressed = withState { state in
            change(&state.ledger)
            return state.progressReport
        }
        progressed.map(report)
    }

    /// A child reports how far it has come, so somebody wants to know.
    func childProgressed(_ child: AsyncOperation, to fraction: Double) {
        let progressed = withState { state -> ProgressReport? in
            guard let slot = state.slot(of: child), let known = state.children[slot], !known.isEnding else {
                return nil
            }
            state.ledger.advanced(slot, weight: known.weight, to: fraction)
            return state.progressReport
        }
        progressed.map(report)
    }

    /// Somebody wants to know the progress of the composite, and so that of its children.
    func startReportingProgress() {
        let operations = withState { state in
            state.isProgressWanted = true
            return state.operations
        }
        for operation in operations { (operation as? AsyncOperation)?.children?.startReportingProgress() }
    }
}

extension ChildScheduler.State {
    /// What the composite has to be told, if somebody wants to know.
    fileprivate var progressReport: ChildScheduler.ProgressReport? {
        guard isProgressWanted, let running else { return nil }
        return (running, ledger.fraction)
    }

    /// A child has ended.
    mutating func progressEnded(_ child: Next, hasSucceeded: Bool) -> ChildScheduler.ProgressReport? {
        // Another thread may have recorded its end already.
        guard isPresent(child), let known = children[child.slot], !known.isEnding else { return nil }
        ledger.ended(child.slot, weight: known.weight, hasSucceeded: hasSucceeded)
        let report = progressReport
        // Otherwise the child is forgotten before the lock is released.
        if report != nil { children[child.slot]?.isEnding = true }
        return report
    }
}
