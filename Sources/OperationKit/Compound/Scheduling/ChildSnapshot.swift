import Foundation

/// The children of a composite that have not ended, as they were at one moment: for descriptions.
struct ChildSnapshot {
    struct Child {
        let operation: Operation
        let index: Int
        let phase: ChildPhase
    }

    /// Why no further child starts.
    enum BlockedReason: Equatable {
        case notBegun, suspended, cancelling
        case limit(Int)
    }

    /// First those that have started; both these and the others in the order in which they were added.
    var children: [Child]
    /// How many others have not ended.
    var omitted: Int
    /// What there is to say of all of them together.
    var summary: [String]
    var blockedReason: BlockedReason?

    init(of schedule: ReadySchedule, atMost limit: Int, unit: String) {
        let table = schedule.table
        let places = schedule.places
        blockedReason = schedule.isStarted ? schedule.blockedReason : .notBegun
        var started: [Child] = []
        var others: [Child] = []
        for record in table.records {
            guard let operation = record.operation else { continue }
            let child = Child(operation: operation, index: record.ordinal, phase: record.phase)
            if child.hasStarted {
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
        children = Array((started + others).prefix(limit))
        omitted = table.remaining - children.count
        summary = ["\(table.added - table.remaining) of \(table.added) \(unit) have ended"]
        if places.isSuspended { summary.append("suspended") }
    }
}

extension ChildSnapshot.Child {
    var hasStarted: Bool { phase.place != nil }

    /// Says why a child has not started.
    ///
    /// - Parameters:
    ///   - phase: Where the child is.
    ///   - wait: What it waits for, if it does.
    ///   - isReady: What the operation says itself.
    ///   - blockedReason: Why no further child starts.
    /// - Returns: The reason, or `nil` if there is nothing to say.
    static func reason(
        _ phase: ChildPhase, wait: DependencyChainDescription?, isReady: Bool,
        blockedReason: ChildSnapshot.BlockedReason?
    ) -> String? {
        switch phase {
        case .free, .adding, .added, .waiting, .queued, .gone, .external:
            if let wait { return wait.text }
        case .ready, .starting, .detached, .ending:
            // What it depends on does not matter any more, because it was cancelled.
            break
        }
        switch (phase, blockedReason) {
        case (.starting, _), (.detached, _), (.ending, _): return "starting"
        case (.queued, _) where !isReady: return "not ready by itself"
        case (_, .notBegun): return nil
        case (.adding, _), (.added, _), (.waiting, _): return "about to become ready"
        case (_, .suspended): return "ready, but the children are suspended"
        case (_, .cancelling): return "ready, but the children are being cancelled"
        case (_, .limit(let limit)): return "ready, but the limit of \(limit) is reached"
        case (_, nil): return "ready, waiting for a thread"
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
