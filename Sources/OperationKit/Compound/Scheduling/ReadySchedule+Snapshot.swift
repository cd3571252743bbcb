extension ChildSnapshot {
    init(of schedule: ReadySchedule, atMost limit: Int, unit: String) {
        let table = schedule.table
        let places = schedule.places
        var started: [Child] = []
        var others: [Child] = []
        for record in table.records {
            guard let operation = record.operation else { continue }
            let child = Child(operation: operation, index: record.ordinal, stage: record.phase.stage)
            if record.phase.place != nil {
                if started.count < limit { started.append(child) }
            } else if others.count < limit {
                others.append(child)
            }
            // A million that wait are not looked at, if all that have started are there.
            if others.count == limit, started.count == min(places.started + places.queued, limit) { break }
        }
        // Slots are used again, so they say nothing about the order.
        started.sort { $0.index < $1.index }
        others.sort { $0.index < $1.index }
        let children = Array((started + others).prefix(limit))
        self.init(
            children: children, omitted: table.remaining - children.count,
            summary: ["\(table.ended) of \(table.added) \(unit) have ended"]
                + (places.isSuspended ? ["suspended"] : []),
            blockedReason: schedule.isStarted ? schedule.blockedReason : .notStarted)
    }
}

extension ChildPhase {
    /// What the phase means for a description.
    var stage: ChildSnapshot.Stage {
        switch self {
        case .free, .adding, .added, .waiting, .gone, .external: .waiting
        case .ready: .ready
        case .queued: .queued
        case .starting, .detached, .ending: .started
        }
    }
}

extension ReadySchedule {
    /// Why no further child may start, if none may.
    fileprivate var blockedReason: ChildSnapshot.BlockedReason? {
        switch cancellation {
        case .complete: return nil
        case .inProgress: return .cancelling
        case .none where places.isSuspended: return .suspended
        case .none: return places.hasPlaceForChild ? nil : .limit(places.limit)
        }
    }
}
