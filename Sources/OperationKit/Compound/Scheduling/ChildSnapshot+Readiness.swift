import Foundation

// What descriptions of a composite say of its children.

extension ChildSnapshot {
    init(of readiness: ReadinessStateMachine, atMost limit: Int, noun: String) {
        let table = readiness.table
        let places = readiness.places
        var started: [Child] = []
        var others: [Child] = []
        for record in table.records {
            guard let operation = record.operation else { continue }
            let child = (operation, record.ordinal, record.phase.stage)
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
            summary: ["\(table.ended) of \(table.added) \(noun) have ended"]
                + (places.isSuspended ? ["suspended"] : []),
            readyText: readiness.readyText)
    }
}

extension ChildPhase {
    /// What the phase means for a description.
    var stage: ChildSnapshot.Stage {
        switch self {
        case .free, .adding, .added, .waiting, .gone, .external: .waiting
        case .ready: .ready
        case .queued, .queuedUnready: .queued
        case .starting, .detached, .ending: .started
        }
    }
}

extension ReadinessStateMachine {
    /// What is said of children that could start, once the composite has.
    var readyText: String? {
        if !isStarted { return nil }
        return switch cancellation {
        case .inProgress: "ready, but the children are being cancelled"
        case .none where places.isSuspended: "ready, but the children are suspended"
        case .none where !places.hasPlaceForChild: "ready, but the limit of \(places.limit) is reached"
        case .none, .complete: "ready, waiting for a thread"
        }
    }
}
