import Foundation

// How far the children have come.
extension ChildScheduler {
    typealias ProgressReport = (composite: any Composite, fraction: Double)

    /// How far they are, from 0 to 1.
    var fraction: Double { lock.withLock { ledger.fraction } }

    /// What the composite has to be told, if somebody wants to know. With the lock held.
    func progressReport() -> ProgressReport? {
        guard isProgressWanted, let running else { return nil }
        return (running, ledger.fraction)
    }

    func report(_ progressed: ProgressReport) {
        progressed.composite.progressed(to: progressed.fraction)
    }

    /// Changes what is known of the progress, and reports it if somebody wants to know.
    func changeProgress(_ change: (inout ProgressLedger) -> Void) {
        let progressed = lock.withLock {
            change(&ledger)
            return progressReport()
        }
        progressed.map(report)
    }

    /// A child reports how far it has come, so somebody wants to know.
    func childProgressed(_ child: AsyncOperation, to fraction: Double) {
        let progressed = lock.withLock { () -> ProgressReport? in
            guard let slot = slots[ObjectIdentifier(child)], let weight = children[slot]?.weight, let running else {
                return nil
            }
            ledger.advanced(slot, weight: weight, to: fraction)
            return (running, ledger.fraction)
        }
        progressed.map(report)
    }

    /// Somebody wants to know the progress of the composite, and so that of its children.
    func wantProgress() {
        let operations = lock.withLock {
            isProgressWanted = true
            return children.compactMap { $0?.operation as? AsyncOperation }
        }
        for operation in operations { operation.progressIsWanted() }
    }
}
