import Foundation

extension ChildScheduler {
    /// Makes the children those of a composite.
    func attach(to composite: AsyncOperation, _ handlers: CompositeHandlers) {
        let previous = machine.withLock { $0.composite.attach(to: composite, handlers) }
        withExtendedLifetime(previous) {}
    }

    /// Takes the children away from their composite. They stay together, for another one to take.
    func detach() {
        machine.withLock { $0.composite.detach() }
    }
}

extension ChildScheduler: ChildGroup {
    var operation: AsyncOperation? { machine.withLock { $0.composite.composite } }

    private var handlers: CompositeHandlers? { machine.withLock { $0.composite.handlers } }

    var unitCount: Int64 { OperationProgress.fineUnitCount }

    var weightedUnits: (completed: Int64, total: Int64)? { machine.withLock { $0.ledger.units } }

    /// How many children have ended, and how many were added.
    var count: (finished: Int, total: Int) {
        machine.withLock { ($0.schedule.table.ended, $0.schedule.table.added) }
    }

    var progressDescription: String? {
        guard handlers?.countsChildren == true else { return nil }
        let (finished, total) = count
        return "\(finished) of \(total) \(total == 1 ? "operation has" : "operations have") finished"
    }

    func start() {
        handlers?.start()
    }

    func removeAll() -> [Operation] { machine.withLock { $0.removeAll() } }

    func drain() {
        Trampoline.run { cancelAll(&$0) }
        handlers?.willDrain()
        run()
    }

    func outcomeWasDelivered() {
        handlers?.outcomeWasDelivered()
    }

    func snapshot(atMost count: Int) -> ChildSnapshot? {
        var (snapshot, handlers) = machine.withLock { machine in
            (ChildSnapshot(of: machine.schedule, atMost: count, unit: unit), machine.composite.handlers)
        }
        handlers?.describe(&snapshot)
        return snapshot
    }

    func recordDependencies(of composite: AsyncOperation) -> CompositeDependencies? {
        machine.withLock { $0.schedule.stage == .idle ? $0.composite.recordDependencies(of: composite) : nil }
    }

    func recordedDependencies(of composite: AsyncOperation) -> CompositeDependencies? {
        machine.withLock { $0.composite.recordedDependencies(of: composite) }
    }

    func operations(atMost limit: Int) -> [Operation]? {
        machine.withLock { $0.schedule.table.records.count <= limit ? $0.operations : nil }
    }
}
