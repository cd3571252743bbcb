import Foundation

/// The children of a composite that have not ended, as they were at one moment: for descriptions.
struct ChildSnapshot {
    struct Child {
        let operation: Operation
        let index: Int
        let phase: ChildPhase
    }

    /// Why no further child begins.
    enum BlockedReason: Equatable {
        case notBegun, suspended, cancelling
        case limit(Int)
    }

    /// Those that have begun first, otherwise in the order in which they were added.
    var children: [Child]
    /// How many others have not ended.
    var omitted: Int
    /// What there is to say of all of them together.
    var summary: [String]
    var blockedReason: BlockedReason?

    /// Of a composite whose scheduler does not know its children yet.
    init(notBegun operations: [Operation], atMost limit: Int, unit: String) {
        children = operations.prefix(limit).enumerated().map { .init(operation: $1, index: $0, phase: .waiting) }
        omitted = max(0, operations.count - limit)
        summary = ["\(operations.count) \(unit)"]
        blockedReason = .notBegun
    }

    fileprivate init(of state: ChildScheduler.State, atMost limit: Int, unit: String) {
        let schedule = state.schedule
        blockedReason = schedule.hasBegun ? schedule.blockedReason : .notBegun
        var begun: [Child] = []
        var others: [Child] = []
        for (slot, child) in state.children.enumerated() {
            guard let operation = child?.operation else { continue }
            let child = Child(
                operation: operation, index: schedule.ordinal(of: slot), phase: schedule.records[slot].phase)
            if child.hasBegun {
                if begun.count < limit { begun.append(child) }
            } else if others.count < limit {
                others.append(child)
            }
            // A million that wait are not looked at, if all that have begun are there.
            if others.count == limit, begun.count == min(schedule.begun + schedule.queued, limit) { break }
        }
        // Slots are used again, so they say nothing about the order.
        begun.sort { $0.index < $1.index }
        others.sort { $0.index < $1.index }
        children = Array((begun + others).prefix(limit))
        omitted = schedule.remaining - children.count
        summary = ["\(schedule.added - schedule.remaining) of \(schedule.added) \(unit) have ended"]
        if schedule.isSuspended { summary.append("suspended") }
    }
}

extension ChildSnapshot.Child {
    var hasBegun: Bool {
        switch phase {
        case .starting, .running, .queued: true
        case .free, .waiting, .ready, .gone, .outside: false
        }
    }

    /// Why a child has not started; `nil` if there is nothing to say.
    ///
    /// - Parameters:
    ///   - isReady: What the operation says itself.
    ///   - blockedReason: Why no further child begins.
    static func reason(
        _ phase: ChildPhase, wait: DependencyChainDescription?, isReady: Bool,
        blockedReason: ChildSnapshot.BlockedReason?
    ) -> String? {
        switch phase {
        case .free, .waiting, .queued, .gone, .outside:
            if let wait { return wait.text }
        case .ready, .starting, .running:
            // What it depends on does not matter any more, because it was cancelled.
            break
        }
        switch (phase, blockedReason) {
        case (.starting, _), (.running, _): return "starting"
        case (.queued, _) where !isReady: return "not ready by itself"
        case (_, .notBegun): return nil
        case (.waiting, _): return "about to become ready"
        case (_, .suspended): return "ready, but the children are suspended"
        case (_, .cancelling): return "ready, but the children are being cancelled"
        case (_, .limit(let limit)): return "ready, but the limit of \(limit) is reached"
        case (_, nil): return "ready, waiting for a thread"
        }
    }
}

extension ChildSchedule {
    /// Why no further child may begin, if none may.
    fileprivate var blockedReason: ChildSnapshot.BlockedReason? {
        if isCancelled { return nil }
        if cancelsNewChildren { return .cancelling }
        if isSuspended { return .suspended }
        return limit >= 0 && begun >= limit ? .limit(limit) : nil
    }
}

extension ChildScheduler {
    /// The children that have not ended, as they are now.
    ///
    /// - Parameters:
    ///   - limit: How many there are to be at most.
    ///   - unit: What to call them.
    func snapshot(atMost limit: Int, unit: String = "children") -> ChildSnapshot {
        withState { ChildSnapshot(of: $0, atMost: limit, unit: unit) }
    }
}
